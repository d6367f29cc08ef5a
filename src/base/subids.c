/* subids.c - see subids.h. */
#include "base/subids.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_MAX (1U << 20) /* of subuid, subgid and passwd */
#define REMEDY "as root: install newuidmap and newgidmap (Debian: uidmap; Fedora: shadow-utils)"

/* --- the files --- */

/* "NAME:FIRST:COUNT"; any other line is ignored, as shadow's own tools do. */
static bool read_line(
        const char *line, size_t len, const char *name, uid_t uid, uint64_t *first, uint64_t *n)
{
    char text[256];
    char number[16];

    if (len >= sizeof(text))
        return false;
    memcpy(text, line, len);
    text[len] = '\0';
    char *colon = strchr(text, ':');
    char *second = colon ? strchr(colon + 1, ':') : NULL;
    if (!second)
        return false;
    *colon = *second = '\0';
    (void)snprintf(number, sizeof(number), "%u", (unsigned)uid);
    if (!(name && strcmp(text, name) == 0) && strcmp(text, number) != 0)
        return false;
    return str_parse_u64(colon + 1, first) == 0 && str_parse_u64(second + 1, n) == 0;
}

int subids_parse(const char *text, const char *name, uid_t uid, uint32_t *first)
{
    int found = -ENOENT;

    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        uint64_t start;
        uint64_t count;
        if (!read_line(line, strcspn(line, "\n"), name, uid, &start, &count))
            continue;
        found = -ERANGE;
        if (count < SUBIDS_COUNT || start == 0 || start > UINT32_MAX - SUBIDS_COUNT)
            continue;
        *first = (uint32_t)start;
        return 0;
    }
    return found;
}

/* A user that is not in the file (from LDAP, say) is looked up by its number only. */
static void find_name(uid_t uid, char *text, char name[static 64])
{
    char *saved = NULL;

    name[0] = '\0';
    for (char *line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
        size_t len = strcspn(line, ":");
        const char *password = line[len] ? strchr(line + len + 1, ':') : NULL;
        if (!password || len == 0 || len >= 64 ||
                strtoul(password + 1, NULL, 10) != (unsigned long)uid)
            continue;
        (void)snprintf(name, 64, "%.*s", (int)len, line);
        return;
    }
}

static int find_range(const char *file, const char *option, char *text, const char *name,
        uint32_t *first, struct carrel_error *err)
{
    char who[64];

    (void)snprintf(who, sizeof(who), "%s", name);
    if (!name[0])
        (void)snprintf(who, sizeof(who), "%u", (unsigned)geteuid());
    ssize_t n = fd_read_file(AT_FDCWD, file, text, FILE_MAX);
    if (n < 0 && n != -ENOENT)
        return err_set_errno(err, (int)n, "read '%s'", file);
    int r = n < 0 ? -ENOENT : subids_parse(text, name[0] ? name : NULL, geteuid(), first);
    return r == 0 ? 0
                  : err_set(err, -ENOTSUP,
                            "%s gives this user %s; as root: usermod %s "
                            "FIRST-LAST %s, a range of %u ids not assigned to another user",
                            file, r == -ERANGE ? "too few ids" : "no ids", option, who,
                            SUBIDS_COUNT);
}

/* --- the programs --- */

static bool is_there(const char *program)
{
    const char *path = getenv("PATH");
    char file[PATH_MAX];

    for (const char *at = path ? path : "/usr/bin:/bin"; *at;
            at += strcspn(at, ":"), at += *at == ':') {
        int len = (int)strcspn(at, ":");
        if (len == 0 ||
                snprintf(file, sizeof(file), "%.*s/%s", len, at, program) >= (int)sizeof(file))
            continue;
        if (faccessat(AT_FDCWD, file, X_OK, 0) == 0)
            return true;
    }
    return false;
}

int subids_find(struct subids *out, struct carrel_error *err)
{
    char name[64];
    struct subids found;

    AUTO(free) char *text = malloc(FILE_MAX);
    if (!text)
        return err_set_errno(err, -ENOMEM, "subordinate ids");
    if (!is_there("newuidmap") || !is_there("newgidmap"))
        return err_set(err, -ENOTSUP, "newuidmap or newgidmap is not installed; " REMEDY);
    ssize_t n = fd_read_file(AT_FDCWD, "/etc/passwd", text, FILE_MAX);
    if (n < 0)
        text[0] = '\0';
    find_name(geteuid(), text, name);
    int r = find_range("/etc/subuid", "--add-subuids", text, name, &found.uid, err);
    if (r == 0)
        r = find_range("/etc/subgid", "--add-subgids", text, name, &found.gid, err);
    if (r == 0)
        *out = found;
    return r;
}

