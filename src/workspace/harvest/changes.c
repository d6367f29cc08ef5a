/* changes.c - the list of changes, with its limits. */
#include "workspace/harvest/changes.h"
#include "base/err.h"
#include <errno.h>
#include <string.h>

void oddities_free(struct oddity *oddities, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(oddities[i].path);
    free(oddities);
}

const char *oddity_text(enum oddity_kind kind)
{
    switch (kind) {
    case ODDITY_REPOSITORY:
        return "a git repository inside, left out";
    case ODDITY_SPECIAL:
        return "a pipe, socket or device, left out";
    case ODDITY_GITLINK:
        return "a change inside a submodule, left out";
    case ODDITY_UNREADABLE:
        return "could not be read, left out";
    }
    return "left out";
}

void changes_finish(struct changes *changes)
{
    for (size_t i = 0; i < changes->n; i++)
        free(changes->items[i].path);
    free(changes->items);
    oddities_free(changes->oddities, changes->n_oddities);
    *changes = (struct changes){ 0 };
}

static int check_number(const struct change_list *list, struct carrel_error *err)
{
    if (list->all.n + list->all.n_oddities < list->limits->max_changes)
        return 0;
    return err_set(err, -E2BIG, "the workspace has more than %ju changes",
            (uintmax_t)list->limits->max_changes);
}

int changes_take_room(struct change_list *list, size_t len, struct carrel_error *err)
{
    if (len > list->limits->max_path_bytes - list->path_bytes)
        return err_set(err, -EFBIG, "the paths of the workspace have more than %ju bytes",
                (uintmax_t)list->limits->max_path_bytes);
    list->path_bytes += len;
    return 0;
}

static size_t next_room(size_t room)
{
    return room ? 2 * room : 32;
}

static int add_item(struct change_list *list, struct change item)
{
    struct changes *all = &list->all;

    if (all->n == list->items_room) {
        size_t room = next_room(list->items_room);
        struct change *grown = reallocarray(all->items, room, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        all->items = grown;
        list->items_room = room;
    }
    all->items[all->n++] = item;
    return 0;
}

static int add_oddity(struct change_list *list, struct oddity oddity)
{
    struct changes *all = &list->all;

    if (all->n_oddities == list->oddities_room) {
        size_t room = next_room(list->oddities_room);
        struct oddity *grown = reallocarray(all->oddities, room, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        all->oddities = grown;
        list->oddities_room = room;
    }
    all->oddities[all->n_oddities++] = oddity;
    return 0;
}

int changes_add(struct change_list *list, const char *path, enum change_kind kind,
        uint64_t size, struct carrel_error *err)
{
    int r = check_number(list, err);
    if (r < 0)
        return r;
    if (size > list->limits->max_bytes - list->all.bytes)
        return err_set(err, -EFBIG, "the changed files have more than %ju bytes",
                (uintmax_t)list->limits->max_bytes);
    r = changes_take_room(list, strlen(path) + 1, err);
    if (r < 0)
        return r;
    AUTO(free) char *copy = strdup(path);
    if (!copy || add_item(list, (struct change){ copy, kind, size }) < 0)
        return err_set_errno(err, -ENOMEM, "list the changes of a workspace");
    ptr_steal(&copy);
    list->all.bytes += size;
    return 0;
}

int changes_add_oddity(struct change_list *list, const char *path, enum oddity_kind kind,
        struct carrel_error *err)
{
    int r = check_number(list, err);
    if (r == 0)
        r = changes_take_room(list, strlen(path) + 1, err);
    if (r < 0)
        return r;
    AUTO(free) char *copy = strdup(path);
    if (!copy || add_oddity(list, (struct oddity){ copy, kind }) < 0)
        return err_set_errno(err, -ENOMEM, "list the changes of a workspace");
    ptr_steal(&copy);
    return 0;
}

static int by_kind_and_path(const void *left, const void *right)
{
    const struct change *a = left;
    const struct change *b = right;

    if ((a->kind == CHANGE_REMOVE) != (b->kind == CHANGE_REMOVE))
        return a->kind == CHANGE_REMOVE ? -1 : 1;
    return strcmp(a->path, b->path);
}

static int by_path(const void *left, const void *right)
{
    const struct oddity *a = left;
    const struct oddity *b = right;

    return strcmp(a->path, b->path);
}

void changes_sort(struct changes *changes)
{
    if (changes->n > 1)
        qsort(changes->items, changes->n, sizeof(*changes->items), by_kind_and_path);
    if (changes->n_oddities > 1)
        qsort(changes->oddities, changes->n_oddities, sizeof(*changes->oddities), by_path);
}

size_t paths_find(const char *const *paths, size_t n, const char *path)
{
    size_t low = 0;

    while (low < n) {
        size_t middle = low + (n - low) / 2;
        if (strcmp(paths[middle], path) < 0)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

bool paths_have(const char *const *paths, size_t n, const char *path)
{
    size_t i = paths_find(paths, n, path);

    return i < n && strcmp(paths[i], path) == 0;
}

/* "a/" sorts before everything below a; "a-b" may be between "a" and "a/". */
static int compare_below(const char *path, const char *dir, size_t dir_len)
{
    int order = strncmp(path, dir, dir_len);

    return order != 0 ? order : (unsigned char)path[dir_len] - '/';
}

bool paths_have_below(const char *const *paths, size_t n, const char *path)
{
    size_t len = strlen(path);
    size_t low = 0;

    while (low < n) {
        size_t middle = low + (n - low) / 2;
        int order = compare_below(paths[middle], path, len);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            n = middle;
    }
    return false;
}
