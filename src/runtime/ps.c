/*
 * ps.c - processes, each read through one descriptor of its directory.
 *
 * The pid may be reused before it is opened; from then on all reads are about the same process,
 * or fail. All text in there was chosen by the program.
 */
#include "runtime/ps.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The words after `key` in a file of "Key:\tword word" lines; NULL: no such line. */
static const char *find_line(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, key, len) == 0 && line[len] == ':')
            return line + len + 1;
    return NULL;
}

/* The name comes first in the file, but a newline in it is escaped: no line can be forged. */
static int read_status(int dir, struct sandbox_process *out)
{
    char text[4096];
    char *end;

    if (fd_read_file(dir, "status", text, sizeof(text)) <= 0)
        return -ESRCH;
    const char *uids = find_line(text, "Uid");
    const char *pids = find_line(text, "NSpid");
    if (!uids || !pids)
        return -ESRCH;             /* a zombie that was reaped while it was read */
    (void)strtoul(uids, &end, 10); /* the real one; the effective one follows */
    out->uid = (uid_t)strtoul(end, NULL, 10);
    out->inner_pid = (pid_t)strtol(pids, &end, 10);
    if (*end == '\t')
        out->inner_pid = (pid_t)strtol(end, NULL, 10);
    return 0;
}

/*
 * "pid (name) S ppid ...": the name may contain anything, so parsing starts after the last ')'.
 */
static int read_stat(int dir, struct sandbox_process *out)
{
    enum { STATE = 3, PARENT = 4, USER = 14, SYSTEM = 15, BEGUN = 22, RESIDENT = 24 };
    const uint64_t tick = (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t field[RESIDENT + 1] = { 0 };
    char text[1024];

    if (fd_read_file(dir, "stat", text, sizeof(text)) <= 0)
        return -ESRCH;
    char *at = strrchr(text, ')');
    const char *name = strchr(text, '(');
    if (!at || !name || at < name || at[1] != ' ')
        return -ESRCH;
    (void)snprintf(out->comm, sizeof(out->comm), "%.*s", (int)(at - name - 1), name + 1);
    out->state = at[2];
    at += 3;
    for (int i = PARENT; i <= RESIDENT; i++)
        field[i] = strtoull(at, &at, 10);
    out->inner_parent = (pid_t)field[PARENT];
    out->cpu_ms = (field[USER] + field[SYSTEM]) * 1000 / tick;
    out->begun_ns = field[BEGUN] * (UINT64_C(1000000000) / tick);
    out->memory_bytes = field[RESIDENT] * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

/* A process without arguments (a zombie, a fork of the runtime) has an empty one. */
static void read_command(int dir, struct sandbox_process *out)
{
    ssize_t n = fd_read_file(dir, "cmdline", out->command, sizeof(out->command));

    for (ssize_t i = 0; i + 1 < n; i++)
        if (out->command[i] == '\0')
            out->command[i] = ' ';
    if (n <= 0)
        out->command[0] = '\0';
}

int ps_read(pid_t pid, struct sandbox_process *out)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    AUTO(fd_close) int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -ESRCH;
    *out = (struct sandbox_process){ .pid = pid };
    int r = read_status(dir, out);
    if (r == 0)
        r = read_stat(dir, out);
    if (r == 0)
        read_command(dir, out);
    return r;
}

/* Parents by the sandbox's pids; 0 for one that is not listed, which is the runtime's. */
static void find_parents(struct sandbox_process *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pid_t parent = all[i].inner_parent;
        all[i].inner_parent = 0;
        for (size_t j = 0; j < n; j++)
            if (all[j].pid == parent)
                all[i].inner_parent = all[j].inner_pid;
    }
}

int ps_list(
        struct sandbox *box, struct sandbox_process *out, size_t max, struct carrel_error *err)
{
    AUTO(free) pid_t *pids = calloc(max ? max : 1, sizeof(*pids));
    size_t known = 0;

    if (!pids)
        return err_set_errno(err, -ENOMEM, "list processes");
    int n = box->ops->pids(box, pids, max, err);
    for (int i = 0; i < n; i++) {
        if (ps_read(pids[i], &out[known]) == 0) /* else it has exited meanwhile */
            known++;
    }
    find_parents(out, known);
    return n < 0 ? n : (int)known;
}
