/* title.c - the words of the command line, where the kernel reads them. */
#include "base/title.h"
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
#include <unistd.h>

#define ARGUMENTS_MAX (8U << 20) /* exec(2) takes no more */
#define STAT_MAX 1024            /* bytes of /proc/self/stat */
#define STAT_FIELDS 48           /* of them, the last that we need is the 47th */

/*
 * They lie between the first argument and the name of the executable, where exec put all of it;
 * a caller that moved either of them keeps what it moved them for.
 */
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

/* Where the kernel says that code, data and heap are: it takes new places only all at once. */
static bool read_places(struct prctl_mm_map *map)
{
    char text[STAT_MAX];
    uint64_t field[STAT_FIELDS] = { 0 }; /* as proc(5) counts them */
    const ssize_t n = fd_read_file(AT_FDCWD, "/proc/self/stat", text, sizeof(text));
    char *at = n > 0 ? strrchr(text, ')') : NULL; /* before it, a name of any bytes */

    if (!at)
        return false;
    at += strlen(") S");
    for (size_t i = 4; i < STAT_FIELDS; i++)
        field[i] = strtoull(at, &at, 10); /* negative ones are not looked at */
    map->start_code = field[26];
    map->end_code = field[27];
    map->start_stack = field[28];
    map->start_data = field[45];
    map->end_data = field[46];
    map->start_brk = field[47];
    return true; /* what is wrong in it, the kernel refuses */
}

int title_move(const char *name)
{
    struct prctl_mm_map map = { .exe_fd = (uint32_t)-1 };

    int r = title_set(name);
    if (r < 0 || !trim_has_stack() || !read_places(&map))
        return r;
    const char *shown = strdup(name); /* as long as we live; the kernel takes no variable */
    if (!shown)
        return -ENOMEM;
    map.brk = (__u64)(uintptr_t)sbrk(0);
    map.arg_start = (__u64)(uintptr_t)shown;
    map.arg_end = map.env_start = map.env_end = map.arg_start + strlen(shown) + 1;
    (void)prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0); /* else it shows no words */
    return 0;
}
