/* list_test.c - records of this version, of older ones, and malformed ones. */
#include "base/clock.h"
#include "registry/list.h"
#include "registry/registry_fixture.h"

#define SECOND_NS UINT64_C(1000000000)

static void publish(struct registry_entry *entry, const char *record)
{
    CHECK_EQ(registry_publish(entry, record, strlen(record), &err), 0);
}

static struct registry_list read_list(const struct registry_query *query)
{
    struct registry_list list;

    CHECK_EQ(registry_list_read(&reg, query, &list, &err), 0);
    return list;
}

TEST(a_record_and_a_status_become_a_row)
{
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *entry = claim("S-first", "site");
    publish(entry,
            "{\"id\":\"S-first\",\"labels\":{\"team\":\"a\\nb\",\"x\":\"\"},\"run\":\"R-1\","
            "\"task\":\"T\",\"created\":\"2026-01-31T23:59:59.000001Z\",\"image\":\"debian\","
            "\"limits\":{\"pids\":7},\"policy_sha256\":\"abc\"}");
    const struct registry_status status = { .state = REGISTRY_PAUSED,
        .pid = 42,
        .lease_end_ns = clock_boot_ns() + 3600 * SECOND_NS,
        .idle_ms = 1,
        .idle_since_ns = clock_boot_ns() - SECOND_NS / 100,
        .n_processes = 3,
        .n_clients = 2 };
    CHECK_EQ(registry_set_status(entry, &status, &err), 0);

    AUTO(registry_list_finish)
    struct registry_list list = read_list(&(struct registry_query){ 0 });
    CHECK_EQ(list.n, 1);
    CHECK_EQ(list.n_waiting, 0);
    const struct registry_item *item = &list.items[0];
    CHECK_STR(item->id, "S-first");
    CHECK_STR(item->name, "site");
    CHECK_STR(item->state, "paused");
    CHECK_STR(item->run, "R-1");
    CHECK_STR(item->image, "debian");
    CHECK_STR(item->root, "");
    CHECK_EQ(item->n_labels, 2);
    CHECK_STR(item->labels[0].key, "team");
    CHECK_STR(item->labels[0].value, "a\nb");
    CHECK_STR(item->limits, "{\"pids\":7}");
    CHECK(item->lease_left_ms > 3500000 && item->lease_left_ms <= 3600000);
    CHECK_EQ(item->idle_left_ms, 0); /* its time is over: init ends it any moment */

    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    struct json json = { .out = &text };
    registry_list_write_json(&list, &json);
    CHECK(strstr(text.data, "{\"sandboxes\":[{\"id\":\"S-first\",\"name\":\"site\","
                            "\"state\":\"paused\",\"alive\":true,\"run\":\"R-1\""));
    CHECK(strstr(text.data, "\"root\":null,\"workspace\":null,\"labels\":{\"team\":"
                            "\"a\\nb\",\"x\":\"\"},\"limits\":{\"pids\":7},"
                            "\"policy_sha256\":\"abc\"}],\"queue\":[]}"));
}

TEST(what_a_record_does_not_say_is_not_known)
{
    static const char *const records[] = { "", "{}", "[]", "{", "null", "\"x\"",
        "{\"labels\":[1],\"run\":7,\"image\":null,\"limits\":\"x\",\"created\":{}}",
        "{\"labels\":{\"a\":1},\"run\":[]}" };
    open_registry();
    for (size_t i = 0; i < ARRAY_LEN(records); i++) {
        struct registry_entry *entry = claim("S-first", NULL);
        publish(entry, records[i]);
        AUTO(registry_list_finish)
        struct registry_list list = read_list(&(struct registry_query){ 0 });
        CHECK_EQ(list.n, 1);
        CHECK_STR(list.items[0].run, "");
        CHECK_STR(list.items[0].image, "");
        CHECK_STR(list.items[0].limits, "");
        CHECK_STR(list.items[0].state, "created");
        CHECK_EQ(list.items[0].lease_left_ms, REGISTRY_NO_END);
        CHECK_EQ(list.items[0].idle_left_ms, REGISTRY_NO_END);
        let_go(entry);
    }
}

TEST(labels_choose)
{
    static const struct {
        const char *labels[2];
        size_t n;
        const char *found; /* the last letters of their ids */
    } cases[] = {
        { { NULL }, 0, "abc" },
        { { "team=red" }, 1, "ab" },
        { { "team" }, 1, "abc" },
        { { "team=red", "env=test" }, 2, "b" },
        { { "team=re" }, 1, "" },
        { { "tea" }, 1, "" },
        { { "team=red=" }, 1, "" },
        { { "env=" }, 1, "c" },
    };
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *a = claim("S-a", NULL);
    AUTO(registry_entry_free) struct registry_entry *b = claim("S-b", NULL);
    AUTO(registry_entry_free) struct registry_entry *c = claim("S-c", NULL);
    publish(a, "{\"labels\":{\"team\":\"red\"}}");
    publish(b, "{\"labels\":{\"env\":\"test\",\"team\":\"red\"}}");
    publish(c, "{\"labels\":{\"team\":\"blue\",\"env\":\"\"}}");

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char found[8] = "";
        const struct registry_query query = { .labels = cases[i].labels,
            .n_labels = cases[i].n };
        AUTO(registry_list_finish) struct registry_list list = read_list(&query);
        for (size_t n = 0; n < list.n; n++)
            found[n] = list.items[n].id[2];
        CHECK_STR(found, cases[i].found);
    }
}

TEST(dead_entries_are_shown_on_request_and_else_removed)
{
    const struct registry_query all = { .has_dead = true };
    const struct registry_query sandbox = { 0 };
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *a = claim("S-a", NULL);
    struct registry_entry *b = claim("S-b", "site");

    publish(b, "{\"run\":\"R-2\"}");
    registry_entry_free(b); /* killed */
    AUTO(registry_list_finish) struct registry_list first = read_list(&all);
    CHECK_EQ(first.n, 2);
    CHECK_STR(first.items[1].state, "dead");
    CHECK_STR(first.items[1].run, "R-2");
    CHECK_EQ(count_in("status"), 2);
    AUTO(registry_list_finish) struct registry_list second = read_list(&sandbox);
    CHECK_EQ(second.n, 1);
    CHECK_EQ(count_in("status"), 1);
    CHECK_EQ(count_in("names"), 0);
}

TEST(the_queue_is_a_list_of_its_own)
{
    const struct registry_request request = {
        .id = "S-late", .name = "late", .max_living = 1, .max_queued = 1, .queue_ms = 600000
    };
    const char *const labels[] = { "team=red" };
    const struct registry_query query = { .labels = labels, .n_labels = 1 };
    open_registry();
    struct registry_entry *first = claim("S-first", NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct registry_entry *entry = NULL;
        _exit(registry_claim(&reg, &request, &entry, &err) != 0);
    }
    while (count_all().waiting == 0)
        CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
    AUTO(registry_list_finish) struct registry_list list = read_list(&query);
    CHECK_EQ(list.n, 0);
    CHECK_EQ(list.n_waiting, 1);
    CHECK_STR(list.waiting[0].id, "S-late");
    CHECK_STR(list.waiting[0].name, "late");
    CHECK_EQ(list.waiting[0].status.pid, pid);

    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    struct json json = { .out = &text };
    registry_list_write_json(&list, &json);
    CHECK(strstr(text.data, "{\"sandboxes\":[],\"queue\":[{\"place\":1,\"id\":\"S-late\","
                            "\"name\":\"late\",\"waiting_ms\":"));
    let_go(first);
    CHECK_EQ(reap(pid), 0);
}
