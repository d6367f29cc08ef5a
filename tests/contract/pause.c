/* pause.c - a paused sandbox, and what must work meanwhile. */
#include "base/clock.h"
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 256
#define PATIENCE_NS (UINT64_C(20) * 1000000000)

/* False: the subject refuses, with the usual message. */
static bool pause_box(struct sandbox *box)
{
    int r = sandbox_pause(box, &err);

    if (r == -ENOTSUP) {
        CHECK(strstr(err.message, runtime_name(subject)));
        CHECK(!box->paused_by);
        return false;
    }
    if (r < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    CHECK(box->paused_by);
    CHECK(strcmp(box->paused_by, "freezer") == 0 || strcmp(box->paused_by, "signals") == 0);
    return true;
}

/* CPU time of all processes, and their number. */
static uint64_t measure(struct sandbox *box, int *n)
{
    static struct sandbox_process all[MANY];
    uint64_t sum = 0;

    *n = sandbox_ps(box, all, MANY, &err);
    if (*n < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    for (int i = 0; i < *n; i++)
        sum += all[i].cpu_ms;
    return sum;
}

/* A running process uses CPU time while we do; there are more of them than processors. */
static void check_still(struct sandbox *box)
{
    int n_before;
    int n_after;
    const uint64_t before = measure(box, &n_before);
    const uint64_t until = clock_ns() + 60000000;

    while (clock_ns() < until)
        ;
    CHECK_EQ(measure(box, &n_after), before);
    CHECK_EQ(n_after, n_before);
}

static void await_running(struct sandbox *box)
{
    const uint64_t deadline = clock_ns() + PATIENCE_NS;
    int n;
    const uint64_t before = measure(box, &n);

    while (measure(box, &n) <= before)
        if (clock_ns() > deadline)
            test_fail(__FILE__, __LINE__, "nothing runs");
}

static struct process start_spinning(struct sandbox *box)
{
    struct process process = start_shell(box,
            "(setsid sh -c 'while :; do :; done' &); while :; do :; done & echo ready;"
            "while :; do (:); done");
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    read_until(process.stdout_fd, &out, "ready");
    return process;
}

CONTRACT(a_paused_sandbox_stands_still_and_goes_on)
{
    const char *const argv[] = { "true", NULL };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process process = start_spinning(box);

    if (!pause_box(box))
        return;
    check_still(box);
    CHECK_EQ(try_start(box, argv, NULL), -EAGAIN);
    CHECK(strstr(err.message, "paused"));
    CHECK_EQ(sandbox_pause(box, &err), 0); /* already paused */
    check_still(box);
    CHECK_EQ(sandbox_resume(box, &err), 0);
    CHECK(!box->paused_by);
    CHECK_EQ(sandbox_resume(box, &err), 0);
    await_running(box);
    AUTO(process_close) struct process later = start_spinning(box);
    CHECK(pause_box(box)); /* the new one, too */
    check_still(box);
    CHECK_EQ(sandbox_resume(box, &err), 0);
    await_running(box);
}

CONTRACT(an_empty_sandbox_can_be_paused_and_files_be_opened_meanwhile)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome first = run_shell(box, "echo text >file");

    if (!pause_box(box))
        return;
    AUTO(fd_close) int fd = sandbox_open_file(box, "file", O_RDONLY, 0, &err);
    CHECK(fd >= 0);
    CHECK_EQ(sandbox_resume(box, &err), 0);
    AUTO(outcome_finish) struct outcome second = run_shell(box, "cat file");
    CHECK_STR(second.out.data, "text\n");
}

/*
 * Each process of a chain forks the next and exits: one that is stopped must not have a
 * successor.
 */
CONTRACT(what_keeps_forking_is_caught)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process = start_shell(box,
            "printf '#!/bin/sh\\n[ $1 -gt 0 ] && setsid \"$0\" $(($1 - 1)) &\\n' >link &&"
            "chmod 755 link && for i in 1 2 3 4; do ./link 3000; done; echo running");
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    pid_t before[MANY];
    pid_t after[MANY];

    read_until(process.stdout_fd, &out, "running");
    if (!pause_box(box))
        return;
    int n = sandbox_pids(box, before, MANY, &err);
    check_still(box);
    CHECK_EQ(sandbox_pids(box, after, MANY, &err), n);
    CHECK(n <= 0 || memcmp(before, after, (size_t)n * sizeof(*before)) == 0);
    CHECK_EQ(sandbox_resume(box, &err), 0);
}

CONTRACT(a_signal_to_a_paused_program_arrives_when_it_goes_on)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process process = start_shell(
            box, "trap 'echo caught; exit 5' TERM; echo ready; while :; do :; done");
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    read_until(process.stdout_fd, &out, "ready");
    if (!pause_box(box)) {
        process_close(process);
        return;
    }
    CHECK_EQ(sandbox_signal(box, process.id, SIGTERM, &err), 0);
    CHECK_EQ(sandbox_signal(box, process.id, SIGCONT, &err), 0); /* does not end the pause */
    check_still(box);
    CHECK(!is_readable(box->event_fd));
    CHECK_EQ(sandbox_resume(box, &err), 0);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_STR(got.out.data, "caught\n");
    CHECK_EQ(WEXITSTATUS(got.status), 5);
}

/* Directories of the cgroups of a process, as far as they belong to the sandbox. */
struct groups {
    char path[16][256];
    size_t n;
};

