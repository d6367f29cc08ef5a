/* private.c - what a run's private git dir has of its own, and whether it was changed. */
#include "workspace/private.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/name.h"
#include "git/ref.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_REFS (UINT64_C(256) << 20)
#define HEADS "refs/heads/"
#define WHO "carrel <carrel@localhost>"

/* A run's own refs, as text. */
struct own {
    char ref[sizeof(HEADS) + NAME_BRANCH_MAX];
    char head_text[sizeof("ref: " HEADS "\n") + NAME_BRANCH_MAX];
    char oid_text[OID_MAX + 1];
    char packed_line[OID_MAX + sizeof(HEADS "\n") + NAME_BRANCH_MAX];
};

static struct own own_of(const char *branch, const char *commit)
{
    struct own own;

    (void)snprintf(own.ref, sizeof(own.ref), HEADS "%s", branch);
    (void)snprintf(own.head_text, sizeof(own.head_text), "ref: " HEADS "%s\n", branch);
    (void)snprintf(own.oid_text, sizeof(own.oid_text), "%s\n", commit);
    (void)snprintf(
            own.packed_line, sizeof(own.packed_line), "%s " HEADS "%s\n", commit, branch);
    return own;
}

/* Where the line of `ref` belongs in a packed-refs file, which git sorts by name. */
static size_t place_of(const struct buf *packed, const char *ref)
{
    size_t at = 0;

    while (at < packed->len) {
        const char *line = packed->data + at;
        const char *end = memchr(line, '\n', packed->len - at);
        const char *space = strchr(line, ' ');
        size_t len = end ? (size_t)(end - line) + 1 : packed->len - at;
        /* '#': what the file is like; '^': what the tag of the line before leads to */
        if (line[0] != '#' && line[0] != '^' && end && space && space < end) {
            size_t name_len = (size_t)(end - space) - 1;
            int order = strncmp(space + 1, ref, name_len);
            if (order > 0)
                break;
        }
        at += len;
    }
    return at;
}

/*
 * The run's branch is a line of packed-refs like those of the others: that saves three files
 * and directories, which are most of what a workspace costs. Moving it makes a loose one, as
 * always in git.
 */
static int write_own(
        int dir, const struct own *own, const struct buf *others, const char *commit)
{
    static const char *const dirs[] = { "logs", NULL };
    static const char zeros[] =
            "0000000000000000000000000000000000000000000000000000000000000000";
    AUTO(buf_finish) struct buf packed = BUF_INIT(MAX_REFS);
    char log[2 * OID_MAX + 128];
    size_t at = place_of(others, own->ref);
    int r = fd_make_dirs(dir, dirs);

    (void)snprintf(log, sizeof(log), "%.*s %s " WHO " %jd +0000\tcarrel: start of the run\n",
            (int)strlen(commit), zeros, commit, (intmax_t)time(NULL));
    buf_add(&packed, others->data, at);
    buf_add_str(&packed, own->packed_line);
    buf_add(&packed, others->data + at, others->len - at);
    if (r == 0 && packed.is_short)
        r = -EFBIG;
    if (r == 0)
        r = fd_write_new_text(dir, "HEAD", own->head_text);
    if (r == 0)
        r = fd_write_new_text(dir, "logs/HEAD", log);
    if (r == 0)
        r = fd_write_new(dir, "packed-refs", packed.data, packed.len);
    return r;
}

int private_make_upper(const struct repo *repo, int dir, const char *branch, const char *commit,
        struct carrel_error *err)
{
    const struct own own = own_of(branch, commit);
    AUTO(buf_finish) struct buf others = BUF_INIT(MAX_REFS);
    int r = ref_snapshot(repo, &others, err);

    if (r < 0)
        return err_wrap(err, r, "copy the names of the branches");
    if (others.is_short)
        return err_set(err, -EFBIG, "the repository has too many branches and tags to copy");
    buf_add_str(&others, ""); /* text even when there is none */
    r = write_own(dir, &own, &others, commit);
    if (r < 0)
        return err_set_errno(err, r, "write the private git dir");
    return 0;
}

/* The run chose what is there now: no link is followed, no device opened, nothing waited for.
 */
static int open_below(int dir, const char *path, uint64_t flags)
{
    const struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .resolve =
                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}

/* Whether the regular file `path` begins with `expected` and, if `is_whole`, ends there. */
static bool holds(int dir, const char *path, const void *expected, size_t len, bool is_whole)
{
    char text[sizeof(struct own)];
    struct stat st;
    AUTO(fd_close) int fd = open_below(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || len >= sizeof(text))
        return false;
    ssize_t n = fd_read_all(fd, text, is_whole ? sizeof(text) : len);
    return n == (ssize_t)len && memcmp(text, expected, len) == 0;
}

static bool holds_text(int dir, const char *path, const char *text)
{
    return holds(dir, path, text, strlen(text), true);
}

static bool is_absent(int dir, const char *path)
{
    AUTO(fd_close) int fd = open_below(dir, path, O_PATH);

    return fd == -ENOENT;
}

/*
 * Files that are missing from the tree need not be deleted ones: a sparse checkout takes them
 * out and says so in index, configuration and info/. An index of version 2 has no room for that
 * (gitformat-index(5), "extended flag"), so one like this, or none of its own, is plain.
 */
static bool has_plain_index(int dir)
{
    static const char version_2[] = { 'D', 'I', 'R', 'C', 0, 0, 0, 2 };

    return is_absent(dir, "index") || holds(dir, "index", version_2, sizeof(version_2), false);
}

/* Whether packed-refs has the run's branch where it was. */
static bool is_packed(int dir, const struct own *own)
{
    struct stat st;
    AUTO(fd_close) int fd = open_below(dir, "packed-refs", O_RDONLY | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)MAX_REFS)
        return false;
    AUTO(free) char *text = malloc((size_t)st.st_size + 1);
    ssize_t n = text ? fd_read_all(fd, text, (size_t)st.st_size) : -1;
    if (n < 0)
        return false;
    const char *line = memmem(text, (size_t)n, own->packed_line, strlen(own->packed_line));
    return line && (line == text || line[-1] == '\n');
}

/* A loose ref hides a packed one. */
static bool has_own_branch(int dir, const struct own *own)
{
    return is_absent(dir, own->ref) ? is_packed(dir, own)
                                    : holds_text(dir, own->ref, own->oid_text);
}

bool private_is_untouched(int dir, const char *branch, const char *commit)
{
    const struct own own = own_of(branch, commit);

    return holds_text(dir, "HEAD", own.head_text) && has_own_branch(dir, &own) &&
           is_absent(dir, "objects") && is_absent(dir, "info") && is_absent(dir, "config") &&
           is_absent(dir, "config.worktree") && is_absent(dir, "commondir") &&
           has_plain_index(dir);
}
