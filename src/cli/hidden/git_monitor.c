/* git_monitor.c - answers git's fsmonitor hook by workspace/cache/monitor.h. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/commands.h"
#include "workspace/cache/monitor.h"
#include "workspace/private.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_ANSWER (8U << 20) /* a run that changed more is better off with git's own look */
#define VERSION "2"

/* git starts the hook in the root of the work tree that it asks about. */
static bool is_about_us(void)
{
    char path[PATH_MAX];
    char args[8192];
    const char *index = getenv("GIT_INDEX_FILE");

    if (!getcwd(path, sizeof(path)) || strcmp(path, PRIVATE_WORK_TREE) != 0 ||
            (index && strcmp(index, PRIVATE_GIT_DIR "/index") != 0))
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)getppid());
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_all(fd, args, sizeof(args));
    return n > 0 && (size_t)n < sizeof(args) && monitor_helps(args, (size_t)n);
}

static bool list(const char *token, struct buf *answer)
{
    AUTO(fd_close)
    int tree = open(PRIVATE_WORK_TREE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int upper = open(PRIVATE_CHANGES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int git = open(PRIVATE_GIT_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int layer = open(PRIVATE_LAYER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_whole = layer >= 0 || errno == ENOENT;
    const struct monitor monitor = {
        .tree = tree, .upper = upper, .layer = layer, .git = git, .token = token
    };

    return is_whole && tree >= 0 && upper >= 0 && git >= 0 && is_about_us() &&
           monitor_list(&monitor, answer);
}

bool is_git_monitor(const char *argv0)
{
    const char *own = strrchr(PRIVATE_MONITOR, '/') + 1;
    const char *slash = strrchr(argv0, '/');

    return strcmp(slash ? slash + 1 : argv0, own) == 0;
}

int git_monitor(int argc, char **argv)
{
    AUTO(buf_finish) struct buf answer = BUF_INIT(MAX_ANSWER);

    if (argc != 3 || strcmp(argv[1], VERSION) != 0)
        return 1; /* git then looks at everything, and so it does after each failure below */
    /* Different each time: see extensions_fit() in monitor.c. */
    buf_addf(&answer, "carrel:%" PRIu64 ":%d", clock_ns(), (int)getpid());
    buf_add(&answer, "", 1);
    size_t token_len = answer.len;
    if (!list(argv[2], &answer)) {
        answer.len = token_len;
        answer.is_short = false;
        buf_add(&answer, "/", 2);
    }
    return answer.is_short || fd_write_all(STDOUT_FILENO, answer.data, answer.len) < 0;
}
