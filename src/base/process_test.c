#include "base/fd.h"
#include "base/process.h"
#include "harness.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *ignored(char text[static 4096])
{
    CHECK(fd_read_file(AT_FDCWD, "/proc/self/status", text, 4096) > 0);
    char *line = strstr(text, "SigIgn:\t");
    CHECK(line);
    line[strcspn(line, "\n")] = '\0';
    return line + strlen("SigIgn:\t");
}

TEST(every_signal_gets_its_default_action_back)
{
    const unsigned long ignore[8] = { (unsigned long)SIG_IGN };
    char text[4096];

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    CHECK_EQ(syscall(SYS_rt_sigaction, 32, ignore, NULL, 8), 0); /* the C library's own */
    CHECK_EQ(syscall(SYS_rt_sigaction, 64, ignore, NULL, 8), 0);
    CHECK(strcmp(ignored(text), "0000000000000000") != 0);
    signals_reset();
    CHECK_STR(ignored(text), "0000000000000000");
}
