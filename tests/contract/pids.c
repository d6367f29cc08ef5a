/* pids.c - the processes of a sandbox, by their pids on the host. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* How many of the listed processes run the program `name`; none may be ours or the runtime's.
 */
static int count(struct sandbox *box, const char *name)
{
    pid_t pids[64];
    char path[64];
    char comm[32];
    int n = sandbox_pids(box, pids, ARRAY_LEN(pids), &err);
    int found = 0;

    if (n < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    for (int i = 0; i < n; i++) {
        CHECK(pids[i] > 1 && pids[i] != getpid());
        (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pids[i]);
        if (fd_read_file(AT_FDCWD, path, comm, sizeof(comm)) <= 0)
            continue; /* it has just exited */
        comm[strcspn(comm, "\n")] = '\0';
        CHECK(strncmp(comm, "carrel", 6) != 0 && strcmp(comm, "contract_suite") != 0);
        found += strcmp(comm, name) == 0;
    }
    return found;
}

/* A runtime whose processes are not of this host has no list; can.c tests its refusal. */
static struct sandbox *make_listed(void)
{
    struct sandbox *box = make_sandbox();

    if (box->can & CAN_HOST_PIDS)
        return box;
    sandbox_free(box);
    SKIP("its processes have no numbers on this host");
}

CONTRACT(processes_are_listed_wherever_they_went)
{
    AUTO(sandbox_free) struct sandbox *box = make_listed();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    /* A child, an orphan, and one in its own session; each reports that it runs. */
    const char *const argv[] = { "sh", "-c",
        "exec 3<&0; (echo up; read line <&3) & sh -c '(echo up; read line <&3) & :';"
        "setsid sh -c 'echo up; read line <&3' & echo up; read line",
        NULL };
    struct process_spec spec = plain_process(argv);

    spec.has_stdin = true;
    AUTO(process_close) struct process process = start(box, &spec);
    read_until(process.stdout_fd, &out, "up\nup\nup\nup\n");
    CHECK_EQ(count(box, "sh"), 4);
}

CONTRACT(the_list_follows_what_begins_and_ends)
{
    AUTO(sandbox_free) struct sandbox *box = make_listed();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    const char *const argv[] = { "sh", "-c", "echo ready; read line", NULL };
    struct process_spec spec = plain_process(argv);
    pid_t pids[64];

    CHECK_EQ(sandbox_pids(box, pids, ARRAY_LEN(pids), &err), 0);
    spec.has_stdin = true;
    AUTO(process_close) struct process first = start(box, &spec);
    read_until(first.stdout_fd, &out, "ready");
    CHECK_EQ(count(box, "sh"), 1);
    struct process second = start(box, &spec);
    buf_clear(&out);
    read_until(second.stdout_fd, &out, "ready");
    CHECK_EQ(count(box, "sh"), 2);
    CHECK_EQ(sandbox_pids(box, pids, 1, &err), -E2BIG);

    fd_close(fd_steal(&second.stdin_fd));
    AUTO(outcome_finish) struct outcome got = finish(box, &second);
    CHECK_EQ(count(box, "sh"), 1);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK_EQ(sandbox_pids(box, pids, ARRAY_LEN(pids), &err), -ESHUTDOWN);
}
