/*
 * fork_git.c - the git dir of a fork.
 *
 * A run wrote the layers below: they are read as bytes, no link in them is followed, and only
 * text of exactly the expected form is used. A branch in any other form counts as missing, as
 * at the end of a run.
 */
#include "workspace/fork_git.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/name.h"
#include "git/repo.h"
#include "workspace/harvest/lower.h"
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HEADS "refs/heads/"
#define REF_MAX (sizeof(HEADS) + NAME_BRANCH_MAX)
#define MAX_REFS ((size_t)256 << 20)

/* Adds the file at `path`; -ENOENT: there is none. */
static int add_file(
        const struct lower *below, const char *path, struct buf *text, struct carrel_error *err)
{
    struct lower_entry at = lower_root(below);
    char part[REF_MAX];
    char block[16384];

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        int r = lower_find(below, &at, part, &at, err);
        if (r < 0)
            return r;
        if (at.kind != LOWER_DIR)
            return -ENOENT;
    }
    AUTO(fd_close) int fd = lower_open_file(below, &at, path, err);
    if (fd < 0)
        return fd;
    ssize_t n;
    while ((n = fd_read_all(fd, block, sizeof(block))) > 0 && !text->is_short)
        buf_add(text, block, (size_t)n);
    if (n < 0)
        return err_set_errno(err, (int)n, "read '%s' of a layer", path);
    buf_add(text, "", 0);
    return 0;
}

/* Takes the commit's id that ends at `end`, if the line begins with it. */
static bool take_oid(const char *line, const char *end, char oid[static OID_MAX])
{
    size_t len = (size_t)(end - line);

    if (len >= OID_MAX)
        return false;
    memcpy(oid, line, len);
    oid[len] = '\0';
    return name_is_oid(oid);
}

static bool find_packed(const struct buf *text, const char *ref, char oid[static OID_MAX])
{
    const char *end = text->data + text->len;
    char wanted[REF_MAX + 4];

    (void)snprintf(wanted, sizeof(wanted), " %s\n", ref);
    for (const char *line = text->data; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        const char *space = next ? memchr(line, ' ', (size_t)(next - line)) : NULL;
        if (!next)
            return false;
        if (space && (size_t)(next - space) + 1 == strlen(wanted) &&
                memcmp(space, wanted, strlen(wanted)) == 0)
            return take_oid(line, space, oid);
        line = next + 1;
    }
    return false;
}

/* The commit of the branch; `base` where it has none of the expected form. */
static int find_tip(const struct lower *below, const char *ref, const char *base,
        char tip[static OID_MAX], struct carrel_error *err)
{
    AUTO(buf_finish) struct buf loose = BUF_INIT(256);
    AUTO(buf_finish) struct buf packed = BUF_INIT(MAX_REFS);

    (void)snprintf(tip, OID_MAX, "%s", base);
    int r = add_file(below, ref, &loose, err);
    if (r == 0) {
        const char *end = loose.is_short ? NULL : strchr(loose.data, '\n');
        char oid[OID_MAX];
        if (end && take_oid(loose.data, end, oid))
            memcpy(tip, oid, OID_MAX);
        return 0;
    }
    if (r == -ENOENT)
        r = add_file(below, "packed-refs", &packed, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    char oid[OID_MAX];
    if (!packed.is_short && find_packed(&packed, ref, oid))
        memcpy(tip, oid, OID_MAX);
    return 0;
}

static int write_ref(int dir, const char *ref, const char *tip)
{
    char path[REF_MAX];
    char line[OID_MAX + 1];

    (void)snprintf(path, sizeof(path), "%s", ref);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const char *const names[] = { path, NULL };
        int r = fd_make_dirs(dir, names);
        if (r < 0)
            return r;
        *slash = '/';
    }
    (void)snprintf(line, sizeof(line), "%s\n", tip);
    return fd_write_new_text(dir, path, line);
}

int fork_git_fill(const struct lower *below, const char *old_branch, const char *branch,
        const char *base, int dir, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf head = BUF_INIT(4096);
    char old[REF_MAX + 8];
    char old_ref[REF_MAX];
    char ref[REF_MAX];
    char text[REF_MAX + 8];
    char tip[OID_MAX];

    (void)snprintf(old, sizeof(old), "ref: " HEADS "%s\n", old_branch);
    (void)snprintf(ref, sizeof(ref), HEADS "%s", branch);
    (void)snprintf(text, sizeof(text), "ref: %s\n", ref);
    (void)snprintf(old_ref, sizeof(old_ref), HEADS "%s", old_branch);
    int r = find_tip(below, old_ref, base, tip, err);
    if (r == 0)
        r = add_file(below, "HEAD", &head, err);
    if (r < 0 && r != -ENOENT)
        return r;
    bool is_on_branch = r == -ENOENT || head.is_short || strcmp(head.data, old) == 0;
    r = write_ref(dir, ref, tip);
    if (r == 0 && is_on_branch)
        r = fd_write_new_text(dir, "HEAD", text);
    return r < 0 ? err_set_errno(err, r, "write the git dir of a fork") : 0;
}
