/* ps.c - the details of each process in a sandbox. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MANY 128

static struct sandbox_process all[MANY];

static int list(struct sandbox *box)
{
    int n = sandbox_ps(box, all, MANY, &err);

    if (n < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return n;
}

/* The process with this pid inside, which must exist. */
static const struct sandbox_process *find(int n, long pid)
{
    for (int i = 0; i < n; i++)
        if (all[i].inner_pid == pid)
            return &all[i];
    test_fail(__FILE__, __LINE__, "process %ld is not listed", pid);
    return NULL;
}

CONTRACT(each_process_is_described_as_the_sandbox_sees_it)
{
    const char *const argv[] = { "sh", "-c",
        "sh -c 'echo $$ $PPID $(id -u); read line; :' child; :", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    struct timespec now;
    char *end;

    spec.has_stdin = true;
    AUTO(process_close) struct process process = start(box, &spec);
    read_until(process.stdout_fd, &out, "\n");
    const long child_pid = strtol(out.data, &end, 10);
    const long parent_pid = strtol(end, &end, 10);
    const long uid = strtol(end, &end, 10);
    int n = list(box);
    CHECK_EQ(n, 2);
    const struct sandbox_process *parent = find(n, parent_pid);
    const struct sandbox_process *child = find(n, child_pid);

    CHECK_EQ(child->inner_parent, parent_pid);
    CHECK(parent->inner_parent == 0 || parent->inner_parent == 1);
    CHECK_EQ(parent->process, process.id);
    CHECK_EQ(child->process, 0);
    CHECK_EQ((long)child->uid, uid);
    if (box->can & CAN_HOST_PIDS)
        CHECK(child->pid > 1 && child->pid != getpid());
    else
        CHECK_EQ(child->pid, 0);
    CHECK_STR(child->comm, "sh");
    CHECK_STR(child->command, "sh -c echo $$ $PPID $(id -u); read line; : child");
    CHECK(strchr("RSD", child->state));
    CHECK(child->memory_bytes > 4096 && child->memory_bytes < 64U << 20);
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    CHECK(child->begun_ns > 0 && child->begun_ns / 1000000000 <= (uint64_t)now.tv_sec);
    CHECK(child->begun_ns >= parent->begun_ns);
}

CONTRACT(ids_belong_to_those_that_were_started_and_go_with_them)
{
    const char *const argv[] = { "sh", "-c", "echo ready; read line", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    CHECK_EQ(list(box), 0);
    spec.has_stdin = true;
    struct process first = start(box, &spec);
    AUTO(process_close) struct process second = start(box, &spec);
    /* An orphan has the same parent, and is not one of them. */
    AUTO(outcome_finish)
    struct outcome orphan = run_shell(box, "(setsid sleep 1000 >/dev/null 2>&1 &)");
    read_until(first.stdout_fd, &out, "ready");
    int n = list(box);
    unsigned marked = 0;
    const uint32_t first_id = first.id;
    for (int i = 0; i < n; i++) {
        marked += all[i].process != 0;
        CHECK(all[i].process == 0 || all[i].process == first.id || all[i].process == second.id);
        if (strcmp(all[i].comm, "sleep") == 0)
            CHECK_EQ(all[i].process, 0);
    }
    CHECK_EQ(marked, 2);
    fd_close(fd_steal(&first.stdin_fd));
    AUTO(outcome_finish) struct outcome got = finish(box, &first);
    n = list(box);
    for (int i = 0; i < n; i++)
        CHECK(all[i].process != first_id);
    CHECK_EQ(sandbox_ps(box, all, 1, &err), -E2BIG);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK_EQ(sandbox_ps(box, all, MANY, &err), -ESHUTDOWN);
}

/* A name may contain the syntax of /proc's files. */
CONTRACT(a_program_cannot_lie_about_more_than_its_name)
{
    const char *const argv[] = { "sh", "-c",
        "n=') R 1 1 1\nUid:\t0'; cp \"$(command -v sleep)\" \"./$n\" && \"./$n\" 1000 & "
        "read line; kill $!",
        NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome plain = run_shell(box, "id -u");
    const uid_t uid = (uid_t)strtoul(plain.out.data, NULL, 10);

    spec.has_stdin = true;
    AUTO(process_close) struct process process = start(box, &spec);
    const struct sandbox_process *found = NULL;
    for (int tries = 0; !found && tries < 20000; tries++) {
        int n = list(box);
        for (int i = 0; i < n; i++)
            if (strncmp(all[i].comm, ") R 1 1", 7) == 0)
                found = &all[i];
    }
    CHECK(found);
    CHECK_EQ(found->uid, uid);
    CHECK(found->inner_parent > 1);
    CHECK(found->memory_bytes < 64U << 20);
}

CONTRACT(a_thousand_programs_can_run_and_the_next_are_refused)
{
    enum { MOST = 1024, TRIED = 1100 };
    const char *const argv[] = { "sleep", "1000", NULL };
    const struct process_spec process_spec = plain_process(argv);
    struct sandbox_spec spec = plain_spec();
    AUTO(sandbox_free) struct sandbox *box = NULL;
    AUTO(free) struct sandbox_process *many = calloc(2 * TRIED, sizeof(*many));
    uint32_t last = 0;
    int started = 0;
    int r = 0;

    CHECK(many);
    spec.limits.value[LIMIT_PIDS] = 4000;
    spec.limits.value[LIMIT_MEMORY] = UINT64_C(1) << 30;
    CHECK_EQ(create(&spec, &box), 0);
    for (; r == 0 && started < TRIED; started += r == 0) {
        AUTO(process_close) struct process process = PROCESS_INIT;
        r = sandbox_start(box, &process_spec, &process, &err);
        CHECK(r < 0 || process.id > last);
        last = process.id;
    }
    CHECK_EQ(r, -EAGAIN);
    CHECK(started >= 512 && started <= MOST);
    r = sandbox_ps(box, many, 2 * TRIED, &err);
    CHECK_EQ(r, started);
    for (int i = 0; i < r; i++)
        CHECK(many[i].process != 0);
    CHECK_EQ(sandbox_signal(box, many[0].process, 9, &err), 0);
    CHECK_EQ(await_event(box).process, many[0].process);
    AUTO(process_close) struct process again = start(box, &process_spec); /* there is room */
}
