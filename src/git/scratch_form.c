/* scratch_form.c - the user's settings that decide how git writes files. */
#include "base/err.h"
#include "base/fd.h"
#include "git/conversion.h"
#include "git/gitdir.h"
#include "git/scratch.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define SETTINGS_MAX ((size_t)1 << 20)
#define ATTRIBUTES_MAX ((size_t)64 << 20)

/* Adds the user's attributes from one file, if it exists. */
static int add_attributes(struct buf *text, const char *path, struct carrel_error *err)
{
    char chunk[4096];
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return err_set_errno(err, -errno, "read '%s'", path);

    for (ssize_t n = sizeof(chunk); n == (ssize_t)sizeof(chunk);) {
        n = fd_read_all(fd, chunk, sizeof(chunk));
        if (n < 0)
            return err_set_errno(err, (int)n, "read '%s'", path);
        buf_add(text, chunk, (size_t)n);
    }
    buf_add_str(text, "\n");
    return text->is_short ? err_set(err, -EFBIG, "'%s' is too large", path) : 0;
}

static int write_file(const char *path, const struct buf *text, int flags)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

    return fd < 0 ? -errno : fd_write_all(fd, text->data, text->len);
}

/* Replaces the attributes that unset every conversion by the user's info/attributes. */
static int take_own_attributes(
        const struct scratch *scratch, const struct repo *repo, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(ATTRIBUTES_MAX);
    char path[PATH_MAX];

    int r = gitdir_load_from(repo->common_dir, "info/attributes", &text);
    if (r < 0 && r != -ENOENT && r != -ENOTDIR)
        return err_set_errno(err, r, "read '%s/info/attributes'", repo->common_dir);
    buf_add_str(&text, "\n");
    (void)snprintf(path, sizeof(path), "%s/info/attributes", scratch->path);
    r = write_file(path, &text, O_TRUNC);
    return r < 0 ? err_set_errno(err, r, "write '%s'", path) : 0;
}

/*
 * Those of the system, and after them those of the user's configuration, which have precedence.
 */
static int take_global_attributes(const struct scratch *scratch, const struct git *user,
        char **setting, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(ATTRIBUTES_MAX);
    const char *no_system = getenv("GIT_ATTR_NOSYSTEM");
    char path[PATH_MAX] = "";

    int r = conversion_global_attributes(user, path, err);
    if (r == 0 && (!no_system || !no_system[0]))
        r = add_attributes(&text, "/etc/gitattributes", err);
    if (r == 0 && path[0])
        r = add_attributes(&text, path, err);
    if (r < 0)
        return r;
    if (asprintf(setting, "core.attributesFile=%s/attributes", scratch->path) < 0) {
        *setting = NULL;
        return err_set_errno(err, -ENOMEM, "attributes");
    }
    r = write_file(strchr(*setting, '=') + 1, &text, O_TRUNC);
    return r < 0 ? err_set_errno(err, r, "write '%s'", *setting) : 0;
}

static bool is_word(const char *value)
{
    size_t n = 0;

    while (isalnum((unsigned char)value[n]))
        n++;
    return n > 0 && !value[n];
}

/* The user's settings of line ends; of several values the last one counts. */
static int take_line_ends(
        const struct scratch *scratch, const struct git *user, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf found = BUF_INIT(SETTINGS_MAX);
    AUTO(buf_finish) struct buf text = BUF_INIT(SETTINGS_MAX);
    struct git_io io = GIT_IO_INIT;
    char path[PATH_MAX];

    io.output = &found;
    int r = git_run(user, GIT_ARGS("config", "-z", "--get-regexp", "^core\\.(autocrlf|eol)$"),
            &io, err);
    if (r > 1) /* 1: nothing matches */
        r = -EIO;
    if (r < 0)
        return r;
    buf_add_str(&text, "[core]\n");
    for (size_t at = 0; at < found.len; at += strlen(found.data + at) + 1) {
        const char *item = found.data + at;
        const char *value = strchr(item, '\n');
        if (!value)
            buf_addf(&text, "\t%s\n", strchr(item, '.') + 1);
        else if (is_word(value + 1))
            buf_addf(&text, "\t%.*s = %s\n", (int)(value - item) - 5, item + 5, value + 1);
    }
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "settings");
    (void)snprintf(path, sizeof(path), "%s/config", scratch->path);
    r = write_file(path, &text, O_APPEND);
    return r < 0 ? err_set_errno(err, r, "write '%s'", path) : 0;
}

int scratch_take_form(const struct scratch *scratch, const struct repo *repo,
        const struct git *user, char **attributes, struct carrel_error *err)
{
    int r = take_own_attributes(scratch, repo, err);

    if (r == 0)
        r = take_global_attributes(scratch, user, attributes, err);
    if (r == 0)
        r = take_line_ends(scratch, user, err);
    return r < 0 ? err_wrap(err, r, "find out how your git writes files") : 0;
}
