/* queue_test.c - the order of waiting entries, and how long they wait. */
#include "base/clock.h"
#include "registry/queue.h"
#include "registry/registry_fixture.h"
#include <poll.h>
#include <sys/socket.h>

/* An owner in a process of its own: reports its number when admitted, ends when told to. */
struct waiter {
    pid_t pid;
    int go;
};

static int told[2] = { -1, -1 };

static struct registry_request request_of(const char *id, const char *name)
{
    return (struct registry_request){
        .id = id, .name = name, .max_living = 1, .max_queued = 8, .queue_ms = 600000
    };
}

/* For changes by other processes that cause no event here. */
static void let_time_pass(void)
{
    (void)poll(NULL, 0, 1);
}

/* A child inherits the entries of its parent, which it would keep alive, and its pipes. */
static void close_but(int a, int b, int c)
{
    for (int fd = 3; fd < 256; fd++) {
        if (fd != a && fd != b && fd != c)
            (void)close(fd);
    }
}

static struct waiter start_waiter(char number)
{
    const char id[] = { 'S', '-', 'w', number, '\0' };
    const int n_before = count_all().waiting;
    int go[2];
    char byte;

    if (told[0] < 0)
        CHECK_EQ(pipe2(told, O_CLOEXEC), 0);
    CHECK_EQ(pipe2(go, O_CLOEXEC), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        const struct registry_request request = request_of(id, NULL);
        struct registry_entry *entry = NULL;
        close_but(reg.dir, told[1], go[0]);
        CHECK_EQ(registry_claim(&reg, &request, &entry, &err), 0);
        CHECK_EQ(write(told[1], &number, 1), 1);
        CHECK_EQ(read(go[0], &byte, 1), 0);
        CHECK_EQ(registry_remove(entry, &err), 0);
        _exit(0);
    }
    (void)close(go[0]);
    while (count_all().waiting == n_before)
        let_time_pass();
    return (struct waiter){ .pid = pid, .go = go[1] };
}

static char who_was_told(void)
{
    char byte;

    CHECK_EQ(read(told[0], &byte, 1), 1);
    return byte;
}

static void end_waiter(struct waiter waiter)
{
    CHECK_EQ(close(waiter.go), 0);
    CHECK_EQ(reap(waiter.pid), 0);
}

static void kill_waiter(struct waiter waiter)
{
    CHECK_EQ(kill(waiter.pid, SIGKILL), 0);
    (void)reap(waiter.pid);
    CHECK_EQ(close(waiter.go), 0);
}

static void wait_in_order(void)
{
    struct registry_entry *first = claim("S-first", NULL);
    struct waiter a = start_waiter('a');
    struct waiter b = start_waiter('b');
    struct waiter c = start_waiter('c');
    struct waiter d = start_waiter('d');
    struct waiter e = start_waiter('e');

    CHECK_EQ(count_all().waiting, 5);
    CHECK_EQ(count_all().alive, 1);
    kill_waiter(c); /* the ones behind it do not wait for it */
    let_go(first);
    CHECK_EQ(who_was_told(), 'a');
    kill_waiter(a); /* as good as an end */
    CHECK_EQ(who_was_told(), 'b');
    end_waiter(b);
    CHECK_EQ(who_was_told(), 'd');
    end_waiter(d);
    CHECK_EQ(who_was_told(), 'e');
    end_waiter(e);
    CHECK(registry_sweep(&reg, &err) >= 0);
    check_empty();
}

TEST(entries_are_admitted_in_order_and_dead_ones_do_not_delay_others)
{
    open_registry();
    wait_in_order();
}

TEST(so_it_is_with_an_ordinary_user)
{
    open_registry_as_user();
    wait_in_order();
}

TEST(a_killed_owner_frees_its_slot)
{
    open_registry();
    struct registry_entry *first = claim("S-first", NULL);
    struct waiter a = start_waiter('a');

    registry_entry_free(first); /* nothing is removed: only its lock is released */
    CHECK_EQ(who_was_told(), 'a');
    end_waiter(a);
    check_empty(); /* the dead one was removed meanwhile */
}

TEST(a_full_queue_is_said_at_once)
{
    struct registry_request request = request_of("S-late", NULL);
    struct registry_entry *entry = NULL;
    open_registry();
    struct registry_entry *first = claim("S-first", NULL);
    struct waiter a = start_waiter('a');

    request.max_queued = 1;
    CHECK_EQ(registry_claim(&reg, &request, &entry, &err), -EAGAIN);
    CHECK_STR(err.message,
            "no place for another sandbox: 1 alive of at most 1, 1 waiting of at most 1; "
            "destroy one or try again later ('carrel list' shows them)");
    request.queue_ms = 0;
    CHECK_EQ(registry_claim(&reg, &request, &entry, &err), -EAGAIN);
    CHECK(strstr(err.message, "sandbox.limits.max_queued"));
    request.queue_ms = 1;
    request.max_queued = 0;
    CHECK_EQ(registry_claim(&reg, &request, &entry, &err), -EAGAIN);
    CHECK_EQ(count_in("status"), 2);
    let_go(first);
    CHECK_EQ(who_was_told(), 'a');
    end_waiter(a);
}

