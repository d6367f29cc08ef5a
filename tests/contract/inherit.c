/* inherit.c - what a program must not inherit from its caller. */
#include "harness.h"
#include "place.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

CONTRACT(no_descriptor_of_the_caller_is_passed_on)
{
    int leak = dup2(open("/etc/passwd", O_RDONLY | O_CLOEXEC), 57); /* not close-on-exec */
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome got = run_shell(box, "ls /proc/$$/fd");

    CHECK_EQ(leak, 57);
    CHECK_EQ(fcntl(leak, F_GETFD), 0);
    /* A shell may keep its own descriptor 10 for a script; there is none here. */
    CHECK_STR(got.out.data, "0\n1\n2\n");
}

CONTRACT(no_signal_setting_of_the_caller_is_passed_on)
{
    const char *const argv[] = { "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", NULL };
    const struct process_spec spec = plain_process(argv);
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process process = start(box, &spec);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_STR(got.out.data, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

CONTRACT(a_program_has_a_session_of_its_own)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome got =
            run_shell(box, "read -r pid name state parent group session rest </proc/self/stat;"
                           "[ $session = $$ ] && [ $group = $$ ] && echo own;"
                           "(: </dev/tty) 2>/dev/null || echo no terminal");

    CHECK_STR(got.out.data, "own\nno terminal\n");
}

CONTRACT(core_dumps_are_off)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome got = run_shell(box, "ulimit -c; ulimit -H -c; kill -SEGV $$");

    CHECK_STR(got.out.data, "0\n0\n");
    CHECK(WIFSIGNALED(got.status));
    CHECK(!WCOREDUMP(got.status));
}

CONTRACT(protections_that_are_claimed_can_be_seen)
{
    static const struct {
        enum protection protection;
        const char *line;
    } rows[] = {
        { PROTECT_NO_NEW_PRIVS, "NoNewPrivs:\t1\n" },
        { PROTECT_SECCOMP, "Seccomp:\t2\n" },
        { PROTECT_CAPABILITIES, "CapPrm:\t0000000000000000\n" },
        { PROTECT_CAPABILITIES, "CapEff:\t0000000000000000\n" },
        { PROTECT_CAPABILITIES, "CapBnd:\t0000000000000000\n" },
        { PROTECT_CAPABILITIES, "CapAmb:\t0000000000000000\n" },
    };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome got = run_shell(box, "cat /proc/self/status");

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if ((box->protections & PROTECT_BIT(rows[i].protection)) &&
                !strstr(got.out.data, rows[i].line))
            test_fail(__FILE__, __LINE__, "no line %s in:\n%s", rows[i].line, got.out.data);
    if (runtime_isolation(subject) == ISOLATION_NONE)
        CHECK(!(box->protections & PROTECT_BIT(PROTECT_SECCOMP)));
}
