#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "base/tree.h"
#include "git/format/ignore.h"
#include "harness.h"
#include "workspace/git_program.h"
#include "workspace/random.h"
#include <errno.h>
#include <inttypes.h>

static struct carrel_error err;

/* One file of patterns at the root, one query. */
static bool ask(const char *text, size_t len, const char *path, bool is_dir)
{
    AUTO(ignore_free) struct ignore *ignore = NULL;

    CHECK_EQ(ignore_new(&ignore, &err), 0);
    CHECK_EQ(ignore_push(ignore, "", text, len, &err), 0);
    return ignore_matches(ignore, path, is_dir);
}

#define ASK(text, path) ask(text, sizeof(text) - 1, path, false)
#define ASK_DIR(text, path) ask(text, sizeof(text) - 1, path, true)

TEST(a_pattern_without_a_slash_matches_the_name_at_any_depth)
{
    CHECK(ASK("*.o\n", "x.o"));
    CHECK(ASK("*.o\n", "a/b/x.o"));
    CHECK(!ASK("*.o\n", "x.oo"));
    CHECK(ASK("/x\n", "x"));
    CHECK(!ASK("/x\n", "a/x"));
    CHECK(!ASK("a/x\n", "b/a/x"));
}

TEST(the_last_pattern_that_matches_decides)
{
    CHECK(!ASK("*.o\n!keep.o\n", "keep.o"));
    CHECK(ASK("!keep.o\n*.o\n", "keep.o"));
    CHECK(ASK("\\!x\n", "!x"));
}

TEST(a_slash_at_the_end_means_directories)
{
    CHECK(ASK_DIR("build/\n", "a/build"));
    CHECK(!ASK("build/\n", "a/build"));
}

TEST(comments_spaces_line_ends_and_marks_are_read_as_git_reads_them)
{
    CHECK(!ASK("#x\n", "#x"));
    CHECK(ASK("\\#x\n", "#x"));
    CHECK(ASK("x  \n", "x"));
    CHECK(ASK("x\\ \n", "x "));
    CHECK(!ASK("x\t\n", "x"));
    CHECK(ASK("x\r\n", "x"));
    CHECK(ASK("x\r", "x"));
    CHECK(ASK("\xef\xbb\xbfx", "x"));
    CHECK(ASK("x\0y\n", "x"));
    CHECK(!ASK("\n/\n!\n//\n", "x"));
    CHECK(!ASK("", "x"));
}

TEST(a_file_speaks_of_its_own_directory_and_newer_files_win)
{
    AUTO(ignore_free) struct ignore *ignore = NULL;

    CHECK_EQ(ignore_new(&ignore, &err), 0);
    CHECK_EQ(ignore_push(ignore, "", "*.o\n", 4, &err), 0);
    CHECK_EQ(ignore_push(ignore, "a", "!x.o\n/y\n", 8, &err), 0);
    CHECK(!ignore_matches(ignore, "a/x.o", false));
    CHECK(ignore_matches(ignore, "ab/x.o", false));
    CHECK(ignore_matches(ignore, "a/y", false));
    CHECK(!ignore_matches(ignore, "a/b/y", false));
    CHECK(!ignore_matches(ignore, "a", true));
    ignore_pop(ignore);
    CHECK(ignore_matches(ignore, "a/x.o", false));
    ignore_pop(ignore);
    ignore_pop(ignore);
    CHECK(!ignore_matches(ignore, "a/x.o", false));
}

TEST(too_many_patterns_are_refused)
{
    AUTO(ignore_free) struct ignore *ignore = NULL;
    AUTO(free) char *text = malloc(IGNORE_MAX_BYTES);

    CHECK(text);
    memset(text, '\n', IGNORE_MAX_BYTES);
    CHECK_EQ(ignore_new(&ignore, &err), 0);
    CHECK_EQ(ignore_push(ignore, "", "x", 1, &err), 0);
    CHECK_EQ(ignore_push(ignore, "", text, IGNORE_MAX_BYTES, &err), -EFBIG);
    CHECK_EQ(ignore_push(ignore, "", text, IGNORE_MAX_BYTES - 1, &err), 0);
    CHECK(ignore_matches(ignore, "x", false));
}

/*
 * Each of these is slow in some implementation; the bound on steps stops what is slow in ours.
 */