TEST(a_wait_that_times_out_says_why_and_leaves_nothing)
{
    struct registry_request request = request_of("S-late", "site");
    struct registry_entry *entry = NULL;
    open_registry();
    struct registry_entry *first = claim("S-first", NULL);

    request.queue_ms = 1;
    CHECK_EQ(registry_claim(&reg, &request, &entry, &err), -ETIMEDOUT);
    CHECK_STR(err.message,
            "no place for another sandbox in 1ms: 1 alive of at most 1, 0 waiting before this "
            "one; destroy one or try again later ('carrel list' shows them)");
    let_go(first);
    check_empty();
}

TEST(an_entry_leaves_the_queue_when_its_requester_exits)
{
    struct registry_request request = request_of("S-late", "site");
    struct registry_entry *entry = NULL;
    int ends[2];
    open_registry();
    struct registry_entry *first = claim("S-first", NULL);

    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    AUTO(fd_close) int ours = ends[0];
    AUTO(fd_close) int theirs = ends[1];
    request.requester = &ours;
    request.queue_ms = 1;
    CHECK_EQ(registry_claim(&reg, &request, &entry, &err), -ETIMEDOUT);
    request.queue_ms = UINT64_MAX;
    fd_close(fd_steal(&theirs));
    CHECK_EQ(registry_claim(&reg, &request, &entry, &err), -ECANCELED);
    CHECK_STR(err.message, "the process that asked for the sandbox has exited");
    CHECK_EQ(count_all().waiting, 0);
    let_go(first);
    check_empty();
}

TEST(one_that_waits_has_its_name_already_and_no_sandbox_yet)
{
    const struct registry_request again = { .id = "S-other", .name = "site" };
    const struct registry_request waiting = request_of("S-late", "site");
    struct registry_entry *entry = NULL;
    AUTO(registry_entry_free) struct registry_entry *found = NULL;
    open_registry();
    struct registry_entry *first = claim("S-first", NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        _exit(registry_claim(&reg, &waiting, &entry, &err) != 0);
    while (count_all().waiting == 0)
        let_time_pass();
    CHECK_EQ(registry_claim(&reg, &again, &entry, &err), -EEXIST);
    CHECK_EQ(registry_find(&reg, "site", &found, &err), 0);
    CHECK_EQ(registry_connect(found, 10000, &err), -EAGAIN);
    let_go(first);
    CHECK_EQ(reap(pid), 0);
}

TEST(a_tighter_limit_in_the_queue_does_not_delay_others_with_room)
{
    struct registry_request wide = request_of("S-wide", NULL);
    struct registry_entry *entry = NULL;
    open_registry();
    struct registry_entry *first = claim("S-first", NULL);
    struct waiter a = start_waiter('a');

    wide.max_living = 2; /* one lives, one is ahead: no room */
    wide.queue_ms = 0;
    CHECK_EQ(registry_claim(&reg, &wide, &entry, &err), -EAGAIN);
    wide.max_living = 3;
    CHECK_EQ(registry_claim(&reg, &wide, &entry, &err), 0);
    let_go(entry);
    let_go(first);
    CHECK_EQ(who_was_told(), 'a');
    end_waiter(a);
}

static void ignore(int signal)
{
    (void)signal;
}

TEST(a_signal_that_is_handled_ends_the_wait)
{
    const struct registry_request request = request_of("S-late", NULL);
    struct registry_entry *entry = NULL;
    open_registry();
    struct registry_entry *first = claim("S-first", NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        const struct sigaction action = { .sa_handler = ignore };
        CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
        _exit(registry_claim(&reg, &request, &entry, &err) != -EINTR);
    }
    while (count_all().waiting == 0)
        let_time_pass();
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) { /* it may come between two waits */
        CHECK_EQ(kill(pid, SIGUSR1), 0);
        let_time_pass();
    }
    CHECK_EQ(status, 0);
    let_go(first);
    check_empty();
}

TEST(without_a_bell_time_wakes)
{
    const struct queue_look look = { 0 };
    AUTO(queue_waiter_finish)
    struct queue_waiter waiter = { .inotify = -1, .watch = -1, .pause_ms = 1, .requester = -1 };
    open_registry();

    for (uint64_t pause = 1; pause < 64; pause *= 2) {
        CHECK_EQ(waiter.pause_ms, pause);
        CHECK_EQ(queue_waiter_wait(&waiter, reg.dir, &look, CLOCK_NEVER), 0);
    }
    CHECK_EQ(queue_waiter_wait(&waiter, reg.dir, &look, 1), -ETIMEDOUT);
}
