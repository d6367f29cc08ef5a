/* nameless.c - one look through /proc/PID, with bounds for everything. */
#include "core/disk/nameless.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "runtime/runtime.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define MAX_PIDS 8192U
#define MAX_LOOKS 65536U                 /* descriptors and mappings in one count */
#define MAX_NS (UINT64_C(300) * 1000000) /* of our own work: a busy machine hides nothing */
#define MAX_ROUNDS 8
#define SEEN_ROOM (2 * (MAX_LOOKS + MAX_PIDS)) /* so a free place is always near */
#define PIDS_KEY UINT64_MAX                    /* in place of a device */
#define IS_EXITING 4U                          /* PF_EXITING, in the flags of proc(5)'s stat */

struct seen {
    uint64_t dev;
    uint64_t ino; /* 0: free */
};

struct count {
    const char *const *targets;
    struct nameless_mounts mounts;
    bool has_mounts;
    struct seen *seen; /* SEEN_ROOM of them; pages that are not touched cost nothing */
    pid_t *pids;
    uint64_t end_ns;
    unsigned looks;
    struct nameless found;
};

static void count_finish(struct count count)
{
    free(count.seen);
    free(count.pids);
}
DEFINE_AUTO(struct count, count_finish)

static void close_dir(DIR *dir)
{
    if (dir)
        (void)closedir(dir);
}
DEFINE_AUTO(DIR *, close_dir)

static struct seen *place_of(struct count *count, uint64_t dev, uint64_t ino)
{
    uint64_t hash = (ino * UINT64_C(0x9e3779b97f4a7c15)) ^ (dev * UINT64_C(0xff51afd7ed558ccd));
    size_t at = (size_t)((hash ^ hash >> 29) % SEEN_ROOM);

    while (count->seen[at].ino && (count->seen[at].dev != dev || count->seen[at].ino != ino))
        at = (at + 1) % SEEN_ROOM;
    return &count->seen[at];
}

/* Notes it. False: it was there. */
static bool is_new(struct count *count, uint64_t dev, uint64_t ino)
{
    struct seen *place = place_of(count, dev, ino);

    if (place->ino)
        return false;
    *place = (struct seen){ dev, ino };
    return true;
}

