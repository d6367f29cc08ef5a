/*
 * spawn.c - the last steps before exec.
 *
 * The child shares the caller's memory until exec (the caller waits), so starting costs no copy
 * of page tables, and a failure comes back through the same memory.
 */
#include "runtime/spawn.h"
#include "base/auto.h"
#include "base/err.h"
#include <errno.h>
#include <fcntl.h>
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
    struct spawn *spawn;
    int failed; /* negative errno as the port has it; 0: the program runs */
    struct carrel_error *err;
};

static int own_session(struct spawn *spawn)
{
    if (setsid() < 0)
        return -errno;
    if (spawn->has_tty && ioctl(spawn->fds[0], TIOCSCTTY, 0) < 0)
        return -errno;
    return 0;
}

/* First out of the way of one another, then to their places. */
static int own_descriptors(struct spawn *spawn)
{
    const int n = (int)spawn->n_fds;

    for (int i = 0; i < n; i++)
        if (spawn->fds[i] < n) {
            spawn->fds[i] = fcntl(spawn->fds[i], F_DUPFD, n);
            if (spawn->fds[i] < 0)
                return -errno;
        }
    for (int i = 0; i < n; i++)
        if (dup3(spawn->fds[i], i, 0) < 0)
            return -errno;
    return syscall(SYS_close_range, (unsigned)n, ~0U, 0U) < 0 ? -errno : 0;
}

static int limit_resources(struct spawn *spawn)
{
    for (size_t i = 0; i < spawn->n_rlimits; i++) {
        const struct spawn_rlimit *limit = &spawn->rlimits[i];
        struct rlimit value;
        if (getrlimit((__rlimit_resource_t)limit->resource, &value) < 0)
            return -errno;
        /* Raising a hard limit requires the host's root: the caller's is not exceeded. */
        if (value.rlim_max > limit->value)
            value.rlim_max = limit->value;
        value.rlim_cur = value.rlim_max;
        if (setrlimit((__rlimit_resource_t)limit->resource, &value) < 0)
            return -errno;
    }
    return 0;
}

static int drop_privileges(struct spawn *spawn)
{
    return spawn->drop(spawn);
}

static int restore_signals(struct spawn *spawn)
{
    sigset_t none;

    (void)spawn;
    (void)sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int enter_directory(struct spawn *spawn)
{
    return spawn->cwd[0] && chdir(spawn->cwd) < 0 ? -errno : 0;
}

static const struct {
    int (*run)(struct spawn *spawn);
    const char *what;
    int code; /* the error for the caller */
} steps[] = {
    { own_session, "make an own session", -EIO }, /* before the terminal's descriptor moves */
    { own_descriptors, "set up the streams", -EIO },  /* from here on no other one is open */
    { limit_resources, "set resource limits", -EIO }, /* with the right to raise them */
    { drop_privileges, "drop privileges", -EIO },
    { enter_directory, "enter", -ENOTDIR }, /* as that user: the caller may enter more */
    { restore_signals, "restore signals", -EIO },
};

/* execve along PATH. Returns the most informative negative errno. */
static int exec_along_path(struct spawn *spawn)
{
    const char *name = spawn->argv[0];
    const char *path = "/usr/local/bin:/usr/bin:/bin";
    char file[PATH_MAX];
    int best = -ENOENT;

    if (strchr(name, '/')) {
        execve(name, spawn->argv, spawn->env);
        return -errno;
    }
    for (char **entry = spawn->env; *entry; entry++)
        if (strncmp(*entry, "PATH=", 5) == 0)
            path = *entry + 5;
    size_t name_len = strlen(name);
    for (;;) {
        size_t len = strcspn(path, ":");
        if (len > 0 && len + 1 + name_len < sizeof(file)) {
            memcpy(file, path, len);
            file[len] = '/';
            memcpy(file + len + 1, name, name_len + 1);
            execve(file, spawn->argv, spawn->env);
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
                "'%s' exists, but its interpreter (the #! line or the loader) does not", name);
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
    struct spawn *spawn = child->spawn;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int r = steps[i].run(spawn);
        if (r == 0)
            continue;
        bool is_cwd = steps[i].code == -ENOTDIR;
        child->failed = err_set(child->err, steps[i].code, "%s%s%s: %s", steps[i].what,
                is_cwd ? " working directory " : "", is_cwd ? spawn->cwd : "",
                strerrordesc_np(-r));
        _exit(127);
    }
    /* Last: the filter forbids some of the above. */
    int r = spawn->seal ? spawn->seal(spawn, child->err) : 0;
    if (r < 0) {
        child->failed = err_wrap(child->err, -EIO, "filter system calls");
        _exit(127);
    }
    r = exec_along_path(spawn);
    child->failed = explain_exec(spawn->argv[0], r, child->err);
    _exit(127);
}

pid_t spawn_program(struct spawn *spawn, struct carrel_error *err)
{
    struct child child = { .spawn = spawn, .err = err };

    pid_t pid = clone(run_child, spawn->stack_end, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
    if (pid < 0)
        return err_set(err, -EAGAIN, "start a process: %s", strerrordesc_np(errno));
    if (child.failed == 0)
        return pid;
    (void)waitpid(pid, NULL, 0); /* its exit is reported by the error */
    return child.failed;
}

/* TIOCGPTPEER opens the other end by descriptor, whatever is mounted on /dev/pts. */
int spawn_terminal(int master, uint16_t rows, uint16_t cols, struct carrel_error *err)
{
    const struct winsize size = { .ws_row = rows, .ws_col = cols };
    int unlock = 0;

    if (ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
        return err_set(err, -EIO, "prepare a terminal: %s", strerrordesc_np(errno));
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return slave < 0 ? err_set(err, -EIO, "open a terminal: %s", strerrordesc_np(errno))
                     : slave;
}
