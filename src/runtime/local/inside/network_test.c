#include "base/err.h"
#include "harness.h"
#include "runtime/local/inside/network.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRONG 1
#define NO_NAMESPACE 2

/* Calls that fail, each with its own error, while the thread runs. */
static int fail_beside(void)
{
    static char stack[64U << 10] __attribute__((aligned(64)));
    struct carrel_error err = { 0 };
    struct netmaker network;

    if (unshare(CLONE_NEWUSER) < 0)
        return NO_NAMESPACE;
    if (network_begin(&network, stack + sizeof(stack), &err) < 0)
        return NO_NAMESPACE;
    while (__atomic_load_n(&network.running, __ATOMIC_ACQUIRE) != 0) {
        if (open("/does/not/exist", O_RDONLY | O_CLOEXEC) >= 0 || errno != ENOENT)
            return WRONG;
        if (dup(-1) >= 0 || errno != EBADF)
            return WRONG;
    }
    return network.code < 0 ? NO_NAMESPACE : 0;
}

TEST(errors_of_the_caller_are_its_own_while_the_network_is_made)
{
    for (int i = 0; i < 400; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            _exit(fail_beside());
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        if (WEXITSTATUS(status) == NO_NAMESPACE)
            SKIP("no user or network namespace can be made here");
        CHECK_EQ(WEXITSTATUS(status), 0);
    }
}
