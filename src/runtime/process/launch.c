/*
 * launch.c - runs between fork and exec: allocates nothing, locks nothing.
 *
 * The process may be the copy of one with many threads, so only system calls and plain memory
 * are used. What is to be done was decided before; a step that fails means no exec.
 */
#include "runtime/process/launch.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct steps_state {
    const struct launch *launch;
    struct payload payload;
};

static int read_payload(struct steps_state *state, struct carrel_error *err)
{
    int r = payload_map(state->launch->payload, &state->payload);

    return r < 0 ? err_set_errno(err, r, "read the arguments") : 0;
}

static int follow_parent(struct steps_state *state, struct carrel_error *err)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return err_set_errno(err, -errno, "ask for the signal of the parent's death");
    if (getppid() != state->launch->parent)
        return err_set(err, -ESRCH, "the supervisor is gone");
    return 0;
}

static int lead_session(struct steps_state *state, struct carrel_error *err)
{
    (void)state;
    return setsid() < 0 ? err_set_errno(err, -errno, "start a session") : 0;
}

static int take_streams(struct steps_state *state, struct carrel_error *err)
{
    const struct launch *launch = state->launch;

    for (int i = 0; i < 3; i++)
        if (dup2(launch->streams[i], i) < 0)
            return err_set_errno(err, -errno, "set up the streams");
    if (launch->has_tty && ioctl(0, TIOCSCTTY, 0) < 0)
        return err_set_errno(err, -errno, "take the terminal");
    return 0;
}

static int keep_nothing_else(struct steps_state *state, struct carrel_error *err)
{
    (void)state;
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "close inherited descriptors");
    return 0;
}

static int enter_directory(struct steps_state *state, struct carrel_error *err)
{
    const char *cwd = state->payload.text;

    if (!cwd[0])
        return fchdir(state->launch->workspace) < 0
                       ? err_set_errno(err, -errno, "enter the workspace")
                       : 0;
    if (chdir(cwd) == 0)
        return 0;
    /* Whatever the reason is, one code: -EACCES would speak of the program. */
    const char *why = strerrordesc_np(errno);
    return err_set(err, -ENOTDIR, "working directory '%s': %s", cwd, why ? why : "?");
}

static int set_limits(struct steps_state *state, struct carrel_error *err)
{
    for (size_t i = 0; i < state->launch->n_rlimits; i++) {
        const struct launch_rlimit *row = &state->launch->rlimits[i];
        struct rlimit now;
        if (getrlimit(row->resource, &now) < 0)
            return err_set_errno(err, -errno, "read a resource limit");
        if (now.rlim_max > row->value)
            now.rlim_max = row->value;
        now.rlim_cur = now.rlim_max;
        if (setrlimit(row->resource, &now) < 0)
            return err_set_errno(err, -errno, "set a resource limit");
    }
    return 0;
}

/*
 * A program of root's may raise its limits again. Without the two capabilities that allow it
 * the limits hold, and without new privileges it cannot get them back by exec.
 */
static int give_up_powers(struct steps_state *state, struct carrel_error *err)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];
    const uint32_t given_up = (1U << CAP_SYS_RESOURCE) | (1U << CAP_IPC_LOCK);

    (void)state;
    if (syscall(SYS_capget, &header, data) < 0)
        return err_set_errno(err, -errno, "read capabilities");
    data[0].effective &= ~given_up;
    data[0].permitted &= ~given_up;
    data[0].inheritable &= ~given_up;
    if (syscall(SYS_capset, &header, data) < 0)
        return err_set_errno(err, -errno, "give up capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set_errno(err, -errno, "give up new privileges");
    return 0;
}

static int hear_signals(struct steps_state *state, struct carrel_error *err)
{
    sigset_t none;

    (void)state;
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) < 0
                   ? err_set_errno(err, -errno, "unblock signals")
                   : 0;
}

/* What exec says about a file, as the codes of sandbox_start. */
static int exec_file(const char *path, struct payload *payload)
{
    (void)execve(path, payload->argv, payload->env);
    switch (errno) {
    case ENOENT:
        /* Also when a script's interpreter or a binary's loader is not there. */
        return faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0 ? -ELIBACC : -ENOENT;
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
        return -ENOENT;
    case EPERM:
        return -EACCES;
    case EINVAL:
    case ELIBBAD:
        return -ENOEXEC;
    default:
        return -errno;
    }
}

static const char *search_path(char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/*
 * As execvp(3), but with the PATH of the program's own environment, without a shell for files
 * of unknown format, and without the working directory for an empty entry.
 */
static int exec_search(struct payload *payload)
{
    const char *name = payload->argv[0];
    const char *at = search_path(payload->env);
    char path[PATH_MAX];
    int result = -ENOENT;

    if (strchr(name, '/'))
        return exec_file(name, payload);
    for (;;) {
        size_t len = strcspn(at, ":");
        int n = snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, name);
        if (len > 0 && n > 0 && (size_t)n < sizeof(path)) {
            int r = exec_file(path, payload);
            if (r != -ENOENT && r != -EACCES)
                return r;
            if (r == -EACCES)
                result = r; /* a later directory may have one that runs */
        }
        if (!at[len])
            return result;
        at += len + 1;
    }
}

static int exec_program(struct steps_state *state, struct carrel_error *err)
{
    const char *name = state->payload.argv[0];
    int r = exec_search(&state->payload);

    switch (r) {
    case -ENOENT:
        return err_set(err, r, "no such program: '%s'%s", name,
                strchr(name, '/') ? "" : " (looked for in PATH)");
    case -ELIBACC:
        return err_set(err, -ENOEXEC, "cannot execute '%s': its interpreter is missing", name);
    default:
        return err_set_errno(err, r, "cannot execute '%s'", name);
    }
}

static int (*const steps[])(struct steps_state *, struct carrel_error *) = {
    read_payload,
    follow_parent,     /* early: whatever comes, it must not outlive the supervisor */
    lead_session,      /* before the terminal: only a session's leader can take one */
    take_streams,      /* from descriptors that the next step takes away */
    keep_nothing_else, /* on exec: the payload, the status pipe and the workspace still serve */
    enter_directory,   /* with all powers of the caller, like the caller's own chdir */
    set_limits,        /* after everything that opens or maps, before the power to raise goes */
    give_up_powers,
    hear_signals, /* last: a signal before this point waits for the program */
    exec_program,
};

_Noreturn void launch_exec(const struct launch *launch, int status)
{
    struct steps_state state = { .launch = launch };
    struct carrel_error err = { 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(steps); i++)
        r = steps[i](&state, &err);
    (void)fd_write_all(status, &err, sizeof(err)); /* nobody else could be told */
    _exit(127);
}
