#include "base/clock.h"
#include "workspace/upper_fixture.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

TEST(an_empty_upper_has_no_changes)
{
    struct place place;

    make_place(&place);
    put(&place, "tree/a", "a");
    put_dir(&place, "upper/empty");
    CHECK_STR(walked(&place), "");
    drop_place(&place);
}

TEST(files_programs_and_links_are_changes_with_their_sizes)
{
    struct place place;

    make_place(&place);
    put(&place, "tree/b", "old");
    put(&place, "upper/b", "newer");
    put(&place, "upper/a", "x\r\n");
    CHECK_EQ(fchmodat(place.fd, "upper/a", 0711, 0), 0);
    put_dir(&place, "upper/d");
    CHECK_EQ(symlinkat("target", place.upper, "d/link"), 0);
    CHECK_STR(walked(&place), "*a b @d/link");
    CHECK_EQ(changes.items[0].size, 3);
    CHECK_EQ(changes.items[1].size, 5);
    CHECK_EQ(changes.items[2].size, 6);
    CHECK_EQ(changes.bytes, 14);
    CHECK(changes.has_cr && !changes.has_attributes);
    drop_place(&place);
}

TEST(whiteouts_remove_what_base_has_and_nothing_else)
{
    struct place place;

    make_place(&place);
    put(&place, "tree/file", "");
    put_dir(&place, "tree/dir");
    put(&place, "tree/dir/file", "");
    put(&place, "tree/hidden", "");
    put_whiteout(&place, "layer/hidden");
    put_whiteout(&place, "upper/file");
    put_whiteout(&place, "upper/dir");
    put_whiteout(&place, "upper/hidden");
    put_whiteout(&place, "upper/never there");
    CHECK_STR(walked(&place), "-dir -file");
    drop_place(&place);
}

TEST(an_opaque_directory_removes_the_one_below)
{
    struct place place;

    make_place(&place);
    put_dir(&place, "tree/d");
    put_dir(&place, "tree/d/sub");
    put(&place, "tree/d/sub/x", "");
    put(&place, "tree/d/.gitignore", "*\n"); /* removed too, so it hides nothing */
    put_dir(&place, "upper/d");
    put_dir(&place, "upper/d/sub");
    put(&place, "upper/d/sub/y", "");
    put_dir(&place, "upper/new");
    mark(&place, "upper/d", "user.overlay.opaque", "y");
    mark(&place, "upper/d/sub", "user.overlay.opaque", "y");
    mark(&place, "upper/new", "user.overlay.opaque", "y");
    CHECK_STR(walked(&place), "-d d/sub/y");
    drop_place(&place);
}

TEST(files_and_directories_change_places)
{
    struct place place;

    make_place(&place);
    put(&place, "tree/file", "");
    put_dir(&place, "tree/dir");
    put(&place, "tree/dir/x", "");
    put_dir(&place, "upper/file");
    put(&place, "upper/file/y", "");
    put(&place, "upper/dir", "");
    CHECK_STR(walked(&place), "-dir -file dir file/y");
    drop_place(&place);
}

/* Whatever the rules say, including the run's own. */
TEST(what_was_carried_along_is_no_change_unless_it_is_tracked)
{
    static const char *const included[] = { ".env", "conf/key", "dir", "mine" };
    static const char *const tracked[] = { "mine" };
    struct place place;

    make_place(&place);
    place.base.included = included;
    place.base.n_included = ARRAY_LEN(included);
    place.base.tracked = tracked;
    place.base.n_tracked = ARRAY_LEN(tracked);
    put(&place, "upper/.env", "secret");
    put(&place, "upper/.gitignore", "!.env\n!conf/key\n");
    put_dir(&place, "upper/conf");
    put(&place, "upper/conf/key", "secret");
    put(&place, "upper/conf/keys", "");
    put_dir(&place, "upper/dir"); /* no longer what was included */
    put(&place, "upper/dir/.env", "");
    put(&place, "upper/mine", "");
    CHECK_STR(walked(&place), ".gitignore conf/keys dir/.env mine");
    place.base.has_no_rules = true;
    CHECK_STR(walked(&place), ".gitignore conf/keys dir/.env mine");
    drop_place(&place);
}

