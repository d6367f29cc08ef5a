/* aside_test.c - what work aside may change stays aside. */
#include "base/aside.h"
#include "base/err.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The umask of a thread, as the kernel has it. */
static unsigned umask_of(pid_t thread)
{
    char path[64], line[256];
    unsigned mask = 07777;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
    FILE *status = fopen(path, "re");
    CHECK(status);
    while (fgets(line, sizeof(line), status))
        if (sscanf(line, "Umask: %o", &mask) == 1)
            break;
    (void)fclose(status);
    return mask;
}

static int look(void *context)
{
    const pid_t *caller = context;
    sigset_t blocked;

    CHECK_EQ(umask_of(gettid()), 022);
    CHECK_EQ(umask_of(*caller), 077);
    CHECK_EQ(chdir("/proc"), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    CHECK(sigismember(&blocked, SIGTERM));
    return -ENOTSUP;
}

TEST(work_aside_has_its_own_umask_and_directory)
{
    struct carrel_error err = { 0 };
    pid_t caller = gettid();
    char before[4096], after[4096];
    sigset_t blocked;

    (void)umask(077);
    CHECK(getcwd(before, sizeof(before)));
    CHECK_EQ(aside_run(022, look, &caller, &err), -ENOTSUP);
    CHECK_EQ(err.code, 0); /* what the work returned is its own matter */
    CHECK_EQ(umask(022), 077);
    CHECK(getcwd(after, sizeof(after)));
    CHECK_STR(after, before);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    CHECK(!sigismember(&blocked, SIGTERM));
}
