/* list.c - the living sandboxes, and the requests that wait. */
#include "registry/list.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/options.h"
#include "core/keeper/sweep.h"
#include <carrel/sandbox.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

_Static_assert(CARREL_NEVER == REGISTRY_NO_END, "the same number");

/* The list; unless the dead are wanted, what they left is removed. */
static int read_list(const struct carrel_sandbox_query *given, struct registry_list *list,
        struct carrel_error *err)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    struct carrel_sandbox_query query = CARREL_SANDBOX_QUERY_INIT;
    struct registry_query asked = { 0 };

    int r = OPTIONS_TAKE(&query, given, CARREL_SANDBOX_QUERY_INIT, err);
    if (r < 0)
        return r;
    asked.labels = query.labels;
    asked.has_dead = query.has_dead;
    while (query.labels && query.labels[asked.n_labels])
        asked.n_labels++;
    r = registry_open(&reg, err);
    if (r == 0)
        r = registry_list_read(&reg, &asked, list, err);
    if (r == 0 && !query.has_dead)
        keeper_sweep_layers(&reg);
    return r;
}

/* "K=V" strings, NULL-terminated. */
static const char **labels_of(struct registry_list *list, const struct registry_item *item)
{
    const char **labels = arena_alloc(&list->arena, (item->n_labels + 1) * sizeof(*labels));

    for (size_t i = 0; labels && i < item->n_labels; i++) {
        const char *key = item->labels[i].key;
        const char *value = item->labels[i].value;
        const size_t size = strlen(key) + strlen(value) + 2;
        char *label = arena_alloc(&list->arena, size);
        if (!label)
            return NULL;
        (void)snprintf(label, size, "%s=%s", key, value);
        labels[i] = label;
    }
    if (labels)
        labels[item->n_labels] = NULL;
    return labels;
}

struct visit {
    int (*call)(const struct carrel_sandbox_info *info, void *context);
    void *context;
};

static int show(struct registry_list *list, const struct registry_item *item, bool is_waiting,
        const struct visit *visit, struct carrel_error *err)
{
    const char **labels = labels_of(list, item);
    const struct carrel_sandbox_info info = {
        .size = sizeof(info),
        .id = item->id,
        .name = item->name,
        .state = item->state,
        .image = item->image,
        .root = item->root,
        .labels = labels,
        .age_ms = item->age_ms,
        .lease_left_ms = item->lease_left_ms,
        .idle_left_ms = item->idle_left_ms,
        .n_processes = item->status.n_processes,
        .keeper = item->status.pid,
        .is_waiting = is_waiting,
    };

    return labels ? visit->call(&info, visit->context)
                  : err_set_errno(err, -ENOMEM, "list the sandboxes");
}

int carrel_sandbox_each(const struct carrel_sandbox_query *query,
        int (*visit)(const struct carrel_sandbox_info *info, void *context), void *context,
        struct carrel_error *err)
{
    AUTO(registry_list_finish) struct registry_list list = { 0 };
    const struct visit how = { visit, context };

    err = ERR_OR_IGNORED(err);
    int r = read_list(query, &list, err);
    for (size_t i = 0; r == 0 && i < list.n; i++)
        r = show(&list, &list.items[i], false, &how, err);
    for (size_t i = 0; r == 0 && i < list.n_waiting; i++)
        r = show(&list, &list.waiting[i], true, &how, err);
    return r;
}

int carrel_sandbox_list(
        const struct carrel_sandbox_query *query, char **json, struct carrel_error *err)
{
    AUTO(registry_list_finish) struct registry_list list = { 0 };
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json out = { .out = &text };

    err = ERR_OR_IGNORED(err);
    int r = read_list(query, &list, err);
    if (r < 0)
        return r;
    registry_list_write_json(&list, &out);
    return buf_take(&text, json, err);
}