static uint64_t work_ns(void)
{
    struct timespec t = { 0 };

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* cannot fail for oneself */
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Every look is paid for: a program with more of them than we have time hides something. */
static bool may_look(struct count *count)
{
    if (count->looks < MAX_LOOKS && (count->looks % 64 || work_ns() < count->end_ns)) {
        count->looks++;
        return true;
    }
    count->looks = MAX_LOOKS;
    count->found.is_cut = true;
    return false;
}

static bool is_gone(int code)
{
    return code == ENOENT || code == ESRCH;
}

/* A process at its end has given up its memory, and with it our right to look, and gives up the
 * rest in a moment. */
static bool is_ending(int task)
{
    char text[1024];
    char state;
    unsigned flags;

    ssize_t n = fd_read_file(task, "stat", text, sizeof(text));
    const char *after = n > 0 ? strrchr(text, ')') : NULL; /* the name may hold anything */
    if (!after || sscanf(after, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
        return n <= 0;
    return state == 'Z' || state == 'X' || flags & IS_EXITING;
}

/* What was seen of one thing that a process holds; `code` is why it could not be. */
static void doubt(struct count *count, int task, int code)
{
    if (!is_gone(code) && !is_ending(task))
        count->found.is_doubtful = true;
}

static void add(struct count *count, const struct statx *st)
{
    bool is_ours = false;

    for (size_t i = 0; i < count->mounts.n; i++)
        is_ours = is_ours || count->mounts.items[i].id == st->stx_mnt_id;
    if (!is_ours || st->stx_nlink > 0 || (!S_ISREG(st->stx_mode) && !S_ISDIR(st->stx_mode)) ||
            !is_new(count, makedev(st->stx_dev_major, st->stx_dev_minor), st->stx_ino))
        return;
    count->found.bytes += st->stx_blocks * 512;
    count->found.inodes++;
}

/* Follows a link of /proc to the file itself, without asking a server that may never answer. */
static int look(int dir, const char *link, struct statx *st)
{
    const unsigned want = STATX_BASIC_STATS | STATX_MNT_ID;

    if (statx(dir, link, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, want, st) < 0)
        return errno;
    return st->stx_mask & STATX_MNT_ID ? 0 : EOPNOTSUPP;
}

/* Are there descriptors in the socket that nobody has received yet? They may be of any file. */
static bool has_unreceived(int task, const char *fd)
{
    static const char key[] = "\nscm_fds:";
    char path[64];
    char text[1024];

    (void)snprintf(path, sizeof(path), "fdinfo/%.20s", fd);
    ssize_t n = fd_read_file(task, path, text, sizeof(text));
    const char *found = n > 0 ? strstr(text, key) : NULL;
    return found && strtoul(found + sizeof(key) - 1, NULL, 10) > 0;
}

/* Returns whether there was something to look at. */
static bool look_at_descriptors(struct count *count, int task)
{
    const struct dirent *item;
    struct statx st;

    int fd = openat(task, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(close_dir) DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        doubt(count, task, errno);
        fd_close(fd);
        return false;
    }
    while ((item = readdir(list)) && may_look(count)) {
        if (item->d_name[0] == '.')
            continue;
        int code = look(dirfd(list), item->d_name, &st);
        if (code)
            doubt(count, task, code);
        else if (S_ISSOCK(st.stx_mode) && has_unreceived(task, item->d_name))
            count->found.is_doubtful = true;
        else
            add(count, &st);
    }
    return true;
}

static bool is_mapped_from_ours(struct count *count, dev_t dev)
{
    for (size_t i = 0; i < count->mounts.n; i++)
        if (count->mounts.items[i].dev == dev)
            return true;
    return false;
}

/* "START-END rw-s OFFSET MAJOR:MINOR INODE   /path (deleted)" */
static void look_at_mapping(struct count *count, int task, const char *line)
{
    static const char mark[] = " (deleted)";
    size_t len = strlen(line);
    char range[40];
    char path[64];
    unsigned major;
    unsigned minor;
    uint64_t ino;
    struct statx st;

    if (len < sizeof(mark) || strcmp(line + len - (sizeof(mark) - 1), mark) != 0 ||
            sscanf(line, "%39s %*s %*s %x:%x %" SCNu64, range, &major, &minor, &ino) != 4)
        return;
    if (!is_mapped_from_ours(count, makedev(major, minor)) || !may_look(count) ||
            place_of(count, makedev(major, minor), ino)->ino)
        return;
    (void)snprintf(path, sizeof(path), "map_files/%s", range);
    int code = look(task, path, &st);
    if (code)
        doubt(count, task, code);
    else
        add(count, &st);
}

/* Line by line: a path can be long, and there can be tens of thousands of lines. */
static bool look_at_mappings(struct count *count, int task)
{
    size_t room = 0;
    bool has_any = false;
    ssize_t n;

    int fd = openat(task, "maps", O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
    if (!file) {
        doubt(count, task, errno);
        fd_close(fd);
        return false;
    }
    char *line = NULL;
    unsigned lines = 0;
    while ((n = getline(&line, &room, file)) > 0) {
        if (++lines % 16 == 0 && !may_look(count))
            break;
        has_any = true;
        line[n - 1] = '\0';
        look_at_mapping(count, task, line);
    }
    free(line);
    (void)fclose(file);
    return has_any;
}

/* The program itself and the working directory are held without a descriptor. */
static void look_at_links(struct count *count, int task)
{
    static const char *const links[] = { "exe", "cwd" };
    struct statx st;

    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        int code = look(task, links[i], &st);
        if (code)
            doubt(count, task, code);
        else
            add(count, &st);
    }
}

static bool shares_descriptors(pid_t one, pid_t other)
{
    return one > 0 && syscall(SYS_kcmp, one, other, KCMP_FILES, 0, 0) == 0;
}

int nameless_add_dir(struct nameless_mounts *mounts, int dir)
{
    struct statx st;

    if (mounts->n == NAMELESS_MOUNTS)
        return -E2BIG;
    if (statx(dir, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &st) < 0)
        return -errno;
    mounts->items[mounts->n].id = st.stx_mnt_id;
    mounts->items[mounts->n++].dev = makedev(st.stx_dev_major, st.stx_dev_minor);
    return 0;
}

static bool is_target(const char *point, size_t len, const char *const *targets)
{
    for (; *targets; targets++)
        if (strlen(*targets) == len && strncmp(*targets, point, len) == 0)
            return true;
    return false;
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS" */
int nameless_add_mounts(
        struct nameless_mounts *mounts, const char *mountinfo, const char *const *targets)
{
    for (const char *at = mountinfo; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        unsigned major;
        unsigned minor;
        uint64_t id;
        int point = 0;
        int end = 0;
        if (sscanf(at, "%" SCNu64 " %*u %u:%u %*s %n%*s%n", &id, &major, &minor, &point,
                    &end) != 3 ||
                !is_target(at + point, (size_t)(end - point), targets))
            continue;
        const char *type = strstr(at + end, " - ");
        if (type && strncmp(type + 3, "fuse", 4) == 0)
            continue;
        if (mounts->n == NAMELESS_MOUNTS)
            return -E2BIG;
        mounts->items[mounts->n].id = id;
        mounts->items[mounts->n++].dev = makedev(major, minor);
    }
    return 0;
}

/* One thread will do: none can change its mounts. False: it is at its end, the next one may. */
static bool has_mounts(struct count *count, int task)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);

    if (count->has_mounts)
        return true;
    int r = fd_add_file(task, "mountinfo", &text, NULL);
    if (r < 0 || text.len == 0) {
        doubt(count, task, r < 0 ? -r : ENOENT);
        return false;
    }
    if (nameless_add_mounts(&count->mounts, text.data, count->targets) < 0)
        count->found.is_doubtful = true;
    count->has_mounts = true;
    return true;
}

static int open_task(pid_t tid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)tid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * Every thread by its own number: what the first one shows is nothing once it has ended, though
 * the others go on. All of them have the same memory.
 */
static void look_at_process(struct count *count, pid_t pid)
{
    const struct dirent *item;
    char path[64];
    pid_t last = 0; /* of which we have seen the descriptors */
    bool has_maps = false;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    AUTO(close_dir) DIR *tasks = opendir(path);
    if (!tasks) {
        count->found.is_doubtful = count->found.is_doubtful || !is_gone(errno);
        return;
    }
    while ((item = readdir(tasks)) && may_look(count)) {
        pid_t tid = (pid_t)strtol(item->d_name, NULL, 10);
        AUTO(fd_close) int task = tid > 0 ? open_task(tid) : -1;
        if (task < 0 || !has_mounts(count, task))
            continue;
        if (!shares_descriptors(last, tid) && look_at_descriptors(count, task))
            last = tid;
        look_at_links(count, task);
        has_maps = has_maps || look_at_mappings(count, task);
    }
}

/* Those that have begun since the last round. Returns how many there were. */
static int look_at_new(struct count *count, struct sandbox *box)
{
    int fresh = 0;
    int n = sandbox_pids(box, count->pids, MAX_PIDS, NULL);

    for (int i = 0; i < n; i++) {
        if (!is_new(count, PIDS_KEY, (uint64_t)count->pids[i]))
            continue;
        fresh++;
        if (may_look(count))
            look_at_process(count, count->pids[i]);
    }
    return n < 0 ? n : fresh;
}

/*
 * A process may hand what it holds to a child and end. So the list is asked for again until it
 * has nobody new; a sandbox in which that does not come to an end is in doubt.
 */
int nameless_count(
        struct sandbox *box, const char *const *targets, int dir, struct nameless *out)
{
    AUTO(count_finish)
    struct count count = {
        .targets = targets,
        .seen = calloc(SEEN_ROOM, sizeof(*count.seen)),
        .pids = calloc(MAX_PIDS, sizeof(*count.pids)),
        .end_ns = work_ns() + MAX_NS,
    };
    int fresh = 1;

    if (!count.seen || !count.pids)
        return -ENOMEM;
    int r = nameless_add_dir(&count.mounts, dir);
    for (int round = 0; r == 0 && fresh > 0 && round < MAX_ROUNDS; round++) {
        fresh = look_at_new(&count, box);
        r = fresh < 0 ? fresh : 0;
    }
    if (r < 0)
        return r;
    count.found.is_doubtful = count.found.is_doubtful || fresh > 0;
    *out = count.found;
    return 0;
}