TEST(patterns_made_to_be_slow_end_and_say_so)
{
    AUTO(ignore_free) struct ignore *ignore = NULL;
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    AUTO(buf_finish) struct buf path = BUF_INIT(4096);
    uint64_t start = clock_ns();

    while (path.len < 4000)
        buf_add_str(&path, "a/");
    buf_add_str(&path, "b");
    for (int line = 0; line < 20; line++) {
        for (int i = 0; i < 200; i++)
            buf_add_str(&text, line % 2 ? "**/a*a*/" : "**/a/");
        buf_add_str(&text, "c\n");
    }
    CHECK_EQ(ignore_new(&ignore, &err), 0);
    CHECK_EQ(ignore_push(ignore, "", text.data, text.len, &err), 0);
    for (int i = 0; i < 1000000 && !ignore_is_spent(ignore); i++)
        CHECK(!ignore_matches(ignore, path.data, false));
    CHECK(ignore_is_spent(ignore));
    CHECK(clock_ns() - start < UINT64_C(100000000000));
    CHECK(!ignore_matches(ignore, "a", true));
}

/* ---- the same answers as git ---- */

static const char *const name_parts[] = { "a", "b", "ab", "A", "0", ".", "-", "_", "!", "#",
    " ", "[", "]", "\\", "^", "*", "?", ":", "\n", "\t", "\r", "\xc3\xa9", "\xff", "\x7f", "{",
    "~", "a", "b", "a", "c" };
static const char *const pattern_parts[] = { "*", "**", "?", "/", "/**/", "**/", "/**", "\\",
    "\\*", "\\ ", "[a-c]", "[!a]", "[^b-]", "[]a]", "[!]a]", "[[:alpha:]]", "[[:digit:]b]",
    "[![:space:]]", "[[:punct:]]", "[[:upper:][:cntrl:]]", "[[:nope:]]", "[[:alpha", "[[:a]",
    "[[:]", "[[::]]", "[\\]]", "[a-\\c]", "[a-", "[", "]", "[--0]", "[*-/]", "[/]", "[a/b]",
    "[[:graph:]]", "[[:print:]]", "[[:xdigit:]-z]", "[[:lower:]]", "[[:blank:]]", "[[:alnum:]]",
    "!", "#", " ", "  ", "\r", "\\/", "***", "*/", "/*", "[z-a]", "[a-a]", "[-a]", "[\\-a]",
    "[[-b]", "[[a-b]", "[!-a]", "\x01" };

static void add_name(struct random *random, struct buf *out)
{
    size_t start = out->len;

    for (unsigned i = 0, n = 1 + below(random, 3); i < n; i++)
        buf_add_str(out, name_parts[below(random, ARRAY_LEN(name_parts))]);
    if (strcmp(out->data + start, ".") == 0 || strcmp(out->data + start, "..") == 0)
        buf_add_str(out, "a");
}

/* A pattern made of a path by replacing pieces of it, so that matches are not rare. */
static void add_pattern(struct random *random, const char *path, struct buf *out)
{
    size_t len = strlen(path);

    if (below(random, 6) == 0)
        buf_add_str(out, "!");
    if (below(random, 4) == 0)
        buf_add_str(out, "/");
    size_t i = below(random, 3) == 0 ? below(random, (unsigned)len) : 0;
    if (below(random, 3) == 0 && strrchr(path, '/'))
        i = (size_t)(strrchr(path, '/') + 1 - path);
    while (i < len) {
        unsigned what = below(random, 10);
        if (what < 3)
            buf_add_str(out, pattern_parts[below(random, ARRAY_LEN(pattern_parts))]);
        if (what == 3)
            buf_add_str(out, "\\");
        if (what == 4)
            i += 1 + below(random, 3);
        if (what == 5) {
            buf_add_str(out, "*");
            i += 1 + below(random, 2);
        }
        if (what == 6) {
            buf_add_str(out, "?");
            i++;
        }
        if (i < len && path[i] != '\n')
            buf_add(out, path + i, 1);
        i++;
    }
    if (below(random, 5) == 0)
        buf_add_str(out, "/");
    if (below(random, 8) == 0)
        buf_add_str(out, pattern_parts[below(random, ARRAY_LEN(pattern_parts))]);
    buf_add_str(out, below(random, 10) == 0 ? "\r\n" : "\n");
}

