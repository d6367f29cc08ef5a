/* stack.c - the list of layers, and the step by which a workspace gets one more. */
#include "workspace/stack.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "workspace/workspace.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int stack_list(const struct workspace *ws, char ids[static STACK_MAX][STACK_ID_MAX])
{
    int n = 0;

    for (const char *at = ws->layers ? ws->layers : ""; *at;) {
        size_t len = strcspn(at, " ");
        if (n == STACK_MAX || len == 0 || len >= STACK_ID_MAX)
            return -EBADMSG;
        memcpy(ids[n], at, len);
        ids[n][len] = '\0';
        if (!path_is_name(ids[n++]))
            return -EBADMSG;
        at += len + (at[len] == ' ');
    }
    return n;
}

char *stack_text(char ids[][STACK_ID_MAX], size_t n)
{
    AUTO(buf_finish) struct buf text = BUF_INIT((size_t)STACK_MAX * STACK_ID_MAX);

    buf_add(&text, "", 0);
    for (size_t i = 0; i < n; i++)
        buf_addf(&text, "%s%s", i ? " " : "", ids[i]);
    return text.is_short ? NULL : strdup(text.data);
}

static bool is_empty(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    bool is_found = !list;

    if (!list) {
        fd_close(fd);
        return false;
    }
    while (!is_found && (entry = readdir(list)))
        is_found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(list);
    return !is_found;
}

bool stack_is_fresh(const struct workspace *ws)
{
    return is_empty(ws->dir, "upper") && (ws->is_folder || is_empty(ws->dir, "gitupper"));
}

int stack_replace(
        struct workspace *ws, char ids[][STACK_ID_MAX], size_t n, struct carrel_error *err)
{
    char *text = n > STACK_MAX ? NULL : stack_text(ids, n);

    if (!text)
        return n > STACK_MAX
                       ? err_set(err, -E2BIG, "workspace '%s' has too many layers", ws->run)
                       : err_set_errno(err, -ENOMEM, "layers");
    char *before = ws->layers;
    ws->layers = text;
    int r = workspace_save(ws, err);
    if (r < 0) {
        free(ws->layers);
        ws->layers = before;
        return r;
    }
    free(before);
    return 0;
}

int stack_put(struct workspace *ws, int layer, const char *id, struct carrel_error *err)
{
    static const char *const parts[] = { "upper", "gitupper" };
    char ids[STACK_MAX + 1][STACK_ID_MAX];
    const size_t n_parts = ws->is_folder ? 1 : 2;

    int n = stack_list(ws, ids + 1);
    if (n < 0)
        return err_set(
                err, n, "the record of workspace '%s' has a damaged list of layers", ws->run);
    for (size_t i = 0; i < n_parts; i++)
        if (!is_empty(layer, parts[i]))
            return err_set(err, -ENOTEMPTY, "layer '%s' is not a new one", id);
    (void)snprintf(ids[0], STACK_ID_MAX, "%s", id);
    int r = stack_replace(ws, ids, (size_t)n + 1, err);
    for (size_t i = 0; r == 0 && i < n_parts; i++)
        if (renameat2(ws->dir, parts[i], layer, parts[i], RENAME_EXCHANGE) < 0)
            r = err_set_errno(err, -errno, "seal '%s/%s'", ws->path, parts[i]);
    return r;
}
