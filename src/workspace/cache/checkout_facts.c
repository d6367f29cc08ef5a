/* checkout_facts.c - the record of an entry, and taking hold of one. */
#include "workspace/cache/checkout_facts.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FACTS_MAX 2048
#define LAST "end" /* a record without it was cut short */

struct key {
    char name[16];
    size_t at;   /* offset in struct checkout_facts */
    size_t size; /* of the text; 0: a number */
};
#define TEXT(label, member)                                                                    \
    {                                                                                          \
        label, offsetof(struct checkout_facts, member),                                        \
                sizeof(((struct checkout_facts *)NULL)->member)                                \
    }
#define NUMBER(label, member)                                                                  \
    {                                                                                          \
        label, offsetof(struct checkout_facts, member), 0                                      \
    }

static const struct key keys[] = {
    TEXT("tree", tree),
    TEXT("below", below),
    TEXT("conversion", conversion),
    TEXT("boot", boot),
    NUMBER("depth", depth),
    NUMBER("files", files),
    NUMBER("bytes", bytes),
    NUMBER("uid", uid),
    NUMBER("gid", gid),
    NUMBER("filters", has_filters),
    NUMBER("line-ends", has_line_ends),
    NUMBER("gitlinks", has_gitlinks),
    NUMBER("monitor", has_monitor),
};

static void set_fact(struct checkout_facts *facts, const char *name, const char *value)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char *at = (char *)facts + keys[i].at;
        if (strcmp(keys[i].name, name) != 0)
            continue;
        if (keys[i].size > 0)
            (void)snprintf(at, keys[i].size, "%s", value);
        else
            (void)str_parse_u64(value, (uint64_t *)(void *)at); /* ours: it is a number */
        return;
    }
}

int checkout_facts_read(int entry, struct checkout_facts *out)
{
    char text[FACTS_MAX];
    struct checkout_facts facts = { 0 };
    char *rest = text;
    char *line;
    ssize_t len = fd_read_file(entry, "facts", text, sizeof(text));
    if (len < 0)
        return (int)len;

    while ((line = strsep(&rest, "\n"))) {
        char *value = line;
        const char *name = strsep(&value, " ");
        if (!value && strcmp(name, LAST) == 0) {
            *out = facts;
            return facts.tree[0] ? 0 : -EBADMSG;
        }
        if (value)
            set_fact(&facts, name, value);
    }
    return -EBADMSG;
}

int checkout_facts_write(
        int entry, const struct checkout_facts *facts, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(FACTS_MAX - 1);

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *at = (const char *)facts + keys[i].at;
        uint64_t number;
        if (keys[i].size == 0) {
            memcpy(&number, at, sizeof(number));
            buf_addf(&text, "%s %" PRIu64 "\n", keys[i].name, number);
        } else if (at[0]) {
            buf_addf(&text, "%s %s\n", keys[i].name, at);
        }
    }
    buf_addf(&text, "%s\n", LAST);
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "record a checkout");

    AUTO(fd_close)
    int fd = openat(entry, "facts", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
    return r < 0 ? err_set_errno(err, r, "record a checkout") : 0;
}

bool checkout_is_whole(int entry, const struct checkout_facts *facts)
{
    char boot[KERNEL_BOOT_ID_MAX];

    if (faccessat(entry, "synced", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    return kernel_boot_id(boot, NULL) == 0 && strcmp(boot, facts->boot) == 0;
}

char *checkout_format(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    int len = vasprintf(&text, fmt, ap);
    va_end(ap);
    return len < 0 ? NULL : text;
}

char *checkout_place(const char *state, const struct repo *repo, const char *name)
{
    return checkout_format(
            "%s/checkouts/%s%s%s", state, repo->key, name ? "/" : "", name ? name : "");
}

void checkout_hold_finish(struct checkout_hold hold)
{
    fd_close(hold.dir);
    fd_close(hold.lease);
}

/* The evictor renames under the exclusive lease: what still has its name under ours stays. */
static bool is_still_there(const char *path, int dir)
{
    struct stat by_name;
    struct stat by_fd;

    return lstat(path, &by_name) == 0 && fstat(dir, &by_fd) == 0 &&
           by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

int checkout_hold(const char *place, const char *commit, struct checkout_hold *out)
{
    AUTO(checkout_hold_finish) struct checkout_hold hold = { .dir = -1, .lease = -1 };
    AUTO(free) char *path = checkout_format("%s/%s", place, commit);
    if (!path)
        return -ENOMEM;

    hold.dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (hold.dir < 0)
        return -errno;
    hold.lease = openat(hold.dir, "lease", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (hold.lease < 0)
        return -errno;
    if (flock(hold.lease, LOCK_SH | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -ENOENT : -errno;
    if (!is_still_there(path, hold.dir))
        return -ENOENT;
    int r = checkout_facts_read(hold.dir, &hold.facts);
    if (r < 0)
        return r == -EBADMSG ? -ENOENT : r;
    if (!checkout_is_whole(hold.dir, &hold.facts))
        return -ENOENT;
    *out = hold;
    hold.dir = hold.lease = -1;
    return 0;
}

int checkout_trash(int place, const char *name, char *trash, size_t size)
{
    (void)snprintf(
            trash, size, CHECKOUT_TRASH "%.70s-%d-%" PRIx64, name, (int)getpid(), clock_ns());
    return renameat(place, name, place, trash) < 0 ? -errno : 0;
}