#define N_PATHS 14

/* A small tree with ignore files at its top and in one directory of it. */
struct plot {
    char dir[32]; /* "" for the root of the repository */
    char *paths[N_PATHS];
    bool is_dir[N_PATHS];
    struct buf rules;
    struct buf inner_rules; /* of paths[0], when that is a directory */
};

static void add_path(struct plot *plot, size_t i, const char *path, bool is_dir)
{
    plot->paths[i] = strdup(path);
    plot->is_dir[i] = is_dir;
    CHECK(plot->paths[i]);
}

static void plan_plot(struct random *random, struct plot *plot)
{
    for (size_t i = 0; i < N_PATHS; i++) {
        AUTO(buf_finish) struct buf path = BUF_INIT(1000);
        const size_t from = i > 0 ? below(random, (unsigned)i) : 0;
        if (i > 0 && plot->is_dir[from] && below(random, 4) > 0)
            buf_addf(&path, "%s/", plot->paths[from]);
        else if (plot->dir[0])
            buf_addf(&path, "%s/", plot->dir);
        add_name(random, &path);
        add_path(plot, i, path.data, i == 0 || below(random, 2) == 0);
    }
    plot->rules = BUF_INIT(65536);
    plot->inner_rules = BUF_INIT(65536);
    if (below(random, 10) == 0)
        buf_add_str(&plot->rules, "\xef\xbb\xbf");
    size_t skip = plot->dir[0] ? strlen(plot->dir) + 1 : 0;
    for (unsigned i = 0, n = 1 + below(random, 4); i < n; i++)
        add_pattern(random, plot->paths[below(random, N_PATHS)] + skip, &plot->rules);
    if (below(random, 2))
        add_pattern(random, plot->paths[below(random, N_PATHS)] + skip, &plot->inner_rules);
}

static void write_rules(int top, const char *dir, const struct buf *rules)
{
    char path[1100];

    (void)snprintf(path, sizeof(path), "%s%s.gitignore", dir, dir[0] ? "/" : "");
    AUTO(fd_close) int fd = openat(top, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, rules->data, rules->len), 0);
}

