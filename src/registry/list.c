/* list.c - the registry's entries, with what their records say. */
#include "registry/list.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json_read.h"
#include <errno.h>

#define TEXT_MAX (64U << 10)
#define NS_PER_MS 1000000

struct walk {
    const struct registry_query *query;
    struct registry_list *list;
    uint64_t now_ns;
    size_t n_dead;
    struct carrel_error *err;
};

static char *copy(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text));
}

/* "" for what is no text. NULL: no memory. */
static const char *take_text(struct arena *arena, struct json_value value)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(TEXT_MAX);

    if (json_read_string(value, &text) < 0 || text.is_short || !text.data)
        return "";
    /* One with a NUL in it ends there; nothing of ours has one. */
    return arena_copy(arena, text.data, strlen(text.data));
}

static int take_labels(
        struct arena *arena, struct json_value labels, struct registry_item *item)
{
    struct json_value key;
    struct json_value value;
    size_t at = 0;
    size_t n = 0;

    if (json_read_kind(labels) != JSON_OBJECT)
        return 0;
    while (json_read_next(labels, &at, &key, &value))
        n++;
    struct registry_label *list = arena_alloc(arena, (n + 1) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    at = 0;
    for (size_t i = 0; i < n && json_read_next(labels, &at, &key, &value); i++) {
        list[i].key = take_text(arena, key);
        list[i].value = take_text(arena, value);
        if (!list[i].key || !list[i].value)
            return -ENOMEM;
    }
    item->labels = list;
    item->n_labels = n;
    return 0;
}

static int take_limits(
        struct arena *arena, struct json_value limits, struct registry_item *item)
{
    if (json_read_kind(limits) == JSON_OBJECT)
        item->limits = arena_copy(arena, limits.text, limits.len);
    return item->limits ? 0 : -ENOMEM;
}

/* One pass: looking for each member anew would read a record ten times. */
static int take_member(struct arena *arena, struct json_value key, struct json_value value,
        struct registry_item *item)
{
    const struct {
        const char *key;
        const char **text;
    } texts[] = {
        { "run", &item->run },
        { "task", &item->task },
        { "created", &item->created },
        { "image", &item->image },
        { "root", &item->root },
        { "workspace", &item->workspace },
        { "policy_sha256", &item->policy_sha256 },
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (!json_read_equals(key, texts[i].key))
            continue;
        *texts[i].text = take_text(arena, value);
        return *texts[i].text ? 0 : -ENOMEM;
    }
    if (json_read_equals(key, "labels"))
        return take_labels(arena, value, item);
    return json_read_equals(key, "limits") ? take_limits(arena, value, item) : 0;
}

static int take_record(
        struct arena *arena, const struct registry_view *view, struct registry_item *item)
{
    struct json_value record;
    struct json_value key;
    struct json_value value;
    size_t at = 0;
    int r = 0;

    item->run = item->task = item->created = item->image = item->root = item->workspace = "";
    item->policy_sha256 = item->limits = "";
    if (view->record_len == 0 ||
            json_read_check(view->record, view->record_len, &record, NULL) < 0 ||
            json_read_kind(record) != JSON_OBJECT)
        return 0; /* a record that cannot be read leaves its fields empty */
    while (r == 0 && json_read_next(record, &at, &key, &value))
        r = take_member(arena, key, value, item);
    return r;
}

static uint64_t left_ms(uint64_t now_ns, uint64_t end_ns)
{
    return end_ns > now_ns ? (end_ns - now_ns) / NS_PER_MS : 0;
}

static void take_times(
        const struct registry_view *view, uint64_t now_ns, struct registry_item *item)
{
    const struct registry_status *status = &view->status;

    item->age_ms = left_ms(view->began_ns, now_ns);
    item->lease_left_ms = item->idle_left_ms = REGISTRY_NO_END;
    if (status->lease_end_ns)
        item->lease_left_ms = left_ms(now_ns, status->lease_end_ns);
    if (status->idle_ms && status->idle_since_ns &&
            status->idle_ms <= (UINT64_MAX - status->idle_since_ns) / NS_PER_MS)
        item->idle_left_ms =
                left_ms(now_ns, status->idle_since_ns + status->idle_ms * NS_PER_MS);
}

static bool has_label(const struct registry_item *item, const char *wanted)
{
    const size_t len = strcspn(wanted, "=");

    for (size_t i = 0; i < item->n_labels; i++) {
        const struct registry_label *label = &item->labels[i];
        if (strlen(label->key) == len && memcmp(label->key, wanted, len) == 0 &&
                (wanted[len] == '\0' || strcmp(label->value, wanted + len + 1) == 0))
            return true;
    }
    return false;
}

static bool is_meant(const struct registry_query *query, const struct registry_item *item)
{
    for (size_t i = 0; i < query->n_labels; i++)
        if (!has_label(item, query->labels[i]))
            return false;
    return true;
}

static int add(struct registry_item **items, size_t *n, const struct registry_item *item)
{
    if ((*n & (*n - 1)) == 0) { /* a power of two, or nothing yet: it is full */
        void *more = reallocarray(*items, *n ? 2 * *n : 1, sizeof(*item));
        if (!more)
            return -ENOMEM;
        *items = more;
    }
    (*items)[(*n)++] = *item;
    return 0;
}

/* Waiting requests have no record, so no label; a query for the queue shows them. */
static int visit(void *context, const struct registry_view *view)
{
    struct walk *walk = context;
    struct registry_list *list = walk->list;
    const bool is_waiting = view->is_alive && view->status.state == REGISTRY_WAITING;
    struct registry_item item = {
        .id = copy(&list->arena, view->id),
        .name = copy(&list->arena, view->name),
        .state = view->is_alive ? registry_state_name(view->status.state) : "dead",
        .status = view->status,
        .is_alive = view->is_alive,
    };
    int r = item.id && item.name ? 0 : -ENOMEM;

    walk->n_dead += !view->is_alive;
    if (!view->is_alive && !walk->query->has_dead)
        return 0;
    if (r == 0)
        r = take_record(&list->arena, view, &item);
    take_times(view, walk->now_ns, &item);
    if (r == 0 && is_waiting)
        r = add(&list->waiting, &list->n_waiting, &item);
    else if (r == 0 && is_meant(walk->query, &item))
        r = add(&list->items, &list->n, &item);
    return r < 0 ? err_set_errno(walk->err, r, "list the living sandboxes") : 0;
}

int registry_list_read(const struct registry *reg, const struct registry_query *query,
        struct registry_list *out, struct carrel_error *err)
{
    AUTO(registry_list_finish) struct registry_list list = { 0 };
    struct walk walk = { .query = query, .list = &list, .now_ns = clock_boot_ns(), .err = err };

