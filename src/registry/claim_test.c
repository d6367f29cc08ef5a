/* claim_test.c - owners that are killed at every step, and a hundred processes at once. */
#include "base/kill_fixture.h"
#include "registry/registry_fixture.h"
#include <sched.h>
#include <sys/mman.h>

static int live_a_life(void *context)
{
    const struct registry_request request = { .id = "S-victim", .name = "site" };
    const struct registry_status status = { .state = REGISTRY_RUNNING };
    struct registry_entry *entry = NULL;
    (void)context;

    int r = registry_claim(&reg, &request, &entry, NULL);
    if (r == 0)
        r = registry_publish(entry, "{}", 2, NULL);
    if (r == 0)
        r = registry_set_status(entry, &status, NULL);
    if (r == 0)
        r = registry_remove(entry, NULL);
    return r;
}

/* What a killed owner left is not alive, not in the way, and is removed. */
static void check_remains(void)
{
    AUTO(registry_entry_free) struct registry_entry *found = NULL;

    CHECK_EQ(count_all().alive, 0);
    CHECK_EQ(registry_find(&reg, "site", &found, &err), -ENOENT);
    CHECK_EQ(registry_find(&reg, "S-victim", &found, &err), -ENOENT);
    CHECK(registry_sweep(&reg, &err) >= 0);
    check_empty();
}

static void kill_at_every_step(void)
{
    int n = 1;

    for (; kill_before_call(live_a_life, NULL, n); n++) {
        check_remains();
        (void)kill_before_call(live_a_life, NULL, n);
        let_go(claim("S-heir", "site"));
        CHECK(registry_sweep(&reg, &err) >= 0);
        check_empty();
    }
    CHECK(n > 20); /* it did make more calls than that, or nothing was tested */
    check_empty();
}

TEST(an_owner_killed_at_any_step_leaves_only_what_a_sweep_removes)
{
    open_registry();
    kill_at_every_step();
}

TEST(so_does_an_ordinary_users)
{
    open_registry_as_user();
    kill_at_every_step();
}

static int wait_in_vain(void *context)
{
    const struct registry_request request = {
        .id = "S-victim", .name = "site", .max_living = 1, .max_queued = 9, .queue_ms = 30
    };
    struct registry_entry *entry = NULL;
    (void)context;

    return registry_claim(&reg, &request, &entry, NULL) != -ETIMEDOUT;
}

TEST(an_owner_killed_while_it_waits_leaves_only_what_a_sweep_removes)
{
    open_registry();
    struct registry_entry *entry = claim("S-first", NULL);
    int n = 1;

    for (; kill_before_call(wait_in_vain, NULL, n); n++) {
        CHECK_EQ(count_all().waiting, 0);
        CHECK_EQ(count_all().alive, 1);
        CHECK(registry_sweep(&reg, &err) >= 0);
        CHECK_EQ(count_in("status"), 1);
        CHECK_EQ(count_in("names"), 0);
        CHECK_EQ(count_in("."), 4);
    }
    CHECK(n > 20);
    let_go(entry);
    check_empty();
}

static int wait_and_go(void *context)
{
    const struct registry_request request = {
        .id = "S-victim", .name = "site", .max_living = 1, .max_queued = 9, .queue_ms = 60000
    };
    struct registry_entry *entry = NULL;
    (void)context;

    int r = registry_claim(&reg, &request, &entry, NULL);
    return r < 0 ? r : registry_remove(entry, NULL);
}