/* Creates the tree. If two paths have the same name, the first one decides the type. */
static void make_plot(int top, struct plot *plot)
{
    if (plot->dir[0])
        CHECK_EQ(mkdirat(top, plot->dir, 0700), 0);
    for (size_t i = 0; i < N_PATHS; i++) {
        struct stat st;
        if (plot->is_dir[i])
            (void)mkdirat(top, plot->paths[i], 0700);
        else
            fd_close(openat(top, plot->paths[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        if (fstatat(top, plot->paths[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
            free(plot->paths[i]); /* a file has the name of its directory */
            plot->paths[i] = strdup(plot->paths[0]);
            CHECK(plot->paths[i]);
            st.st_mode = S_IFDIR;
        }
        plot->is_dir[i] = S_ISDIR(st.st_mode);
    }
    write_rules(top, plot->dir, &plot->rules);
    if (plot->inner_rules.len > 0)
        write_rules(top, plot->paths[0], &plot->inner_rules);
}

static void push_rules(struct ignore *ignore, const struct plot *plot, const char *dir)
{
    if (strcmp(dir, plot->dir) == 0)
        CHECK_EQ(ignore_push(ignore, dir, plot->rules.data, plot->rules.len, &err), 0);
    if (plot->inner_rules.len > 0 && strcmp(dir, plot->paths[0]) == 0)
        CHECK_EQ(ignore_push(ignore, dir, plot->inner_rules.data, plot->inner_rules.len, &err),
                0);
}

/* From the root downward, like a walk. */
static bool is_ignored(const struct plot *plot, const char *path, bool is_dir)
{
    AUTO(ignore_free) struct ignore *ignore = NULL;
    char part[1100] = "";

    CHECK_EQ(ignore_new(&ignore, &err), 0);
    push_rules(ignore, plot, "");
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        (void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        if (ignore_matches(ignore, part, true))
            return true;
        push_rules(ignore, plot, part);
    }
    return ignore_matches(ignore, path, is_dir);
}

/* One record of `check-ignore -v -n -z`: file, line, pattern, path. */
static const char *next_record(const char *at, bool *says_ignored, const char **path)
{
    const char *line = at + strlen(at) + 1;
    const char *pattern = line + strlen(line) + 1;

    *path = pattern + strlen(pattern) + 1;
    *says_ignored = pattern[0] != '\0' && pattern[0] != '!';
    return *path + strlen(*path) + 1;
}

static void compare(const struct plot *plot, const char **at, uint64_t seed, unsigned *n_yes)
{
    for (size_t i = 0; i < N_PATHS; i++) {
        const char *path;
        bool theirs;
        *at = next_record(*at, &theirs, &path);
        CHECK_STR(path, plot->paths[i]);
        bool ours = is_ignored(plot, path, plot->is_dir[i]);
        *n_yes += theirs;
        if (ours == theirs)
            continue;
        char shown[3][1000];
        test_fail(__FILE__, __LINE__,
                "seed %" PRIu64 ": git says %s of '%s' (%s) with '%s' in '%s' and '%s' in '%s'",
                seed, theirs ? "ignored" : "not ignored",
                str_escape(path, strlen(path), shown[0], sizeof(shown[0])),
                plot->is_dir[i] ? "directory" : "file",
                str_escape(plot->rules.data, plot->rules.len, shown[1], sizeof(shown[1])),
                plot->dir,
                str_escape(plot->inner_rules.data, plot->inner_rules.len, shown[2],
                        sizeof(shown[2])),
                plot->paths[0]);
    }
}

static void plot_finish(struct plot *plot)
{
    for (size_t i = 0; i < N_PATHS; i++)
        free(plot->paths[i]);
    buf_finish(plot->rules);
    buf_finish(plot->inner_rules);
}

/*
 * `n` plots in one repository, in one check-ignore process. Returns how many paths were
 * ignored.
 */
static unsigned compare_plots(size_t n, uint64_t seed)
{
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* quicker */
    char top[40];
    struct random random = { seed * 2654435761U + 1 };
    AUTO(buf_finish) struct buf input = BUF_INIT(64U << 20);
    AUTO(buf_finish) struct buf output = BUF_INIT(256U << 20);
    AUTO(free) struct plot *plots = calloc(n, sizeof(*plots));
    unsigned n_yes = 0;

    (void)snprintf(top, sizeof(top), "%s/ignore-test-XXXXXX", parent);
    CHECK(plots && test_mkdtemp(top));
    AUTO(fd_close) int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct git_program git = { .cwd = top };
    CHECK_EQ(git_program_run(&git, GIT_WORDS("init", "-q"), "", 0, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        if (n > 1)
            (void)snprintf(plots[i].dir, sizeof(plots[i].dir), "plot%zu", i);
        plan_plot(&random, &plots[i]);
        make_plot(dir, &plots[i]);
        for (size_t k = 0; k < N_PATHS; k++)
            buf_add(&input, plots[i].paths[k], strlen(plots[i].paths[k]) + 1);
    }
    int status = git_program_run(&git,
            GIT_WORDS("check-ignore", "--no-index", "-v", "-n", "-z", "--stdin"), input.data,
            input.len, &output);
    CHECK(status == 0 || status == 1); /* 1: none is ignored */
    const char *at = output.data;
    for (size_t i = 0; i < n; i++) {
        compare(&plots[i], &at, seed, &n_yes);
        plot_finish(&plots[i]);
    }
    CHECK_EQ(at - output.data, output.len);
    AUTO(fd_close) int above = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(tree_remove(above, top + strlen(parent) + 1, &err), 0);
    return n_yes;
}

/* IGNORE_TEST_ROUNDS: how many times 1000 plots. */
TEST(random_patterns_and_paths_get_the_answers_of_git)
{
    const char *rounds = getenv("IGNORE_TEST_ROUNDS");
    uint64_t n = 2;

    CHECK(!rounds || str_parse_u64(rounds, &n) == 0);
    if (rounds)
        (void)alarm(0); /* no timeout for a longer run that was requested */
    for (uint64_t seed = 1; seed <= n; seed++) {
        unsigned n_yes = compare_plots(1000, seed);
        CHECK(n_yes > 1000 && n_yes < 13000); /* both answers must be frequent */
    }
}

TEST(so_do_those_at_the_root)
{
    for (uint64_t seed = 1000; seed < 1030; seed++)
        (void)compare_plots(1, seed);
}