/* In a layer, too, an opaque directory hides what is below it. */
TEST(the_base_is_read_as_its_layers_are_stacked)
{
    struct place place;

    make_place(&place);
    put_dir(&place, "tree/d");
    put(&place, "tree/d/below", "");
    put_dir(&place, "layer/d");
    put(&place, "layer/d/above", "");
    put_dir(&place, "upper/d");
    put_whiteout(&place, "upper/d/above");
    put_whiteout(&place, "upper/d/below");
    CHECK_STR(walked(&place), "-d/above -d/below");
    mark(&place, "layer/d", "user.overlay.opaque", "y");
    CHECK_STR(walked(&place), "-d/above");
    drop_place(&place);
}

TEST(ignored_files_are_left_out_unless_they_are_tracked)
{
    static const char *const tracked[] = { "added.o", "gone.o", "out/deep/kept" };
    struct place place;

    make_place(&place);
    put(&place, "tree/.gitignore", "*.o\nout/\n");
    put(&place, "tree/old.o", "");
    put(&place, "upper/old.o", "changed");
    put(&place, "upper/new.o", "");
    put(&place, "upper/added.o", "");
    put(&place, "upper/x.tmp", "");
    put_dir(&place, "upper/out");
    put_dir(&place, "upper/out/.git");
    put(&place, "upper/out/junk", "");
    place.base.exclude = "*.tmp\n";
    CHECK_STR(walked(&place), "old.o");
    put_dir(&place, "upper/out/deep");
    put(&place, "upper/out/deep/kept", "");
    put(&place, "upper/out/deep/junk", "");
    place.base.tracked = tracked;
    place.base.n_tracked = 3;
    CHECK_STR(walked(&place), "-gone.o added.o old.o out/deep/kept|repository out/.git");
    place.base.n_tracked = 0;
    place.base.has_no_rules = true;
    CHECK_STR(walked(&place), "added.o new.o old.o out/deep/junk out/deep/kept out/junk x.tmp"
                              "|repository out/.git");
    drop_place(&place);
}

TEST(the_rules_of_the_upper_come_before_those_below)
{
    struct place place;

    make_place(&place);
    put_dir(&place, "tree/d");
    put(&place, "tree/d/.gitignore", "*.o\n");
    put_dir(&place, "upper/d");
    put(&place, "upper/d/x.o", "");
    put(&place, "upper/d/x.p", "");
    CHECK_STR(walked(&place), "d/x.p");
    put(&place, "upper/d/.gitignore", "*.p\n");
    CHECK_STR(walked(&place), "d/.gitignore d/x.o");
    CHECK_EQ(unlinkat(place.upper, "d/.gitignore", 0), 0);
    CHECK_EQ(symlinkat("x.p", place.upper, "d/.gitignore"), 0);
    CHECK_STR(walked(&place), "@d/.gitignore d/x.o d/x.p");
    CHECK_EQ(unlinkat(place.upper, "d/.gitignore", 0), 0);
    put_whiteout(&place, "upper/d/.gitignore");
    CHECK_STR(walked(&place), "-d/.gitignore d/x.o d/x.p");
    drop_place(&place);
}

TEST(attributes_are_noticed_also_when_they_are_ignored)
{
    struct place place;

    make_place(&place);
    put(&place, "upper/.gitmodules", "");
    place.base.exclude = ".git*s\n";
    CHECK_STR(walked(&place), "");
    CHECK(!changes.has_attributes);
    place.base.exclude = "";
    CHECK_STR(walked(&place), ".gitmodules");
    CHECK(changes.has_attributes);
    CHECK_EQ(unlinkat(place.upper, ".gitmodules", 0), 0);
    put(&place, "upper/.gitattributes", "");
    place.base.exclude = ".git*s\n";
    CHECK_STR(walked(&place), "");
    CHECK(changes.has_attributes);
    drop_place(&place);
}

