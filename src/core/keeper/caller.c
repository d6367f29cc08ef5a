/*
 * caller.c - a keeper detaches from the process that made it.
 *
 * It may live for days. Until then the caller's terminal must not wait for it, its directory
 * not be in use, its command line not be readable by every process, and of its environment
 * only what the keeper needs be in memory. Descriptors were closed before: create.c.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/trim.h"
#include "core/keeper/keeper.h"
#include "core/run/run.h"
#include "policy/environment.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/*
 * Variables that carrel reads, and those that the policy passes to each program. With a
 * repository all of them: git may run the user's filters when the work is harvested.
 */
static bool is_needed(const struct session *session, const char *variable)
{
    static const char own[][16] = { "HOME", "PATH", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG",
        "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME" };
    size_t len = strcspn(variable, "=");

    if (session->options->workspace || environment_is_read(variable) ||
            (session->request->policy && permit_passes(session->request->policy, variable)))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strlen(own[i]) == len && memcmp(own[i], variable, len) == 0)
            return true;
    return false;
}

/* Copies: title_move() overwrites the kernel's block. */
static int thin_environment(const struct session *session, struct carrel_error *err)
{
    size_t n = 0;

    for (char **all = environ; all && *all; all++)
        n += is_needed(session, *all);
    char **kept = calloc(n + 1, sizeof(*kept)); /* never freed */
    bool is_short = !kept;
    for (size_t i = 0, at = 0; !is_short && at < n; i++) {
        if (!is_needed(session, environ[i]))
            continue;
        kept[at] = strdup(environ[i]);
        is_short = !kept[at++];
    }
    if (is_short)
        return err_set_errno(err, -ENOMEM, "environment");
    environ = kept;
    return 0;
}

static int take_signals(struct keeper *keeper, struct carrel_error *err)
{
    sigset_t set;

    (void)signal(SIGPIPE, SIG_IGN); /* a reader that closes its pipe must not end the keeper */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGQUIT);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    keeper->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return keeper->signal_fd < 0 ? err_set_errno(err, -errno, "signalfd") : 0;
}

/* Variables may be secrets, and the memory of exec is readable for the user's processes. */
static int leave_words(const struct keeper *keeper, struct carrel_error *err)
{
    int r = thin_environment(&keeper->session, err);
    if (r < 0)
        return r;
    r = title_move("carrel-keeper");
    if (r < 0)
        return err_set_errno(err, r, "name the keeper");
    trim_leave_stack();
    return 0;
}

int keeper_leave_caller(struct keeper *keeper, struct carrel_error *err)
{
    int r = leave_words(keeper, err);

    if (r < 0)
        return r;
    (void)chdir("/");
    /* Each client and each detached program needs some; programs have their own limit. */
    fd_raise_limit();
    return take_signals(keeper, err);
}