/* Runs a program to its end. Returns its exit status; `said` is its output. */
static int run(const char *const *argv, char said[static 200], struct carrel_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int pipes[2];
    pid_t pid = -1;
    int status = -1;

    said[0] = '\0';
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "pipe");
    AUTO(fd_close) int in = pipes[0];
    AUTO(fd_close) int out = pipes[1];
    if (posix_spawn_file_actions_init(&actions) != 0)
        return err_set_errno(err, -ENOMEM, "start %s", argv[0]);
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return err_set_errno(err, -ENOMEM, "start %s", argv[0]);
    }
    (void)sigemptyset(&none);
    int r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, 0, 1);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, out, 2);
    if (r == 0)
        r = posix_spawnattr_setsigmask(&attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    char *const env[] = { NULL }; /* it is set-uid: no variable of ours can influence it */
    if (r == 0)
        r = posix_spawnp(
                &pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    if (r != 0)
        return err_set(err, -ENOTSUP, "%s cannot be started (%s); " REMEDY, argv[0],
                strerrordesc_np(r));
    fd_close(fd_steal(&out));
    ssize_t n = fd_read_all(in, said, 199);
    said[n > 0 ? n : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set_errno(err, -errno, "wait for %s", argv[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* --- maps --- */

size_t subids_lines(
        uint32_t shown, uint32_t own, uint32_t first, struct subids_line lines[SUBIDS_LINES])
{
    const uint32_t below = shown < SUBIDS_COUNT ? shown : SUBIDS_COUNT;
    size_t n = 0;

    if (below > 0)
        lines[n++] = (struct subids_line){ 0, first, below };
    lines[n++] = (struct subids_line){ shown, own, 1 };
    if (below + 1 < SUBIDS_COUNT)
        lines[n++] = (struct subids_line){ below + 1, first + below, SUBIDS_COUNT - below - 1 };
    return n;
}

uint32_t subids_shown(const struct subids_line *lines, size_t n, uint32_t outside)
{
    for (size_t i = 0; i < n; i++)
        if (outside >= lines[i].outside && outside - lines[i].outside < lines[i].count)
            return lines[i].inside + (outside - lines[i].outside);
    return UINT32_MAX;
}

/* The map in the kernel must equal the requested one, line by line. */
static int check_map(pid_t pid, const char *file, const struct subids_line *lines, size_t n,
        struct carrel_error *err)
{
    char path[64];
    char text[512];
    size_t seen = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    ssize_t len = fd_read_file(AT_FDCWD, path, text, sizeof(text));
    if (len < 0)
        return err_set_errno(err, (int)len, "read '%s'", path);
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n', seen++) {
        struct subids_line line;
        if (seen == n ||
                sscanf(at, "%" SCNu32 " %" SCNu32 " %" SCNu32, &line.inside, &line.outside,
                        &line.count) != 3 ||
                memcmp(&line, &lines[seen], sizeof(line)) != 0)
            return err_set(err, -EPERM, "%s is not what was asked for", path);
    }
    return seen == n ? 0 : err_set(err, -EPERM, "%s is not what was asked for", path);
}

static int map(pid_t pid, const char *program, const char *file,
        const struct subids_line *lines, size_t n, struct carrel_error *err)
{
    char words[1 + 3 * SUBIDS_LINES][16];
    const char *argv[3 + 3 * SUBIDS_LINES] = { program, words[0] };
    char said[200];
    char shown[256];

    (void)snprintf(words[0], sizeof(words[0]), "%d", (int)pid);
    for (size_t i = 0; i < n; i++) {
        const uint32_t numbers[] = { lines[i].inside, lines[i].outside, lines[i].count };
        for (size_t k = 0; k < 3; k++) {
            char *word = words[1 + 3 * i + k];
            (void)snprintf(word, sizeof(words[0]), "%" PRIu32, numbers[k]);
            argv[2 + 3 * i + k] = word;
        }
    }
    int r = run(argv, said, err);
    if (r > 0)
        return err_set(err, -ENOTSUP, "%s failed with status %d: %s", program, r,
                str_escape(said, strlen(said), shown, sizeof(shown)));
    return r < 0 ? r : check_map(pid, file, lines, n, err);
}

int subids_map(pid_t pid, const struct subids *ids, uint32_t uid, uint32_t gid,
        struct carrel_error *err)
{
    struct subids_line lines[SUBIDS_LINES];

    size_t n = subids_lines(uid, geteuid(), ids->uid, lines);
    int r = map(pid, "newuidmap", "uid_map", lines, n, err);
    if (r < 0)
        return r;
    n = subids_lines(gid, getegid(), ids->gid, lines);
    return map(pid, "newgidmap", "gid_map", lines, n, err);
}

/* --- with their rights --- */

/* Runs `call` once the parent has written the maps; exits if the parent could not. */
static _Noreturn void call_inside(int go, int (*call)(void *arg), void *arg)
{
    char byte;

    if (read(go, &byte, 1) != 1 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        _exit(EPERM);
    _exit(-call(arg) & 0xff);
}

int subids_call(int (*call)(void *arg), void *arg, struct carrel_error *err)
{
    struct subids ids = { 0 };
    int ready[2];
    int go[2];
    int status = -1;
    char byte = 0;

    int r = subids_find(&ids, err);
    if (r < 0)
        return r;
    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "pipe");
    AUTO(fd_close) int ready_in = ready[0];
    AUTO(fd_close) int ready_out = ready[1];
    if (pipe2(go, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "pipe");
    AUTO(fd_close) int go_in = go[0];
    AUTO(fd_close) int go_out = go[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_set_errno(err, -errno, "fork");
    if (pid == 0) {
        fd_close(go_out);
        if (unshare(CLONE_NEWUSER) < 0 || write(ready_out, "", 1) != 1)
            _exit(EPERM);
        call_inside(go_in, call, arg);
    }
    fd_close(fd_steal(&ready_out));
    r = read(ready_in, &byte, 1) == 1
                ? subids_map(pid, &ids, 0, 0, err)
                : err_set(err, -ENOTSUP, "cannot make a user namespace for subordinate ids");
    if (r == 0 && write(go_out, "", 1) != 1)
        r = err_set_errno(err, -errno, "let it go on");
    fd_close(fd_steal(&go_out)); /* without a byte in the pipe, the child exits */
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set_errno(err, -errno, "wait");
    if (r < 0)
        return r;
    if (!WIFEXITED(status))
        return err_set(err, -EIO, "it was killed");
    return WEXITSTATUS(status) == 0
                   ? 0
                   : err_set_errno(err, -WEXITSTATUS(status), "with the rights of all ids");
}
