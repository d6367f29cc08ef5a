/* each.c - a walk over all entries, and the sweep. */
#include "base/buf.h"
#include "base/err.h"
#include "registry/entries.h"
#include "registry/guard.h"
#include "registry/registry.h"
#include "registry/status.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

struct found {
    const char *id;
    struct status_facts facts;
    bool is_alive;
};

static int by_number(const void *a, const void *b)
{
    const struct found *first = a;
    const struct found *second = b;

    return (first->facts.number > second->facts.number) -
           (first->facts.number < second->facts.number);
}

/* False: it was removed meanwhile, or cannot be read. */
static bool look_at(int top, const char *id, struct found *found)
{
    AUTO(fd_close) int fd = status_open(top, id);

    if (fd < 0 || status_read(fd, &found->facts) < 0)
        return false;
    found->id = id;
    found->is_alive = status_is_locked(fd);
    return true;
}

static int add_record(int top, const char *id, struct buf *text, struct carrel_error *err)
{
    char path[REGISTRY_WORD_MAX + sizeof("/record.json")];

    (void)snprintf(path, sizeof(path), "%s/record.json", id);
    return fd_add_file(top, path, text, err);
}

int registry_each(const struct registry *reg,
        int (*visit)(void *context, const struct registry_view *view), void *context,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf record = BUF_INIT(REGISTRY_RECORD_MAX);
    AUTO(entry_names_finish) struct entry_names ids = { 0 };
    size_t n = 0;

    int r = entry_names_read(reg->dir, "status", &ids, err);
    if (r < 0)
        return r;
    AUTO(free) struct found *list = calloc(ids.n + 1, sizeof(*list));
    if (!list)
        return err_set_errno(err, -ENOMEM, "list the living sandboxes");
    for (size_t i = 0; i < ids.n; i++)
        n += look_at(reg->dir, ids.list[i], &list[n]);
    qsort(list, n, sizeof(*list), by_number);
    for (size_t i = 0; r == 0 && i < n; i++) {
        buf_clear(&record);
        r = add_record(reg->dir, list[i].id, &record, err);
        if (r < 0)
            return r;
        const struct registry_view view = {
            .id = list[i].id,
            .name = list[i].facts.name,
            .record = record.len ? record.data : "",
            .record_len = record.len,
            .number = list[i].facts.number,
            .began_ns = list[i].facts.began_ns,
            .status = list[i].facts.status,
            .is_alive = list[i].is_alive,
        };
        r = visit(context, &view);
    }
    return r;
}

/* Directories are swept after the files: what has no status any more, or never got one. */
static int sweep_entries(int top, const char *path, struct carrel_error *err)
{
    AUTO(entry_names_finish) struct entry_names ids = { 0 };
    int swept = 0;

    int r = entry_names_read(top, path, &ids, err);
    for (size_t i = 0; r >= 0 && i < ids.n; i++) {
        if (strncmp(ids.list[i], "S-", 2) != 0)
            continue;
        r = entry_erase_dead(top, ids.list[i], err);
        swept += r > 0;
    }
    return r < 0 ? r : swept;
}

static int sweep_names(int top, struct carrel_error *err)
{
    AUTO(entry_names_finish) struct entry_names names = { 0 };
    char id[REGISTRY_WORD_MAX + 1];

    int r = entry_names_read(top, "names", &names, err);
    for (size_t i = 0; r == 0 && i < names.n; i++) {
        if (entry_name_read(top, names.list[i], id) < 0)
            continue;
        AUTO(fd_close) int status = status_open(top, id);
        if (status == -ENOENT)
            r = entry_erase(top, id, names.list[i], err);
    }
    return r;
}

int registry_sweep(const struct registry *reg, struct carrel_error *err)
{
    AUTO(guard_release) int guard = guard_take(reg->dir, err);

    if (guard < 0)
        return guard;
    int of_status = sweep_entries(reg->dir, "status", err);
    if (of_status < 0)
        return of_status;
    int of_dirs = sweep_entries(reg->dir, ".", err);
    if (of_dirs < 0)
        return of_dirs;
    int r = sweep_names(reg->dir, err);
    return r < 0 ? r : of_status + of_dirs;
}

int registry_take_deaths(const struct registry *reg, struct carrel_error *err)
{
    AUTO(guard_release) int guard = guard_take(reg->dir, err);

    if (guard < 0)
        return guard;
    int r = guard_take_note(guard);
    return r < 0 ? err_set_errno(err, r, "read which sandboxes died") : r;
}
