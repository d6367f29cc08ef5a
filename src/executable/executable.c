/* executable.c - posix_spawn(), which does not copy the caller. */
#include "executable/executable.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- where it is --- */

static bool is_program(const char *path)
{
    struct stat st;

    return path[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           access(path, X_OK) == 0;
}

/* Beside the library, as in a build directory, or in the bin directory of its prefix. */
static bool find_beside(char path[static PATH_MAX])
{
    static const char *const places[] = { "carrel", "../bin/carrel", "../../bin/carrel" };
    char library[PATH_MAX];
    Dl_info info;

    if (dladdr(places, &info) == 0 || !info.dli_fname || !realpath(info.dli_fname, library))
        return false;
    const char *slash = strrchr(library, '/');
    for (size_t i = 0; slash && i < ARRAY_LEN(places); i++) {
        int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - library), library, places[i]);
        if (n > 0 && n < PATH_MAX && is_program(path))
            return true;
    }
    return false;
}

static bool find_in_path(char path[static PATH_MAX])
{
    const char *dirs = secure_getenv("PATH");

    while (dirs && *dirs) {
        size_t len = strcspn(dirs, ":");
        int n = snprintf(path, PATH_MAX, "%.*s/carrel", (int)len, dirs);
        if (n > 0 && n < PATH_MAX && is_program(path))
            return true;
        dirs += len + (dirs[len] == ':');
    }
    return false;
}

int executable_find(char path[static PATH_MAX], struct carrel_error *err)
{
    const char *given = secure_getenv("CARREL_PROGRAM");

    if (executable_is_carrel) {
        (void)strcpy(path, EXECUTABLE_OWN);
        return 0;
    }
    if (given) {
        (void)snprintf(path, PATH_MAX, "%s", given);
        return strlen(given) < PATH_MAX && is_program(path)
                       ? 0
                       : err_set(err, -ENOPKG,
                                 "CARREL_PROGRAM is '%s', which is no program; expected "
                                 "the absolute path of carrel",
                                 given);
    }
    if (find_beside(path) || find_in_path(path))
        return 0;
    return err_set(err, -ENOPKG,
            "the program carrel, which libcarrel executes for some of its work, is neither "
            "beside libcarrel, nor in the bin directory of its prefix, nor in PATH; install "
            "it, or set CARREL_PROGRAM to its path");
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

static int set_attributes(posix_spawnattr_t *attributes, bool has_session)
{
    sigset_t none;
    sigset_t all;
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int r = posix_spawnattr_setsigmask(attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attributes, &all);
    if (r == 0)
        r = posix_spawnattr_setflags(
                attributes, (short)(flags | (has_session ? POSIX_SPAWN_SETSID : 0)));
    return r;
}

static int set_files(
        posix_spawn_file_actions_t *files, const struct executable_part *part, const int *fds)
{
    int r = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDWR, 0);

    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, 0, 1);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(files, 0, 2);
    for (size_t i = 0; r == 0 && i < part->n_fds; i++)
        r = posix_spawn_file_actions_adddup2(files, fds[i], EXECUTABLE_FIRST_FD + (int)i);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(
                files, EXECUTABLE_FIRST_FD + (int)part->n_fds);
    if (r == 0 && part->cwd)
        r = posix_spawn_file_actions_addchdir_np(files, part->cwd);
    return r;
}

static int spawn(const struct executable_part *part, const char *program, const int *fds,
        pid_t *pid, struct carrel_error *err)
{
    char *const no_env[] = { NULL };
    char name[] = "carrel";
    char command[32];
    char *argv[] = { name, command, NULL };
    AUTO(actions_finish) struct actions actions;

    (void)snprintf(command, sizeof(command), "%s", part->command);
    /* Neither allocates, so neither fails. */
    (void)posix_spawn_file_actions_init(&actions.files);
    (void)posix_spawnattr_init(&actions.attributes);
    int r = set_attributes(&actions.attributes, part->has_session);
    if (r == 0)
        r = set_files(&actions.files, part, fds);
    if (r == 0)
        r = posix_spawn(pid, program, &actions.files, &actions.attributes, argv,
                part->env ? part->env : no_env);
    if (r != 0)
        return err_set_errno(err, -r, "start '%s %s'%s%s", program, command,
                part->cwd ? " in " : "", part->cwd ? part->cwd : "");
    return 0;
}

/* Descriptors above those that they become: a copy must not overwrite the next one. */
static int lift(const struct executable_part *part, int *spare, struct carrel_error *err)
{
    const int first = EXECUTABLE_FIRST_FD + (int)part->n_fds;

    for (size_t i = 0; i < part->n_fds; i++) {
        spare[i] = fcntl(part->fds[i], F_DUPFD_CLOEXEC, first);
        if (spare[i] < 0)
            return err_set_errno(err, -errno, "start a process");
    }
    return 0;
}

int executable_start(const struct executable_part *part, pid_t *pid, struct carrel_error *err)
{
    int spare[EXECUTABLE_MAX_FDS];
    char found[PATH_MAX];

    if (part->n_fds > EXECUTABLE_MAX_FDS)
        return err_set(err, -E2BIG, "more than %d descriptors", EXECUTABLE_MAX_FDS);
    int r = executable_find(found, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < part->n_fds; i++)
        spare[i] = -1;
    r = lift(part, spare, err);
    if (r == 0)
        r = spawn(part, found, spare, pid, err);
    for (size_t i = 0; i < part->n_fds; i++)
        fd_close(spare[i]);
    return r;
}

int executable_hold(const struct executable_part *part, struct carrel_error *err)
{
    pid_t pid;

    int r = executable_start(part, &pid, err);
    if (r < 0)
        return r;
    int pidfd = pidfd_open(pid, 0);
    if (pidfd >= 0)
        return pidfd;
    r = err_set_errno(err, -errno, "hold a process");
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}