    int r = registry_each(reg, visit, &walk, err);
    if (r < 0)
        return r;
    if (walk.n_dead > 0 && !query->has_dead)
        (void)registry_sweep(reg, NULL); /* what cannot be removed now is swept later */
    *out = list;
    list = (struct registry_list){ 0 };
    return 0;
}

void registry_list_finish(struct registry_list list)
{
    free(list.items);
    free(list.waiting);
    arena_finish(list.arena);
}

static void write_text(struct json *json, const char *key, const char *text)
{
    json_str(json, key, text[0] ? text : NULL);
}

static void write_left(struct json *json, const char *key, uint64_t ms)
{
    if (ms == REGISTRY_NO_END)
        json_null(json, key);
    else
        json_u64(json, key, ms);
}

void registry_item_write(const struct registry_item *item, struct json *json)
{
    json_str(json, "id", item->id);
    write_text(json, "name", item->name);
    json_str(json, "state", item->state);
    json_bool(json, "alive", item->is_alive);
    write_text(json, "run", item->run);
    write_text(json, "task", item->task);
    write_text(json, "created", item->created);
    json_u64(json, "age_ms", item->age_ms);
    write_left(json, "lease_ms", item->lease_left_ms);
    write_left(json, "idle_ms", item->status.idle_ms ? item->status.idle_ms : REGISTRY_NO_END);
    write_left(json, "idle_left_ms", item->idle_left_ms);
    json_u64(json, "processes", item->status.n_processes);
    json_u64(json, "clients", item->status.n_clients);
    json_i64(json, "pid", item->status.pid);
    write_text(json, "image", item->image);
    write_text(json, "root", item->root);
    write_text(json, "workspace", item->workspace);
    json_object(json, "labels");
    for (size_t i = 0; i < item->n_labels; i++)
        json_str(json, item->labels[i].key, item->labels[i].value);
    json_end_object(json);
    if (item->limits[0])
        json_raw(json, "limits", item->limits, strlen(item->limits));
    else
        json_null(json, "limits");
    write_text(json, "policy_sha256", item->policy_sha256);
}

static void write_waiting(const struct registry_item *item, size_t place, struct json *json)
{
    json_object(json, NULL);
    json_u64(json, "place", place);
    json_str(json, "id", item->id);
    write_text(json, "name", item->name);
    json_u64(json, "waiting_ms", item->age_ms);
    json_i64(json, "pid", item->status.pid);
    json_end_object(json);
}

void registry_list_write_json(const struct registry_list *list, struct json *json)
{
    json_object(json, NULL);
    json_array(json, "sandboxes");
    for (size_t i = 0; i < list->n; i++) {
        json_object(json, NULL);
        registry_item_write(&list->items[i], json);
        json_end_object(json);
    }
    json_end_array(json);
    json_array(json, "queue");
    for (size_t i = 0; i < list->n_waiting; i++)
        write_waiting(&list->waiting[i], i + 1, json);
    json_end_array(json);
    json_end_object(json);
}