static void add_group(struct groups *groups, const char *hierarchy, const char *group)
{
    CHECK(groups->n < ARRAY_LEN(groups->path));
    (void)snprintf(groups->path[groups->n++], sizeof(groups->path[0]), "/sys/fs/cgroup/%s%s",
            hierarchy, group);
}

static void find_groups(pid_t pid, struct groups *groups)
{
    char path[64];
    char text[4096];

    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *names = strchr(line, ':');
        char *group = names ? strchr(names + 1, ':') : NULL;
        if (!group || !strstr(group, "/carrel/"))
            continue;
        *group++ = '\0';
        add_group(groups, names + 1, group);
        char *below = strchr(strstr(group, "/carrel/") + strlen("/carrel/"), '/');
        if (!below)
            continue; /* else its parent belongs to the sandbox, too */
        *below = '\0';
        add_group(groups, names + 1, group);
    }
}

static int count_left(const struct groups *groups)
{
    struct stat st;
    int n = 0;

    for (size_t i = 0; i < groups->n; i++)
        n += stat(groups->path[i], &st) == 0;
    return n;
}

CONTRACT(a_paused_sandbox_can_be_stopped_and_leaves_no_group)
{
    struct groups groups = { .n = 0 };
    pid_t pids[MANY];
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process process = start_spinning(box);
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    if (!pause_box(box))
        return;
    if (box->can & CAN_HOST_PIDS) {
        CHECK(sandbox_pids(box, pids, MANY, &err) > 0);
        find_groups(pids[0], &groups);
    }
    CHECK_EQ(count_left(&groups), (int)groups.n);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK(!box->paused_by);
    CHECK_EQ(count_left(&groups), 0);
    read_to_end(process.stdout_fd, &out); /* no process holds the other end */
}

CONTRACT(a_paused_sandbox_that_is_only_freed_leaves_nothing_either)
{
    struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process process = start_spinning(box);
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    (void)pause_box(box);
    sandbox_free(box);
    read_to_end(process.stdout_fd, &out);
}

CONTRACT(a_lease_runs_out_while_paused)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process process = start_spinning(box);
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    if (!pause_box(box))
        return;
    CHECK_EQ(sandbox_set_lease(box, 1, 0, &err), 0);
    CHECK_EQ(await_event(box).kind, EVENT_EXITED);
    const struct sandbox_event event = await_event(box);
    CHECK_EQ(event.kind, EVENT_GONE);
    CHECK_EQ(event.why, GONE_LEASE);
    read_to_end(process.stdout_fd, &out);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
}

/* In a child: paused permanently, or repeatedly; then the child is killed. */
static void own_and_pause(int told, bool is_restless)
{
    struct sandbox *box = make_sandbox();
    struct process process = start_spinning(box);
    pid_t pids[MANY];
    int n = -1;

    (void)process;
    if (is_restless)
        n = sandbox_pids(box, pids, MANY, &err);
    if (pause_box(box) && !is_restless)
        n = sandbox_pids(box, pids, MANY, &err);
    (void)fd_write_all(told, &n, sizeof(n));
    (void)fd_write_all(told, pids, n > 0 ? (size_t)n * sizeof(*pids) : 0);
    while (is_restless && sandbox_resume(box, &err) == 0 && sandbox_pause(box, &err) == 0)
        ;
    for (;;)
        (void)poll(NULL, 0, -1);
}

/* There is no other way to wait for a process that is not our child. */
static void await_gone(const pid_t *pids, int n)
{
    const uint64_t deadline = clock_ns() + PATIENCE_NS;
    char path[64];

    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pids[i]);
        while (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            if (clock_ns() > deadline)
                test_fail(__FILE__, __LINE__, "process %d is left", (int)pids[i]);
            (void)poll(NULL, 0, 5);
        }
    }
}

static void kill_owner(bool is_restless, int wait_ms)
{
    struct groups groups = { .n = 0 };
    pid_t pids[MANY];
    int told[2];
    int n = -1;

    CHECK_EQ(pipe2(told, O_CLOEXEC), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        own_and_pause(told[1], is_restless);
        _exit(0);
    }
    fd_close(told[1]);
    CHECK_EQ(fd_read_all(told[0], &n, sizeof(n)), (ssize_t)sizeof(n));
    CHECK(n <= MANY);
    if (n > 0)
        CHECK_EQ(fd_read_all(told[0], pids, (size_t)n * sizeof(*pids)),
                (ssize_t)((size_t)n * sizeof(*pids)));
    for (int i = 0; i < n && i < 1; i++)
        find_groups(pids[i], &groups);
    (void)poll(NULL, 0, wait_ms); /* no event to wait for: any moment is fine */
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    fd_close(told[0]);
    await_gone(pids, n);
    /* It is not stale before its last process has exited; then a sweep finds it. */
    const uint64_t deadline = clock_ns() + PATIENCE_NS;
    while (count_left(&groups) > 0) {
        CHECK(runtime_sweep(subject, &err) >= 0);
        CHECK(clock_ns() < deadline);
    }
}

CONTRACT(nothing_is_left_of_a_paused_sandbox_whose_owner_is_killed)
{
    if (runtime_isolation(subject) == ISOLATION_NONE)
        return; /* it cannot be paused, as tested above; process_test covers the rest */
    kill_owner(false, 0);
}

CONTRACT(nothing_is_left_whenever_the_owner_is_killed)
{
    if (runtime_isolation(subject) == ISOLATION_NONE)
        return;
    for (int i = 0; i < 12; i++)
        kill_owner(true, i * 3);
}
