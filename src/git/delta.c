/* delta.c - parses git's raw diff format. */
#include "git/delta.h"
#include "base/err.h"
#include "git/name.h"
#include <errno.h>
#include <stdio.h>

#define DELTA_MAX_BYTES ((size_t)1 << 30)

void delta_list_finish(struct delta_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (struct delta_list){ 0 };
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct delta *)a)->path, ((const struct delta *)b)->path);
}

/* ":100644 100755 <oid> <oid> M" */
static bool parse_head(const char *head, struct delta *out, char *status)
{
    int end = 0;

    if (sscanf(head, ":%o %o %64s %64s %c%n", &out->old.mode, &out->new.mode, out->old.oid,
                out->new.oid, status, &end) != 5)
        return false;
    /* A score may follow the letter (M100 for a rewrite); it is ignored. */
    return name_is_oid(out->old.oid) && name_is_oid(out->new.oid);
}

static int append(struct delta_list *list, const struct delta *item, size_t *room)
{
    if (list->n == *room) {
        size_t more = *room ? *room * 2 : 64;
        struct delta *items = reallocarray(list->items, more, sizeof(*items));
        if (!items)
            return -ENOMEM;
        list->items = items;
        *room = more;
    }
    list->items[list->n++] = *item;
    return 0;
}

/* An unmerged path may be listed twice: the unmerged entry counts. */
static void drop_doubles(struct delta_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->n; i++) {
        if (kept > 0 && strcmp(list->items[kept - 1].path, list->items[i].path) == 0) {
            if (list->items[i].new.mode == 0)
                list->items[kept - 1].new = list->items[i].new;
            free(list->items[i].path);
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->n = kept;
}

int delta_parse(const char *text, size_t len, struct delta_list *out, struct carrel_error *err)
{
    struct delta_list list = { 0 };
    size_t room = 0;
    const char *at = text;
    const char *end = text + len;

    while (at < end) {
        struct delta item = { 0 };
        char status;
        const char *head_end = memchr(at, '\0', (size_t)(end - at));
        const char *path = head_end ? head_end + 1 : end;
        const char *path_end = path < end ? memchr(path, '\0', (size_t)(end - path)) : NULL;
        if (!path_end || path == path_end || !parse_head(at, &item, &status)) {
            delta_list_finish(&list);
            return err_set(err, -EBADMSG, "git printed a difference in an unknown format");
        }
        item.path = strdup(path);
        if (!item.path || append(&list, &item, &room) < 0) {
            free(item.path);
            delta_list_finish(&list);
            return err_set_errno(err, -ENOMEM, "list the differences");
        }
        at = path_end + 1;
    }
    if (list.n > 1)
        qsort(list.items, list.n, sizeof(*list.items), by_path);
    drop_doubles(&list);
    *out = list;
    return 0;
}

static int ask(const struct git *git, const char *const *args, struct delta_list *out,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(DELTA_MAX_BYTES);
    struct git_io io = GIT_IO_INIT;

    io.output = &text;
    int r = git_expect(git, args, &io, err);
    if (r < 0)
        return err_wrap(err, r, "list the differences");
    return delta_parse(text.data ? text.data : "", text.len, out, err);
}

int delta_trees(const struct git *git, const char *old, const char *new, struct delta_list *out,
        struct carrel_error *err)
{
    return ask(git,
            GIT_ARGS("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index",
                    "--no-commit-id", "--end-of-options", old, new, "--"),
            out, err);
}

int delta_index(const struct git *git, const char *tree, struct delta_list *out,
        struct carrel_error *err)
{
    return ask(git,
            GIT_ARGS("diff-index", "--cached", "-z", "--raw", "--no-renames", "--full-index",
                    "--end-of-options", tree, "--"),
            out, err);
}

const struct delta *delta_find(const struct delta_list *list, const char *path)
{
    size_t low = 0;
    size_t high = list->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(path, list->items[middle].path);
        if (order == 0)
            return &list->items[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool delta_same(const struct delta_side *a, const struct delta_side *b)
{
    return a->mode == b->mode && (a->mode == 0 || strcmp(a->oid, b->oid) == 0);
}
