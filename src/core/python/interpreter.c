/*
 * interpreter.c - finding an interpreter on the host, before there is a sandbox.
 *
 * A program of an earlier run may have written the virtual environment, its pyvenv.cfg and the
 * links in it. So a directory that they lead to is opened once; what is asked about it is asked
 * of the descriptor, and the descriptor is what is mounted. It must hold Python's own library,
 * and must not be the root directory, a home, or hold the environment: each of these would show
 * more than an installation of Python.
 */
#include "core/python/interpreter.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "base/path.h"
#include "policy/policy.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 16

/* What a sandbox shows of the host by itself and may hold an installation of Python. */
static bool is_shown(const struct interpreter *interpreter, const char *path)
{
    if (path_is_below(path, "/usr"))
        return true;
    for (size_t i = 0; i < interpreter->n_mounts; i++) {
        const char *target = interpreter->mounts[i].target;
        if (path_is_clean(target) && path_is_below(path, target))
            return true;
    }
    return false;
}

/* Takes `fd`, which is what is mounted at its path `target`. */
static int add_mount(
        struct interpreter *interpreter, int fd, const char *target, struct carrel_error *err)
{
    AUTO(fd_close) int source = fd;
    AUTO(free) char *name = NULL;
    AUTO(free) char *copy = strdup(target);
    struct carrel_mount *mounts =
            reallocarray(interpreter->mounts, interpreter->n_mounts + 1, sizeof(*mounts));
    if (mounts)
        interpreter->mounts = mounts;
    int *fds = reallocarray(interpreter->fds, interpreter->n_fds + 1, sizeof(*fds));
    if (fds)
        interpreter->fds = fds;
    if (!mounts || !fds || !copy || asprintf(&name, "/proc/self/fd/%d", source) < 0)
        return err_set_errno(err, -ENOMEM, "mounts");
    fds[interpreter->n_fds++] = fd_steal(&source);
    mounts[interpreter->n_mounts++] = (struct carrel_mount){
        .source = ptr_steal(&name),
        .target = ptr_steal(&copy),
    };
    return 0;
}

/* Python itself knows its installation by this file, lib/python3.X/os.py. */
static bool has_library(int prefix, const char *lib)
{
    char path[512];
    const char *name;
    struct stat st;
    bool is_found = false;

    AUTO(fd_close) int fd = openat(prefix, lib, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(dir_close) DIR *dir = fd < 0 ? NULL : dir_open(fd, ".");
    while (!is_found && (name = dir_next(dir))) {
        if (strncmp(name, "python3", 7) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "%s/os.py", name);
        is_found = fstatat(fd, path, &st, 0) == 0;
    }
    return is_found;
}

/* Whether the directory `path` is, or is below, the directory `id`. */
static bool is_held(const char *path, const struct named_id *id)
{
    AUTO(fd_close)
    int dir = path && path[0] == '/' ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    return dir >= 0 && named_is_below(dir, id);
}

/* "/home/NAME", wherever this user's own home is. */
static bool is_home(const char *path)
{
    return strncmp(path, "/home/", 6) == 0 && !strchr(path + 6, '/');
}

/* The directory `fd`, which `name` leads to, is shown to the program only if it is no more. */
static int check_shown(int fd, const char *name, int venv, struct carrel_error *err)
{
    char path[PATH_MAX];
    struct stat st;

    int r = named_path(fd, path, sizeof(path));
    if (r < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, r < 0 ? r : -errno, "'%s'", name);
    const struct named_id id = named_id_of(&st);
    const char *what = is_held("/", &id) ? "everything"
                       : is_held(getenv("HOME"), &id) || is_held("/root", &id) || is_home(path)
                               ? "a home"
                       : venv >= 0 && named_is_below(venv, &id) ? "the virtual environment"
                                                                : NULL;
    if (!what)
        return 0;
    return err_set(err, -EPERM,
            "'%s' would be shown to the program as an installation of Python, but '%s' holds "
            "%s; "
            "name an interpreter of the sandbox with --python",
            name, path, what);
}

/* Cuts the last component off; false at the top. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/*
 * Shows PREFIX of PREFIX/bin/python, if that is an installation and not visible anyway. `venv`
 * is the environment that led here; -1: none.
 */
static int show_prefix(struct interpreter *interpreter, const char *program, int venv,
        struct carrel_error *err)
{
    char prefix[PATH_MAX];

    (void)snprintf(prefix, sizeof(prefix), "%s", program);
    bool has_dir = go_up(prefix); /* PREFIX/bin */
    if (!has_dir || !go_up(prefix) || is_shown(interpreter, prefix))
        return 0;
    AUTO(fd_close) int fd = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (!has_library(fd, "lib") && !has_library(fd, "lib64")))
        return 0;
    int r = check_shown(fd, prefix, venv, err);
    if (r == 0)
        r = add_mount(interpreter, fd_steal(&fd), prefix, err);
    interpreter->n_installations += r == 0;
    return r;
}