/* Lives until another one waits. */
static pid_t make_room_when_asked(void)
{
    int ready[2];
    char byte;

    CHECK_EQ(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct registry_entry *entry = claim("S-before", NULL);
        CHECK_EQ(write(ready[1], "x", 1), 1);
        while (count_all().waiting == 0)
            (void)sched_yield();
        let_go(entry);
        _exit(0);
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

TEST(an_owner_killed_while_it_is_admitted_leaves_only_what_a_sweep_removes)
{
    bool was_killed = true;
    open_registry();

    for (int n = 1; was_killed; n++) {
        pid_t before = make_room_when_asked();
        was_killed = kill_before_call(wait_and_go, NULL, n);
        (void)kill(before, SIGKILL); /* it would not end: nothing waits */
        (void)reap(before);
        CHECK_EQ(count_all().alive, 0);
        CHECK_EQ(count_all().waiting, 0);
        CHECK(registry_sweep(&reg, &err) >= 0);
        check_empty();
    }
}

#define CROWD 100
#define ROUNDS 20
#define PLACES 12

struct shared {
    _Atomic int alive;    /* between claim and removal: never more than PLACES */
    _Atomic int admitted; /* ever */
};

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 16;
}

/* Every way to end. */
static void end(struct registry_entry *entry, uint32_t how)
{
    if (how % 16 == 0)
        (void)raise(SIGKILL);
    if (how % 16 > 2) /* else as if it were killed, but this process continues */
        CHECK_EQ(registry_remove(entry, &err), 0);
    registry_entry_free(entry);
}

static void live_once(struct shared *shared, const char *id, const char *name, uint32_t how)
{
    const struct registry_request request = {
        .id = id, .name = name, .max_living = PLACES, .max_queued = CROWD, .queue_ms = 300000
    };
    struct registry_entry *entry = NULL;
    AUTO(registry_entry_free) struct registry_entry *found = NULL;

    int r = registry_claim(&reg, &request, &entry, &err);
    if (r == -EEXIST && name)
        return;
    if (r < 0)
        test_fail(__FILE__, __LINE__, "claim: %s", err.message);
    CHECK(++shared->alive <= PLACES);
    shared->admitted++;
    CHECK_EQ(registry_publish(entry, id, strlen(id), &err), 0);
    CHECK_EQ(registry_find(&reg, name ? name : id, &found, &err), 0);
    CHECK_STR(found->id, id); /* no other entry has its name */
    AUTO(fd_close) int sock = registry_connect(found, 10000, &err);
    CHECK(sock >= 0);
    shared->alive--;
    end(entry, how);
}

static void look_for(const char *name)
{
    AUTO(registry_entry_free) struct registry_entry *found = NULL;

    int r = registry_find(&reg, name, &found, &err);
    if (r < 0) {
        CHECK_EQ(r, -ENOENT);
        return;
    }
    AUTO(fd_close) int sock = registry_connect(found, 10000, &err);
    CHECK(sock >= 0 || sock == -ESRCH || sock == -EAGAIN);
}

static int check_view(void *context, const struct registry_view *view)
{
    (void)context;
    if (view->record_len > 0)
        CHECK_STR(view->record, view->id);
    return 0;
}

static void be_one_of_many(struct shared *shared, int number)
{
    static const char *const names[] = { NULL, NULL, "a", "b", "c" };
    uint32_t seed = (uint32_t)number;

    for (int i = 0; i < ROUNDS; i++) {
        char id[32];
        const char *name = names[draw(&seed) % ARRAY_LEN(names)];
        (void)snprintf(id, sizeof(id), "S-%d-%d", number, i);
        switch (draw(&seed) % 8) {
        case 0:
            CHECK(registry_sweep(&reg, &err) >= 0);
            break;
        case 1:
            CHECK_EQ(registry_each(&reg, check_view, NULL, &err), 0);
            break;
        case 2:
            look_for(name ? name : "S-1-");
            break;
        default:
            live_once(shared, id, name, draw(&seed));
        }
    }
    _exit(0);
}

static void race(void)
{
    pid_t pids[CROWD];
    struct shared *shared = mmap(
            NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(shared != MAP_FAILED);
    for (int i = 0; i < CROWD; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0)
            be_one_of_many(shared, i);
    }
    for (int i = 0; i < CROWD; i++) {
        int status = reap(pids[i]);
        CHECK(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    }
    CHECK(shared->admitted > CROWD);
    CHECK_EQ(count_all().alive, 0);
    CHECK(registry_sweep(&reg, &err) >= 0);
    check_empty();
}

TEST(a_hundred_processes_at_once_do_no_harm)
{
    open_registry();
    race();
}

TEST(a_hundred_of_an_ordinary_users_do_neither)
{
    open_registry_as_user();
    race();
}
