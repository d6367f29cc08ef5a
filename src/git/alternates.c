/* alternates.c - objects/info/alternates, as gitrepository-layout(5) has it. */
#include "git/alternates.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/gitdir.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)64 << 10)
#define DEPTH_MAX 5 /* as git */
#define DIRS_MAX 64

struct list {
    char **paths;
    size_t n;
};

/* Takes the quotes off a line of an alternates file, in place. False: they do not match. */
static bool unquote(char *text)
{
    static const char from[] = "abfnrtv\\\"", to[] = "\a\b\f\n\r\t\v\\\"";
    char *out = text;

    for (const char *at = text + 1; *at != '"'; at++) {
        if (*at == '\0')
            return false;
        if (*at != '\\') {
            *out++ = *at;
            continue;
        }
        at++;
        const char *found = *at ? strchr(from, *at) : NULL;
        if (found) {
            *out++ = to[found - from];
        } else {
            unsigned byte = 0;
            for (int i = 0; i < 3; i++, at++) {
                if (*at < '0' || *at > '7')
                    return false;
                byte = byte * 8 + (unsigned)(*at - '0');
            }
            at--;
            *out++ = (char)byte;
        }
    }
    *out = '\0';
    return true;
}

static int add_objects(
        struct list *list, int at, const char *path, unsigned depth, struct carrel_error *err);

static int follow_alternates(
        struct list *list, int dir, unsigned depth, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = { 0 };
    char *rest = NULL;

    /* git passes over what it cannot read here, with a complaint when an object is missing. */
    if (gitdir_load(dir, "info/alternates", FILE_MAX, &text) < 0 || !text.data)
        return 0;
    for (char *line = strtok_r(text.data, "\n", &rest); line;
            line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '#' || (line[0] == '"' && !unquote(line)))
            continue;
        int r = add_objects(list, dir, line, depth + 1, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Adds an object directory and those that it borrows from. */
static int add_objects(
        struct list *list, int at, const char *path, unsigned depth, struct carrel_error *err)
{
    AUTO(free) char *canonical = NULL;

    AUTO(fd_close) int dir = gitdir_open(at, path);
    if (dir < 0)
        return 0; /* as git: an alternate that is gone is not an error until it is missed */
    int r = gitdir_path(dir, &canonical, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->paths[i], canonical) == 0)
            return 0;
    if (list->n >= DIRS_MAX)
        return err_set(err, -E2BIG, "the repository borrows objects from more than %d places",
                DIRS_MAX);
    list->paths[list->n++] = ptr_steal(&canonical);
    return depth < DEPTH_MAX ? follow_alternates(list, dir, depth, err) : 0;
}

void alternates_free(char **paths)
{
    for (size_t i = 0; paths && paths[i]; i++)
        free(paths[i]);
    free(paths);
}

int alternates_list(int common, char ***out, struct carrel_error *err)
{
    struct list list = { .paths = calloc(DIRS_MAX + 1, sizeof(*list.paths)) };

    if (!list.paths)
        return err_set_errno(err, -ENOMEM, "list object directories");
    int r = add_objects(&list, common, "objects", 0, err);
    if (r == 0 && list.n == 0)
        r = err_set(err, -ENOENT, "the repository has no object directory");
    if (r < 0) {
        alternates_free(list.paths);
        return r;
    }
    *out = list.paths;
    return 0;
}
