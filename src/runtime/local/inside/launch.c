/* launch.c - what a program must not inherit from init. */
#include "runtime/local/inside/launch.h"
#include "base/auto.h"
#include "base/err.h"
#include "runtime/local/inside/caps.h"
#include "runtime/local/inside/seccomp.h"
#include "runtime/local/plan.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    const struct launch *launch;
    int failed; /* negative errno as the port has it; 0: the program runs */
    struct carrel_error *err;
};

static int own_session(const struct launch *launch)
{
    if (setsid() < 0)
        return -errno;
    if (launch->has_tty && ioctl(launch->fds[0], TIOCSCTTY, 0) < 0)
        return -errno;
    return 0;
}

static int own_descriptors(const struct launch *launch)
{
    for (int i = 0; i < 3; i++)
        if (dup3(launch->fds[i], i, 0) < 0)
            return -errno;
    return syscall(SYS_close_range, 3U, ~0U, 0U) < 0 ? -errno : 0;
}

static int limit_resources(const struct launch *launch)
{
    for (size_t i = 0; i < launch->plan->n_rlimits; i++) {
        const struct plan_rlimit *limit = &launch->plan->rlimits[i];
        struct rlimit value;
        if (getrlimit((__rlimit_resource_t)limit->resource, &value) < 0)
            return -errno;
        /* Raising a hard limit takes the host's root: what the caller may not, we may not. */
        if (value.rlim_max > limit->value)
            value.rlim_max = limit->value;
        value.rlim_cur = value.rlim_max;
        if (setrlimit((__rlimit_resource_t)limit->resource, &value) < 0)
            return -errno;
    }
    return 0;
}

static int become_program_user(const struct launch *launch)
{
    if (!launch->plan->has_range)
        return 0; /* init is that user already, and may not call setgroups */
    if (setgroups(0, NULL) < 0 || setresgid(launch->gid, launch->gid, launch->gid) < 0 ||
            setresuid(launch->uid, launch->uid, launch->uid) < 0)
        return -errno;
    return 0;
}

static int drop_capabilities(const struct launch *launch)
{
    (void)launch;
    (void)umask(022);
    return caps_drop_all();
}

static int filter_calls(const struct launch *launch)
{
    (void)launch;
    return seccomp_install_rest(NULL); /* init has the other part */
}

static int restore_signals(const struct launch *launch)
{
    sigset_t none;

    (void)launch;
    (void)sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int enter_directory(const struct launch *launch)
{
    return chdir(launch->cwd) < 0 ? -errno : 0;
}

static const struct {
    int (*run)(const struct launch *launch);
    const char *what;
    int code; /* what a failure is for the caller */
} steps[] = {
    { own_session, "make an own session", -EIO }, /* before the terminal's descriptor moves */
    { own_descriptors, "set up the streams",
            -EIO }, /* nothing of init's is open from here on */
    { limit_resources, "set resource limits", -EIO },
    { become_program_user, "change the user", -EIO }, /* needs init's capabilities */
    { drop_capabilities, "drop capabilities", -EIO }, /* the last use of them was above */
    { enter_directory, "enter", -ENOTDIR }, /* as that user: init's view is not the program's */
    { restore_signals, "restore signals", -EIO },
    { filter_calls, "filter system calls", -EIO }, /* last: it forbids some of the above */
};

/* execve along PATH. Returns the negative errno that says most. */
static int exec_along_path(const struct launch *launch)
{
    const char *name = launch->argv[0];
    const char *path = "/usr/local/bin:/usr/bin:/bin";
    char file[PATH_MAX];
    int best = -ENOENT;

    if (strchr(name, '/')) {
        execve(name, launch->argv, launch->env);
        return -errno;
    }
    for (char **entry = launch->env; *entry; entry++)
        if (strncmp(*entry, "PATH=", 5) == 0)
            path = *entry + 5;
    size_t name_len = strlen(name);
    for (;;) {
        size_t len = strcspn(path, ":");
        if (len > 0 && len + 1 + name_len < sizeof(file)) {
            memcpy(file, path, len);
            file[len] = '/';
            memcpy(file + len + 1, name, name_len + 1);
            execve(file, launch->argv, launch->env);
            if (errno != ENOENT && errno != ENOTDIR && (errno != EACCES || best == -ENOENT))
                best = -errno;
            if (best != -ENOENT && best != -EACCES)
                break;
        }
        if (!path[len])
            break;
        path += len + 1;
    }
    return best;
}

static int explain_exec(const char *name, int code, struct carrel_error *err)
{
    struct stat st;

    if (code == -ENOENT && strchr(name, '/') && stat(name, &st) == 0)
        return err_set(err, -ENOEXEC,
                "'%s' is there, but its interpreter (the #! line or the loader) is not", name);
    if (code == -ENOENT || code == -ENOTDIR)
        return err_set(err, -ENOENT, "'%s': not found in the sandbox", name);
    if (code == -ENOEXEC)
        return err_set(err, -ENOEXEC,
                "'%s': not a program for this machine, and without a #! line", name);
    if (code == -EACCES && stat(name, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(err, -EACCES, "'%s' is a directory", name);
    return err_set(err, code == -EACCES ? -EACCES : -ENOEXEC, "'%s': cannot be executed: %s",
            name, strerrordesc_np(-code));
}

static int run_child(void *arg)
{
    struct child *child = arg;
    const struct launch *launch = child->launch;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int r = steps[i].run(launch);
        if (r == 0)
            continue;
        bool is_cwd = steps[i].code == -ENOTDIR;
        child->failed = err_set(child->err, steps[i].code, "%s%s%s: %s", steps[i].what,
                is_cwd ? " working directory " : "", is_cwd ? launch->cwd : "",
                strerrordesc_np(-r));
        _exit(127);
    }
    int r = exec_along_path(launch);
    child->failed = explain_exec(launch->argv[0], r, child->err);
    _exit(127);
}

pid_t launch_process(const struct launch *launch, struct carrel_error *err)
{
    struct child child = { .launch = launch, .err = err };

    pid_t pid = clone(run_child, launch->stack_end, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
    if (pid < 0)
        return err_set(err, -EAGAIN, "start a process: %s", strerrordesc_np(errno));
    if (child.failed == 0)
        return pid;
    (void)waitpid(pid, NULL, 0); /* its end is reported by the error */
    return child.failed;
}
