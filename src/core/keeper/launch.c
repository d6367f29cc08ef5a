/* launch.c - posix_spawn(), which does not copy the caller. */
#include "core/keeper/launch.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_LOCKS 128
#define FIRST_SPARE 256 /* descriptors above all that the keeper gets */

/* --- the program --- */

static bool is_program(const char *path)
{
    return path[0] == '/' && access(path, X_OK) == 0;
}

/* Beside the library, as in a build directory, or in the bin directory of its prefix. */
static bool find_beside(char path[static PATH_MAX])
{
    static const char *const places[] = { "carrel", "../bin/carrel", "../../bin/carrel" };
    Dl_info info;

    if (dladdr(places, &info) == 0 || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    for (size_t i = 0; slash && i < ARRAY_LEN(places); i++) {
        int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - info.dli_fname),
                info.dli_fname, places[i]);
        if (n > 0 && n < PATH_MAX && is_program(path))
            return true;
    }
    return false;
}

static bool find_in_path(char path[static PATH_MAX])
{
    const char *dirs = getenv("PATH");

    while (dirs && *dirs) {
        size_t len = strcspn(dirs, ":");
        int n = snprintf(path, PATH_MAX, "%.*s/carrel", (int)len, dirs);
        if (n > 0 && n < PATH_MAX && is_program(path))
            return true;
        dirs += len + (dirs[len] == ':');
    }
    return false;
}

static int find_program(char path[static PATH_MAX], struct carrel_error *err)
{
    const char *given = secure_getenv("CARREL_PROGRAM");

    if (given && strlen(given) < PATH_MAX) {
        (void)strcpy(path, given);
        return is_program(path)
                       ? 0
                       : err_set(err, -ENOENT,
                                 "CARREL_PROGRAM is '%s', which is no program; expected "
                                 "the absolute path of carrel",
                                 given);
    }
    if (find_beside(path) || find_in_path(path))
        return 0;
    return err_set(err, -ENOENT,
            "the program carrel, which keeps the sandbox, is neither beside libcarrel, nor in "
            "the "
            "bin directory of its prefix, nor in PATH; install it, or set CARREL_PROGRAM to "
            "its "
            "path");
}

/* --- starting it --- */

struct actions {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
};

static void actions_finish(struct actions actions)
{
    (void)posix_spawn_file_actions_destroy(&actions.files);
    (void)posix_spawnattr_destroy(&actions.attributes);
}
DEFINE_AUTO(struct actions, actions_finish)

/* Own session, no signal blocked, every signal with its default action. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int r = posix_spawnattr_setsigmask(attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attributes, &all);
    if (r == 0)
        r = posix_spawnattr_setflags(attributes,
                POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return r;
}

/* `fds` become KEEPER_REQUEST_FD and so on; everything else is closed. */
static int set_files(
        posix_spawn_file_actions_t *files, const int *fds, size_t n, const char *cwd)
{
    int r = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDWR, 0);

    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, 0, 1);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, 0, 2);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = posix_spawn_file_actions_adddup2(files, fds[i], KEEPER_REQUEST_FD + (int)i);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(files, KEEPER_REQUEST_FD + (int)n);
    if (r == 0 && cwd)
        r = posix_spawn_file_actions_addchdir_np(files, cwd);
    return r;
}

static int run(const char *program, const char *cwd, const int *fds, size_t n,
        struct carrel_error *err)
{
    char *argv[] = { (char[]){ "carrel" }, (char[]){ "keeper" }, NULL };
    AUTO(actions_finish) struct actions actions;
    pid_t pid;

    /* Neither allocates, so neither fails. */
    (void)posix_spawn_file_actions_init(&actions.files);
    (void)posix_spawnattr_init(&actions.attributes);
    int r = set_attributes(&actions.attributes);
    if (r == 0)
        r = set_files(&actions.files, fds, n, cwd);
    if (r == 0)
        r = posix_spawn(&pid, program, &actions.files, &actions.attributes, argv, environ);
    if (r != 0)
        return err_set_errno(
                err, -r, "start '%s keeper'%s%s", program, cwd ? " in " : "", cwd ? cwd : "");
    /* It leaves a child, the keeper, and exits at once: no process has to reap a keeper. */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

/* Descriptors above those that they become: a copy must not overwrite the next one. */
static int lift(const int *fds, size_t n, int *spare, struct carrel_error *err)
{
    for (size_t i = 0; i < n; i++) {
        spare[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_SPARE);
        if (spare[i] < 0)
            return err_set_errno(err, -errno, "start a keeper");
    }
    return 0;
}

static int put_in_memory(const struct buf *request, struct carrel_error *err)
{
    AUTO(fd_close) int fd = memfd_create("carrel-request", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : fd_write_all(fd, request->data, request->len);

    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = -errno;
    return r < 0 ? err_set_errno(err, r, "keep a request in memory") : fd_steal(&fd);
}

int keeper_launch(const struct keeper_launch *launch, struct carrel_error *err)
{
    int fds[2 + MAX_LOCKS];
    int spare[2 + MAX_LOCKS];
    char found[PATH_MAX];
    size_t n = 0;

    if (launch->n_locks > MAX_LOCKS)
        return err_set(err, -E2BIG, "more than %d layers", MAX_LOCKS);
    int r = launch->program ? 0 : find_program(found, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int request = put_in_memory(launch->request, err);
    if (request < 0)
        return request;
    fds[n++] = request;
    fds[n++] = launch->report;
    for (size_t i = 0; i < launch->n_locks; i++)
        if (launch->locks[i] >= 0)
            fds[n++] = launch->locks[i];
    for (size_t i = 0; i < n; i++)
        spare[i] = -1;
    r = lift(fds, n, spare, err);
    if (r == 0)
        r = run(launch->program ? launch->program : found, launch->cwd, spare, n, err);
    for (size_t i = 0; i < n; i++)
        fd_close(spare[i]);
    return r;
}
