/* conversion.c - reads gitattributes(5); in doubt an attribute counts as set. */
#include "git/conversion.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "git/gitdir.h"
#include "git/scope.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>

#define ATTRIBUTES_MAX ((size_t)1 << 20)

static bool is_attribute(const char *word, size_t len, const char *name)
{
    size_t name_len = strlen(name);

    return len >= name_len && memcmp(word, name, name_len) == 0 &&
           (len == name_len || word[name_len] == '=');
}

static void take_word(const char *word, size_t len, struct conversion *out)
{
    static const char *const filters[] = { "filter", "ident", "working-tree-encoding" };
    static const char *const line_ends[] = { "text", "eol", "crlf" };

    for (size_t i = 0; i < ARRAY_LEN(filters); i++)
        out->has_filters |= is_attribute(word, len, filters[i]);
    for (size_t i = 0; i < ARRAY_LEN(line_ends); i++)
        out->has_line_ends |= is_attribute(word, len, line_ends[i]);
}

/*
 * The pattern is parsed like an attribute, also if it is quoted and has blanks: that can only
 * find too many. "-text" and "!text" begin with another byte and do not count.
 */
static void take_line(const char *line, size_t len, struct conversion *out)
{
    static const char blanks[] = " \t\r\"";
    size_t at = 0;

    while (at < len && strchr(blanks, line[at]) && line[at])
        at++;
    if (at < len && line[at] == '#')
        return;
    while (at < len) {
        size_t start = at;
        while (at < len && !(line[at] && strchr(blanks, line[at])))
            at++;
        if (start > 0)
            take_word(line + start, at - start, out);
        while (at < len && line[at] && strchr(blanks, line[at]))
            at++;
    }
}

void conversion_of_attributes(const char *text, size_t len, struct conversion *out)
{
    const char *end = text + len;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline ? newline : end;
        take_line(text, (size_t)(line_end - text), out);
        text = line_end + 1;
    }
}

/*
 * An attributes file outside of commits. A missing one asks for nothing; one that is too large
 * or unreadable is treated as if it asked for every conversion.
 */
static void take_open_file(int fd, const char *path, struct sha256 *sha, struct conversion *out)
{
    AUTO(free) char *text = malloc(ATTRIBUTES_MAX);
    ssize_t len = fd < 0 || !text ? -1 : fd_read_all(fd, text, ATTRIBUTES_MAX);
    if (len < 0 || (size_t)len == ATTRIBUTES_MAX) {
        out->has_filters = out->has_line_ends = true;
        return;
    }
    conversion_of_attributes(text, (size_t)len, out);
    sha256_add(sha, path, strlen(path) + 1);
    sha256_add(sha, text, (size_t)len);
}

static void take_file(const char *path, struct sha256 *sha, struct conversion *out)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR))
        take_open_file(fd, path, sha, out);
}

/* The repository's own, which a run may have put there. */
static void take_own_file(const struct repo *repo, struct sha256 *sha, struct conversion *out)
{
    char path[2 * PATH_MAX];
    AUTO(fd_close) int fd = gitdir_open_file_in(repo->common_dir, "info/attributes");

    (void)snprintf(path, sizeof(path), "%s/info/attributes", repo->common_dir);
    if (fd != -ENOENT && fd != -ENOTDIR)
        take_open_file(fd, path, sha, out);
}

/* "core.autocrlf\nvalue": git prints the name in lower case; a name alone means true. */
static void take_setting(const char *item, struct conversion *out)
{
    const char *value = strchr(item, '\n');
    size_t len = value ? (size_t)(value - item) : strlen(item);
    value = value ? value + 1 : "true";
    bool is_no = strcasecmp(value, "false") == 0 || strcasecmp(value, "no") == 0 ||
                 strcasecmp(value, "off") == 0 || strcmp(value, "0") == 0 || !value[0];

    if (len == 13 && memcmp(item, "core.autocrlf", len) == 0)
        out->has_line_ends |= !is_no;
    if (len == 8 && memcmp(item, "core.eol", len) == 0)
        out->has_line_ends |= strcasecmp(value, "crlf") == 0;
    if ((len == 13 && memcmp(item, "core.filemode", len) == 0) ||
            (len == 13 && memcmp(item, "core.symlinks", len) == 0))
        out->has_filters |= is_no;
}

static int take_configuration(const struct git *git, struct sha256 *sha, struct conversion *out,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(ATTRIBUTES_MAX);
    struct git_io io = GIT_IO_INIT;

    io.output = &text;
    int r = git_run(git,
            GIT_ARGS("config", "-z", "--get-regexp",
                    "^(core\\.(autocrlf|eol|filemode|symlinks|safecrlf)|filter\\..*)$"),
            &io, err);
    if (r < 0)
        return r;
    if (r > 1) /* 1: nothing matches */
        return err_set(err, -EIO, "git cannot read its configuration");
    sha256_add(sha, text.data, text.len);
    for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1)
        take_setting(text.data + at, out);
    return 0;
}

int conversion_global_attributes(
        const struct git *git, char path[static PATH_MAX], struct carrel_error *err)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int r = scope_users_path(git, "core.attributesFile", path, err);

    if (r != 0)
        return r < 0 ? r : 0;
    path[0] = '\0';
    if (config && config[0])
        (void)snprintf(path, PATH_MAX, "%s/git/attributes", config);
    else if (home && home[0])
        (void)snprintf(path, PATH_MAX, "%s/.config/git/attributes", home);
    return 0;
}

int conversion_of_settings(
        const struct repo *repo, struct conversion *out, struct carrel_error *err)
{
    const struct git git = repo_user_git(repo);
    struct conversion found = { 0 };
    char path[PATH_MAX] = "";
    struct sha256 sha;

    sha256_init(&sha);
    int r = take_configuration(&git, &sha, &found, err);
    if (r == 0)
        r = conversion_global_attributes(&git, path, err);
    if (r < 0)
        return err_wrap(err, r, "read the configuration of '%s'", repo->common_dir);
    if (path[0])
        take_file(path, &sha, &found);
    take_own_file(repo, &sha, &found);
    take_file("/etc/gitattributes", &sha, &found);
    sha256_finish_hex(&sha, found.digest);
    *out = found;
    return 0;
}