TEST(repositories_within_are_reported_and_never_entered)
{
    struct place place;

    make_place(&place);
    put(&place, "upper/.git", "gitdir: ours");
    put_dir(&place, "upper/.GIT");
    put(&place, "upper/.GIT/config", "");
    put(&place, "upper/git~1", "");
    put_dir(&place, "upper/a");
    put_dir(&place, "upper/a/b");
    put(&place, "upper/a/b/file", "");
    put(&place, "upper/a/b/.Git", "gitdir: theirs");
    put_dir(&place, "upper/a/.git");
    put(&place, "upper/a/.git/config", "");
    put(&place, "upper/a/.gitx", "");
    CHECK_STR(walked(&place), "a/.gitx a/b/file|repository .GIT|repository a/.git"
                              "|repository a/b/.Git|repository git~1");
    drop_place(&place);
}

TEST(what_is_no_file_is_reported_and_never_opened)
{
    struct place place;
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    make_place(&place);
    CHECK_EQ(mkfifoat(place.upper, "fifo", 0600), 0);
    CHECK_EQ(mkfifoat(place.upper, ".gitignore", 0600), 0);
    put(&place, "tree/was a file", "");
    CHECK_EQ(mkfifoat(place.upper, "was a file", 0600), 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/upper/sock", place.dir);
    AUTO(fd_close) int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(sock, (const struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_STR(walked(&place),
            "-was a file|special .gitignore|special fifo|special sock|special was a file");
    if (mknodat(place.upper, "device", S_IFCHR | 0600, makedev(1, 3)) == 0)
        CHECK_STR(walked(&place), "-was a file|special .gitignore|special device|special fifo"
                                  "|special sock|special was a file");
    drop_place(&place);
}

TEST(submodules_are_reported_and_never_entered)
{
    static const char *const gitlinks[] = { "gone", "lib/touched", "now a file", "same" };
    struct place place;

    make_place(&place);
    place.base.gitlinks = gitlinks;
    place.base.n_gitlinks = 4;
    put_dir(&place, "tree/gone");
    put_dir(&place, "tree/lib");
    put_dir(&place, "tree/lib/touched");
    put_dir(&place, "tree/now a file");
    put_dir(&place, "tree/same");
    put_dir(&place, "upper/lib");
    put_dir(&place, "upper/lib/touched");
    put(&place, "upper/lib/touched/x", "");
    put(&place, "upper/now a file", "");
    put_dir(&place, "upper/same");
    put_whiteout(&place, "upper/gone");
    CHECK_STR(walked(&place), "-gone -now a file now a file|gitlink lib/touched");
    drop_place(&place);
}

TEST(names_are_bytes)
{
    struct place place;

    make_place(&place);
    put(&place, "upper/\n", "");
    put(&place, "upper/\xff\xfe", "");
    put(&place, "upper/ ", "");
    put_dir(&place, "upper/-rf");
    put(&place, "upper/-rf/\x01\x7f", "");
    CHECK_STR(walked(&place), "\n   -rf/\x01\x7f \xff\xfe");
    drop_place(&place);
}

/* `n` nested directories, with a file in the last; returns the last one. */
static int dig(const struct place *place, int n, const char *name)
{
    int at = openat(place->upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < n; i++) {
        CHECK_EQ(mkdirat(at, name, 0755), 0);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        fd_close(at);
        at = next;
    }
    fd_close(openat(at, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    return at;
}

/* Removes them again, from the last one upward. */
static void fill_up(const struct place *place, int at, const char *name)
{
    struct stat top;
    struct stat st;

    CHECK_EQ(fstat(place->upper, &top), 0);
    CHECK_EQ(unlinkat(at, "file", 0), 0);
    while (fstat(at, &st) == 0 && st.st_ino != top.st_ino) {
        int up = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(up >= 0);
        fd_close(at);
        at = up;
        CHECK_EQ(unlinkat(at, name, AT_REMOVEDIR), 0);
    }
    fd_close(at);
}

TEST(depth_is_bounded_and_costs_no_descriptors)
{
    const struct rlimit few = { 20, 20 };
    struct place place;

    make_large_place(&place);
    int last = dig(&place, 900, "d");
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    CHECK_EQ(walk(&place), 0);
    CHECK_EQ(changes.n, 1);
    CHECK_EQ(strlen(changes.items[0].path), 900 * 2 + 4);
    fill_up(&place, last, "d");
    drop_place(&place);
}

TEST(three_thousand_directories_in_each_other_are_refused)
{
    const char *const names[] = { "d", "a long name, so that no path can say where it is" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct place place;
        uint64_t bytes = 0;
        uint64_t inodes = 0;
        make_large_place(&place);
        int last = dig(&place, 3000, names[i]);
        CHECK_EQ(walk(&place), -ELOOP);
        CHECK(strstr(err.message, i == 0 ? "1000 deep" : "4095 bytes"));
        CHECK_EQ(upper_usage(place.upper, UINT64_MAX, &bytes, &inodes, &err),
                0); /* but counted */
        CHECK_EQ(inodes, 3001);
        place.base.exclude = "d\na?long*\n"; /* ignored, they do not matter */
        CHECK_STR(walked(&place), "");
        fill_up(&place, last, names[i]);
        drop_place(&place);
    }
}

TEST(limits_hold)
{
    struct place place;
    struct upper_limits limits = UPPER_LIMITS_INIT;

    make_place(&place);
    put(&place, "upper/a", "123");
    put(&place, "upper/b", "456");
    CHECK_EQ(mkfifoat(place.upper, "c", 0600), 0);
    limits.max_changes = 3;
    limits.max_bytes = 6;
    CHECK_EQ(upper_walk(place.upper, &place.base, &limits, &changes, &err), 0);
    changes_finish(&changes);
    limits.max_changes = 2;
    CHECK_EQ(upper_walk(place.upper, &place.base, &limits, &changes, &err), -E2BIG);
    limits.max_changes = 3;
    limits.max_bytes = 5;
    CHECK_EQ(upper_walk(place.upper, &place.base, &limits, &changes, &err), -EFBIG);
    CHECK_EQ(changes.n, 0);
    drop_place(&place);
}

/* A hole costs the run nothing, and reading it takes time. */
TEST(no_more_bytes_than_allowed_are_searched_for_line_ends)
{
    struct place place;
    struct upper_limits limits = UPPER_LIMITS_INIT;

    make_place(&place);
    put(&place, "upper/file", "\r");
    limits.max_cr_bytes = 1;
    CHECK_EQ(upper_walk(place.upper, &place.base, &limits, &changes, &err), 0);
    CHECK(changes.has_cr);
    changes_finish(&changes);
    AUTO(fd_close) int fd = openat(place.upper, "file", O_WRONLY | O_CLOEXEC);
    CHECK_EQ(ftruncate(fd, 1000), 0);
    limits.max_cr_bytes = 999;
    CHECK_EQ(upper_walk(place.upper, &place.base, &limits, &changes, &err), 0);
    CHECK(!changes.has_cr);
    CHECK_EQ(changes.bytes, 1000);
    drop_place(&place);
}

/* Hard links: a hundred names of 2 KB each cost the run next to nothing. */
TEST(the_paths_together_are_limited_and_so_are_directories_that_wait)
{
    static const char name[] = "some-long-name-some-long-name-some-long-name-some-long-name";
    struct place place;
    struct upper_limits limits = UPPER_LIMITS_INIT;
    char link[20];

    make_place(&place);
    int last = dig(&place, 30, name);
    put(&place, "upper/0", "");
    for (int i = 1; i <= 100; i++) {
        (void)snprintf(link, sizeof(link), "%d", i);
        CHECK_EQ(linkat(place.upper, "0", last, link, 0), 0);
    }
    limits.max_path_bytes = 200 << 10;
    CHECK_EQ(upper_walk(place.upper, &place.base, &limits, &changes, &err), 0);
    CHECK_EQ(changes.n, 102);
    changes_finish(&changes);
    limits.max_path_bytes = 100 << 10;
    CHECK_EQ(upper_walk(place.upper, &place.base, &limits, &changes, &err), -EFBIG);
    CHECK_STR(err.message, "the paths of the workspace have more than 102400 bytes");
    CHECK_EQ(changes.n, 0);
    fd_close(last);
    drop_place(&place);

    make_place(&place);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(link, sizeof(link), "upper/%d", i);
        put_dir(&place, link);
    }
    limits.max_path_bytes = 10 << 10;
    CHECK_EQ(upper_walk(place.upper, &place.base, &limits, &changes, &err), -EFBIG);
    drop_place(&place);
}

/* A directory releases its path: only those that wait at the same time count. */
TEST(many_directories_one_after_the_other_are_no_matter)
{
    struct place place;
    struct upper_limits limits = UPPER_LIMITS_INIT;
    char dir[40];

    make_place(&place);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(dir, sizeof(dir), "upper/%d", i);
        put_dir(&place, dir);
        for (int j = 0; j < 20; j++) {
            (void)snprintf(dir, sizeof(dir), "upper/%d/%d", i, j);
            put_dir(&place, dir);
        }
    }
    limits.max_path_bytes = 8 << 10; /* 40 of them, not 420 */
    CHECK_EQ(upper_walk(place.upper, &place.base, &limits, &changes, &err), 0);
    drop_place(&place);
}

TEST(rules_made_to_be_slow_or_large_are_refused)
{
    struct place place;

    make_large_place(&place);
    AUTO(fd_close)
    int fd = openat(place.upper, ".gitignore", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    for (int i = 0; i < 600; i++)
        CHECK_EQ(fd_write_all(fd, "**/a/**/a/**/a*a/**/a/**/c\n", 27), 0);
    int last = dig(&place, 900, "a");
    CHECK_EQ(walk(&place), -E2BIG);
    CHECK(strstr(err.message, ".gitignore"));
    CHECK_EQ(ftruncate(fd, 1 << 30), 0);
    CHECK_EQ(walk(&place), -EFBIG);
    fill_up(&place, last, "a");
    drop_place(&place);
}

TEST(what_cannot_be_opened_is_reported)
{
    struct place place;

    make_place(&place);
    put(&place, "upper/shut", "");
    put_dir(&place, "upper/shut dir");
    put(&place, "upper/open", "");
    CHECK_EQ(fchmodat(place.fd, "upper/shut", 0, 0), 0);
    CHECK_EQ(fchmodat(place.fd, "upper/shut dir", 0, 0), 0);
    CHECK_EQ(fchmod(place.fd, 0755), 0);
    if (getuid() == 0) /* root can open everything: switch to another user */
        CHECK_EQ(seteuid(65534), 0);
    int r = walk(&place);
    CHECK_EQ(seteuid(getuid()), 0);
    CHECK_EQ(r, 0);
    CHECK_STR(shown(), "open|unreadable shut|unreadable shut dir");
    drop_place(&place);
}

/* An attacker that is still active swaps a directory and a file for links to elsewhere. */
static void swap_for_ever(const struct place *place)
{
    (void)symlinkat(place->paths[1], place->fd, "dir link");
    (void)symlinkat("/etc/passwd", place->fd, "file link");
    for (;;) {
        (void)syscall(SYS_renameat2, place->fd, "upper/d", place->fd, "dir link", 2);
        (void)syscall(SYS_renameat2, place->fd, "upper/f", place->fd, "file link", 2);
    }
}

TEST(a_swap_for_a_link_leads_nowhere)
{
    struct place place;
    unsigned n_seen[2] = { 0, 0 };

    make_place(&place);
    put(&place, "tree/secret", "");
    put_dir(&place, "upper/d");
    put(&place, "upper/d/mine", "");
    put(&place, "upper/f", "");
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        swap_for_ever(&place);
    for (int i = 0; i < 20000 && (i < 2000 || !n_seen[0] || !n_seen[1]); i++) {
        int r = walk(&place);
        if (r != 0 && r != -ESTALE)
            test_fail(__FILE__, __LINE__, "%s", err.message);
        n_seen[r == 0]++;
        for (size_t k = 0; k < changes.n; k++) {
            CHECK(!strstr(changes.items[k].path, "secret"));
            CHECK(strcmp(changes.items[k].path, "f") != 0 ||
                    changes.items[k].kind == CHANGE_LINK || changes.items[k].size == 0);
        }
    }
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK(n_seen[1] > 0);
    drop_place(&place);
}

#ifndef __has_feature /* clang's way to say what gcc says with __SANITIZE_ADDRESS__ */
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define WALK_MAX_NS 10000000
#else
#define WALK_MAX_NS 1000000
#endif

/* 50,000 files in the base: only the changes take time. */
TEST(ten_changes_in_a_large_tree_are_listed_in_less_than_a_millisecond)
{
    struct place place;
    char path[80];
    uint64_t best = UINT64_MAX;

    make_large_place(&place);
    place.lower[0] = place.paths[1];
    place.lower[1] = NULL;
    put(&place, "tree/.gitignore", "*.o\nbuild/\n*~\n/tmp\n");
    for (int i = 0; i < 500; i++) {
        (void)snprintf(path, sizeof(path), "tree/d%d", i);
        put_dir(&place, path);
        for (int k = 0; k < 100; k++) {
            (void)snprintf(path, sizeof(path), "tree/d%d/file%d", i, k);
            CHECK_EQ(mknodat(place.fd, path, S_IFREG | 0644, 0), 0);
        }
    }
    for (int i = 0; i < 10; i++) {
        (void)snprintf(path, sizeof(path), "upper/d%d", i * 50);
        put_dir(&place, path);
        (void)snprintf(path, sizeof(path), "upper/d%d/%s", i * 50, i % 2 ? "file7" : "new");
        put(&place, path, "some text\n");
    }
    for (int i = 0; i < 50; i++) {
        uint64_t start = clock_ns();
        CHECK_EQ(walk(&place), 0);
        uint64_t took = clock_ns() - start;
        best = took < best ? took : best;
        CHECK_EQ(changes.n, 10);
    }
    if (best >= WALK_MAX_NS)
        test_fail(__FILE__, __LINE__, "it took %ju us", (uintmax_t)(best / 1000));
    drop_place(&place);
}

TEST(overlay_attributes_that_we_never_write_are_refused)
{
    static const struct {
        const char *path, *name, *value;
        int result;
    } cases[] = {
        { "upper/f", "user.overlay.redirect", "/elsewhere", -EUCLEAN },
        { "upper/d", "user.overlay.redirect", "elsewhere", -EUCLEAN },
        { "upper/f", "user.overlay.metacopy", "", -EUCLEAN },
        { "upper/f", "user.overlay.whiteout", "y", -EUCLEAN },
        { "upper/f", "user.overlay.opaque", "y", -EUCLEAN },
        { "upper/d", "user.overlay.opaque", "x", -EUCLEAN },
        { "upper/d", "user.overlay.opaque", "", -EUCLEAN },
        { "upper/d", "user.overlay.opaque", "yy", -EUCLEAN },
        { "upper/d", "user.overlay.opaque", "yes, quite long", -EUCLEAN },
        { "upper", "user.overlay.opaque", "y", -EUCLEAN },
        { "upper/d", "user.overlay.somethingnew", "y", -EUCLEAN },
        { "upper/f", "trusted.overlay.metacopy", "", -EUCLEAN },
        { "upper/d", "trusted.overlay.redirect", "a", -EUCLEAN },
        { "upper/f", "user.overlay.origin", "anything", 0 },
        { "upper/d", "user.overlay.impure", "y", 0 },
        { "upper/d", "user.overlay.overlay.opaque", "y",
                0 }, /* by the run, through the mount */
        { "upper/f", "user.overlay.overlay.redirect", "y", 0 },
        { "upper/f", "user.something", "y", 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct place place;
        if (strncmp(cases[i].name, "trusted.", 8) == 0 && geteuid() != 0)
            continue;
        make_place(&place);
        put(&place, "upper/f", "");
        put_dir(&place, "upper/d");
        put_dir(&place, "tree/d");
        put(&place, "tree/d/x", "");
        mark(&place, cases[i].path, cases[i].name, cases[i].value);
        CHECK_EQ(walk(&place), cases[i].result);
        CHECK(cases[i].result == 0 || strstr(err.message, "overlay attribute"));
        CHECK_STR(shown(), cases[i].result == 0 ? "f" : "");
        drop_place(&place);
    }
}

TEST(many_attributes_do_not_hide_one)
{
    struct place place;
    char name[64];

    make_place(&place);
    put(&place, "upper/f", "");
    for (int i = 0; i < 60; i++) {
        (void)snprintf(name, sizeof(name), "user.an attribute with a long name %d", i);
        mark(&place, "upper/f", name, "");
    }
    CHECK_EQ(walk(&place), 0);
    mark(&place, "upper/f", "user.overlay.metacopy", "");
    CHECK_EQ(walk(&place), -EUCLEAN);
    drop_place(&place);
}