/* The path that the kernel would reach; false when there is nothing. */
static bool find_real(const char *path, char *real, size_t size)
{
    AUTO(fd_close) int fd = open(path, O_PATH | O_CLOEXEC);

    return fd >= 0 && named_path(fd, real, size) == 0;
}

/*
 * Follows the links of an interpreter. Each stop may lie in an installation that has two names,
 * as a directory with the version and a link to it: both must be there.
 */
static int show_chain(struct interpreter *interpreter, const char *program, int venv,
        struct carrel_error *err)
{
    char at[PATH_MAX];
    char target[PATH_MAX];
    char real[PATH_MAX];
    int r = 0;

    (void)snprintf(at, sizeof(at), "%s", program);
    for (int i = 0; r == 0 && i < LINKS_MAX; i++) {
        r = show_prefix(interpreter, at, venv, err);
        ssize_t n = readlink(at, target, sizeof(target) - 1);
        if (n <= 0)
            break;
        target[n] = '\0';
        if (!go_up(at) || !path_absolute(at, target, real, sizeof(real)))
            break;
        (void)snprintf(at, sizeof(at), "%s", real);
    }
    if (r == 0 && find_real(program, real, sizeof(real)))
        r = show_prefix(interpreter, real, venv, err);
    return r;
}

/* The line "home = DIR" of pyvenv.cfg: where the interpreter looks for its own library. */
static bool find_home(const char *text, char *home, size_t size)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        const char *value = memchr(text, '=', len);
        size_t key = strspn(text, " \t");
        if (value && strncmp(text + key, "home", 4) == 0 &&
                strspn(text + key + 4, " \t") == (size_t)(value - text) - key - 4) {
            value += 1 + strspn(value + 1, " \t");
            size_t n = len - (size_t)(value - text);
            while (n > 0 && strchr(" \t\r", value[n - 1]))
                n--;
            int used = snprintf(home, size, "%.*s/python3", (int)n, value);
            return used > 0 && (size_t)used < size && home[0] == '/';
        }
        text += len + (text[len] == '\n');
    }
    return false;
}

static int make_absolute(
        const char *path, char *absolute, size_t size, struct carrel_error *err)
{
    char cwd[PATH_MAX];

    if (!getcwd(cwd, sizeof(cwd)))
        return err_set_errno(err, -errno, "current directory");
    if (!path_absolute(cwd, path, absolute, size))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", path);
    return 0;
}

/* The text of pyvenv.cfg below `venv`, NUL-terminated. */
static int read_config(
        int venv, const char *given, char *text, size_t size, struct carrel_error *err)
{
    struct carrel_error why = { 0 };

    AUTO(fd_close) int fd = named_open_beneath(venv, "pyvenv.cfg", NAMED_FILE, &why);
    ssize_t n = fd < 0 ? fd : fd_read_all(fd, text, size - 1);
    if (n < 0)
        return err_set(err, -EINVAL,
                "'%s' is not a virtual environment: it has no readable pyvenv.cfg (%s)", given,
                fd == -ELOOP || fd == -EINVAL ? why.message : strerrordesc_np((int)-n));
    text[n] = '\0';
    return 0;
}

static int show_venv(struct interpreter *interpreter, const char *dir, int venv,
        const char *config, struct carrel_error *err)
{
    char home[PATH_MAX];
    int r = 0;

    if (!is_shown(interpreter, dir)) {
        r = check_shown(venv, dir, -1, err);
        int fd = r == 0 ? fcntl(venv, F_DUPFD_CLOEXEC, 3) : -1;
        if (r == 0)
            r = fd < 0 ? err_set_errno(err, -errno, "venv")
                       : add_mount(interpreter, fd, dir, err);
    }
    if (r == 0 && find_home(config, home, sizeof(home)))
        r = show_prefix(interpreter, home, venv, err);
    return r == 0 ? show_chain(interpreter, interpreter->interpreter, venv, err) : r;
}

