#include "base/err.h"
#include "base/fd.h"
#include "harness.h"
#include "runtime/local/idmap.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t own;
static _Atomic unsigned n_here;
static _Atomic unsigned n_elsewhere;

static void count(int signal)
{
    (void)signal;
    atomic_fetch_add(syscall(SYS_gettid) == own ? &n_here : &n_elsewhere, 1U);
}

/* To its whole process group, as a terminal does. */
static _Noreturn void keep_signalling(void)
{
    (void)signal(SIGUSR1, SIG_IGN);
    while (getppid() == own)
        (void)kill(0, SIGUSR1);
    _exit(0);
}

TEST(handlers_of_the_caller_run_in_the_caller_alone)
{
    if (geteuid() != 0)
        SKIP("only root makes such namespaces");
    CHECK_EQ(setpgid(0, 0), 0);
    own = getpid();
    CHECK(signal(SIGUSR1, count) != SIG_ERR);
    pid_t other = fork();
    if (other == 0)
        keep_signalling();
    CHECK(other > 0);
    for (int i = 0; i < 100 || n_here < 100; i++) {
        struct carrel_error err = { 0 };
        AUTO(fd_close) int ns = idmap_open(0, 1000, 0, 1000, &err);
        if (ns < 0)
            SKIP("%s", err.message);
    }
    CHECK_EQ(kill(other, SIGKILL), 0);
    CHECK_EQ(waitpid(other, NULL, 0), other);
    CHECK_EQ(n_elsewhere, 0U);
}
