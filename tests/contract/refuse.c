/* refuse.c - a runtime refuses what it cannot do. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>

CONTRACT(what_a_runtime_cannot_do_it_refuses_in_the_same_words)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct sandbox_usage usage;
    char start_of_message[64];
    const int results[] = {
        sandbox_pause(box, &err),
        sandbox_resume(box, &err),
        sandbox_usage(box, &usage, &err),
    };

    (void)snprintf(
            start_of_message, sizeof(start_of_message), "runtime %s: ", runtime_name(subject));
    for (size_t i = 0; i < ARRAY_LEN(results); i++)
        CHECK(results[i] == 0 || results[i] == -ENOTSUP);
    if (sandbox_pause(box, &err) < 0)
        CHECK_EQ(strncmp(err.message, start_of_message, strlen(start_of_message)), 0);
    else
        CHECK_EQ(sandbox_resume(box, &err), 0);
    AUTO(outcome_finish) struct outcome after = run_shell(box, "echo fine");
    CHECK_STR(after.out.data, "fine\n");
}

CONTRACT(a_pause_holds_every_program_until_resume)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    const char *const argv[] = { "cat", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    spec.has_stdin = true;
    AUTO(process_close) struct process process = start(box, &spec);
    int r = sandbox_pause(box, &err);
    if (r == -ENOTSUP)
        SKIP("%s", err.message);
    CHECK_EQ(r, 0);
    CHECK_EQ(fd_write_all(process.stdin_fd, "x", 1), 0);
    struct pollfd answer = { .fd = process.stdout_fd, .events = POLLIN };
    CHECK_EQ(poll(&answer, 1, 200), 0); /* it would have answered long ago */
    CHECK_EQ(sandbox_resume(box, &err), 0);
    read_until(process.stdout_fd, &out, "x");
}

CONTRACT(a_protection_that_is_missing_is_a_refusal_that_leaves_nothing)
{
    struct sandbox_spec spec = plain_spec();
    struct sandbox *box = NULL;
    const int before = count_descriptors();

    spec.require = UINT64_C(1) << 63; /* no runtime has this one */
    CHECK_EQ(create(&spec, &box), -ENOTSUP);
    CHECK(!box);
    CHECK(strstr(err.message, runtime_name(subject)));
    if (runtime_isolation(subject) == ISOLATION_NONE) {
        spec.require = PROTECT_BIT(PROTECT_SECCOMP) | PROTECT_BIT(PROTECT_NO_NEW_PRIVS);
        CHECK_EQ(create(&spec, &box), -ENOTSUP);
        CHECK(strstr(err.message, "seccomp"));
        CHECK(!strstr(err.message, "no_new_privs"));
    }
    CHECK_EQ(count_descriptors(), before);
    CHECK_EQ(waitpid(-1, NULL, __WALL), -1);
    CHECK_EQ(errno, ECHILD);
}

CONTRACT(protections_that_are_in_force_can_be_required)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(sandbox_free) struct sandbox *again = NULL;
    struct sandbox_spec spec = plain_spec();

    spec.require = box->protections;
    CHECK_EQ(create(&spec, &again), 0);
    CHECK_EQ(again->protections & spec.require, spec.require);
}
