/* process.c - uses the system call for signals: the C library hides two of its own. */
#include "base/process.h"
#include "base/fd.h"
#include "base/trim.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LAST_SIGNAL 64
#define MASK_BYTES 8 /* of the kernel's signal set */

void signals_reset(void)
{
    /* The kernel's struct, longest on any architecture; all zero is SIG_DFL without flags. */
    const unsigned long plain[8] = { 0 };

    for (int sig = 1; sig <= LAST_SIGNAL; sig++)
        (void)syscall(SYS_rt_sigaction, sig, plain, NULL,
                MASK_BYTES); /* fails for SIGKILL and SIGSTOP, as it should */
}

void signals_block(sigset_t *before)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, before); /* cannot fail with these arguments */
}

void signals_unblock(const sigset_t *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

#define ARGUMENTS_MAX (8U << 20) /* exec(2) takes no more */
#define STAT_MAX 1024            /* bytes of /proc/self/stat */
#define STAT_FIELDS 48           /* of them, the last that we need is the 47th */

/*
 * Arguments and environment are between the first argument and the name of the executable,
 * where exec put them; what a caller has moved elsewhere is not overwritten.
 */
int process_drop_groups(void)
{
    return (int)syscall(SYS_setgroups, 0, NULL);
}

int process_set_gid(gid_t gid)
{
    return (int)syscall(SYS_setresgid, gid, gid, gid);
}

int process_set_uid(uid_t uid)
{
    return (int)syscall(SYS_setresuid, uid, uid, uid);
}

int title_set(const char *name)
{
    char *first = program_invocation_name;
    size_t len = strlen(name) + 1;

    if (prctl(PR_SET_NAME, name, 0, 0, 0) < 0)
        return -errno;
    uintptr_t end = trim_has_stack() ? getauxval(AT_EXECFN) : 0;
    if (end <= (uintptr_t)first || end - (uintptr_t)first > ARGUMENTS_MAX)
        return 0;
    explicit_bzero(first, end - (uintptr_t)first);
    if (end - (uintptr_t)first >= len)
        memcpy(first, name, len);
    return 0;
}

/* The addresses of code, data and heap: PR_SET_MM_MAP takes them only all at once. */
static bool read_places(struct prctl_mm_map *map)
{
    char text[STAT_MAX];
    uint64_t field[STAT_FIELDS] = { 0 }; /* as proc(5) counts them */
    const ssize_t n = fd_read_file(AT_FDCWD, "/proc/self/stat", text, sizeof(text));
    char *at = n > 0 ? strrchr(text, ')') : NULL; /* the name before it may have any bytes */

    if (!at)
        return false;
    at += strlen(") S");
    for (size_t i = 4; i < STAT_FIELDS; i++)
        field[i] = strtoull(at, &at, 10); /* negative fields are not used */
    map->start_code = field[26];
    map->end_code = field[27];
    map->start_stack = field[28];
    map->start_data = field[45];
    map->end_data = field[46];
    map->start_brk = field[47];
    return true; /* the kernel refuses invalid addresses */
}

int title_move(const char *name)
{
    struct prctl_mm_map map = { .exe_fd = (uint32_t)-1 };

    int r = title_set(name);
    if (r < 0 || !trim_has_stack() || !read_places(&map))
        return r;
    const char *shown = strdup(name); /* never freed: the kernel refers to it */
    if (!shown)
        return -ENOMEM;
    map.brk = (__u64)(uintptr_t)sbrk(0);
    map.arg_start = (__u64)(uintptr_t)shown;
    map.arg_end = map.env_start = map.env_end = map.arg_start + strlen(shown) + 1;
    (void)prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map),
            0); /* on failure the command line appears empty */
    return 0;
}
