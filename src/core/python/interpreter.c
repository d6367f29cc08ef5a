/*
 * interpreter.c - finding an interpreter on the host, before there is a sandbox.
 *
 * What is read here is the caller's own: a directory that the caller named, and the links in
 * it. The kernel resolves them again when the sandbox is made, and refuses what is not there.
 */
#include "core/python/interpreter.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/policy.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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

static int add_mount(
        struct interpreter *interpreter, const char *path, struct carrel_error *err)
{
    struct carrel_mount *mounts =
            reallocarray(interpreter->mounts, interpreter->n_mounts + 1, sizeof(*mounts));
    AUTO(free) char *source = strdup(path);
    AUTO(free) char *target = strdup(path);

    if (mounts)
        interpreter->mounts = mounts;
    if (!mounts || !source || !target)
        return err_set_errno(err, -ENOMEM, "mounts");
    mounts[interpreter->n_mounts++] = (struct carrel_mount){
        .source = ptr_steal(&source),
        .target = ptr_steal(&target),
    };
    return 0;
}

/* Python itself knows its installation by this file, lib/python3.X/os.py. */
static bool has_library(const char *prefix, const char *lib)
{
    char path[PATH_MAX + 512];
    struct dirent *entry;
    struct stat st;
    bool is_found = false;

    (void)snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX, prefix, lib);
    DIR *dir = opendir(path);
    while (dir && !is_found && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, "python3", 7) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "%s/os.py", entry->d_name);
        is_found = fstatat(dirfd(dir), path, &st, 0) == 0;
    }
    if (dir)
        (void)closedir(dir);
    return is_found;
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

/* Shows PREFIX of PREFIX/bin/python, if that is an installation and not visible anyway. */
static int show_prefix(
        struct interpreter *interpreter, const char *program, struct carrel_error *err)
{
    char prefix[PATH_MAX];

    (void)snprintf(prefix, sizeof(prefix), "%s", program);
    bool has_dir = go_up(prefix); /* PREFIX/bin */
    if (!has_dir || !go_up(prefix) || is_shown(interpreter, prefix))
        return 0;
    return has_library(prefix, "lib") || has_library(prefix, "lib64")
                   ? add_mount(interpreter, prefix, err)
                   : 0;
}

/* The path that the kernel would reach; false when there is nothing. */
static bool find_real(const char *path, char *real, size_t size)
{
    char link[64];
    AUTO(fd_close) int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return false;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, real, size - 1);
    if (n <= 0)
        return false;
    real[n] = '\0';
    return path_is_clean(real);
}

/*
 * Follows the links of an interpreter. Each stop may lie in an installation that has two names,
 * as a directory with the version and a link to it: both must be there.
 */
static int show_chain(
        struct interpreter *interpreter, const char *program, struct carrel_error *err)
{
    char at[PATH_MAX];
    char target[PATH_MAX];
    char real[PATH_MAX];
    int r = 0;

    (void)snprintf(at, sizeof(at), "%s", program);
    for (int i = 0; r == 0 && i < LINKS_MAX; i++) {
        r = show_prefix(interpreter, at, err);
        ssize_t n = readlink(at, target, sizeof(target) - 1);
        if (n <= 0)
            break;
        target[n] = '\0';
        if (!go_up(at) || !path_absolute(at, target, real, sizeof(real)))
            break;
        (void)snprintf(at, sizeof(at), "%s", real);
    }
    if (r == 0 && find_real(program, real, sizeof(real)))
        r = show_prefix(interpreter, real, err);
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

static int use_venv(const char *given, bool is_isolated, struct interpreter *interpreter,
        struct carrel_error *err)
{
    char dir[PATH_MAX];
    char path[PATH_MAX + 32];
    char home[PATH_MAX];
    char config[8192];
    struct stat st;

    int r = make_absolute(given, dir, sizeof(dir), err);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/pyvenv.cfg", dir);
    ssize_t n = fd_read_file(AT_FDCWD, path, config, sizeof(config));
    if (n < 0)
        return err_set(err, -EINVAL,
                "'%s' is not a virtual environment: it has no readable pyvenv.cfg (%s)", given,
                strerrordesc_np((int)-n));
    (void)snprintf(path, sizeof(path), "%s/bin/python", dir);
    if (stat(path, &st) < 0)
        return err_set(err, -EINVAL,
                "'%s' is a broken virtual environment: its interpreter bin/python: %s", given,
                strerrordesc_np(errno));
    interpreter->interpreter = strdup(path);
    if (!interpreter->interpreter)
        return err_set_errno(err, -ENOMEM, "venv");
    if (!is_isolated)
        return 0;
    if (!is_shown(interpreter, dir))
        r = add_mount(interpreter, dir, err);
    if (r == 0 && find_home(config, home, sizeof(home)))
        r = show_prefix(interpreter, home, err);
    return r == 0 ? show_chain(interpreter, path, err) : r;
}

static int use_named(const char *python, bool is_isolated, struct interpreter *interpreter,
        struct carrel_error *err)
{
    interpreter->interpreter = strdup(python);
    if (!interpreter->interpreter)
        return err_set_errno(err, -ENOMEM, "python");
    return is_isolated && path_is_clean(python) ? show_chain(interpreter, python, err) : 0;
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
    free(interpreter.mounts);
    free(interpreter.interpreter);
}