static int use_venv(const char *given, bool is_isolated, struct interpreter *interpreter,
        struct carrel_error *err)
{
    char dir[PATH_MAX];
    char config[8192];
    struct stat st;

    int r = make_absolute(given, dir, sizeof(dir), err);
    if (r < 0)
        return r;
    AUTO(fd_close) int venv = named_open(given, NAMED_DIRECTORY, err);
    if (venv < 0)
        return err_wrap(err, venv, "--venv");
    r = read_config(venv, given, config, sizeof(config), err);
    if (r < 0)
        return r;
    if (fstatat(venv, "bin/python", &st, 0) < 0)
        return err_set(err, -EINVAL,
                "'%s' is a broken virtual environment: its interpreter bin/python: %s", given,
                strerrordesc_np(errno));
    if (asprintf(&interpreter->interpreter, "%s/bin/python", dir) < 0) {
        interpreter->interpreter = NULL;
        return err_set_errno(err, -ENOMEM, "venv");
    }
    return is_isolated ? show_venv(interpreter, dir, venv, config, err) : 0;
}

static int use_named(const char *python, bool is_isolated, struct interpreter *interpreter,
        struct carrel_error *err)
{
    interpreter->interpreter = strdup(python);
    if (!interpreter->interpreter)
        return err_set_errno(err, -ENOMEM, "python");
    return is_isolated && path_is_clean(python) ? show_chain(interpreter, python, -1, err) : 0;
}

static int copy_mounts(const struct carrel_run_options *run, struct interpreter *interpreter,
        struct carrel_error *err)
{
    size_t n = run ? run->n_mounts : 0;

    interpreter->mounts = calloc(n + 1, sizeof(*interpreter->mounts));
    if (!interpreter->mounts)
        return err_set_errno(err, -ENOMEM, "mounts");
    for (size_t i = 0; i < n; i++)
        interpreter->mounts[i] = run->mounts[i];
    interpreter->n_mounts = interpreter->n_given = n;
    return 0;
}

static const char *choose_runtime(
        const struct carrel_python_options *o, const struct policy *policy)
{
    return o->run && o->run->runtime ? o->run->runtime : policy_get(policy, POLICY_TYPE)->text;
}

static const char *choose_interpreter(
        const struct carrel_python_options *o, const struct policy *policy)
{
    const struct policy_value *value = policy_get(policy, POLICY_PYTHON);

    if (o->python)
        return o->python;
    return value->is_set && value->text[0] ? value->text : "python3";
}

int interpreter_find(const struct carrel_python_options *o, const struct policy *policy,
        struct interpreter *out, struct carrel_error *err)
{
    AUTO(interpreter_finish) struct interpreter interpreter = { 0 };

    if (o->venv && o->python)
        return err_set(err, -EINVAL,
                "a virtual environment has its own interpreter: --venv and --python cannot be "
                "combined");
    int r = copy_mounts(o->run, &interpreter, err);
    if (r < 0)
        return r;
    /* Without isolation all is visible. The run checks whether there is such a runtime. */
    bool is_isolated =
            policy_runtime_isolation(choose_runtime(o, policy)) != POLICY_ISOLATION_NONE;
    if (o->venv)
        r = use_venv(o->venv, is_isolated, &interpreter, err);
    else
        r = use_named(choose_interpreter(o, policy), is_isolated, &interpreter, err);
    if (r < 0)
        return r;
    *out = interpreter;
    interpreter = (struct interpreter){ 0 };
    return 0;
}

void interpreter_finish(struct interpreter interpreter)
{
    for (size_t i = interpreter.n_given; i < interpreter.n_mounts; i++) {
        free((void *)(uintptr_t)interpreter.mounts[i].source);
        free((void *)(uintptr_t)interpreter.mounts[i].target);
    }
    for (size_t i = 0; i < interpreter.n_fds; i++)
        fd_close(interpreter.fds[i]);
    free(interpreter.fds);
    free(interpreter.mounts);
    free(interpreter.interpreter);
}
