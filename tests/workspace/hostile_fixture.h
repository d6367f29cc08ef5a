/*
 * hostile_fixture.h - for tests: objects and packs that a run's git may send, well-formed or
 * not.
 */
#pragma once
#include "git/git.h"
#include "workspace/harvest_fixture.h"

/* A tree under construction, as bytes. */
struct bytes {
    struct buf buf;
};

static inline void bytes_finish(struct bytes bytes)
{
    buf_finish(bytes.buf);
}
DEFINE_AUTO(struct bytes, bytes_finish)
#define BYTES_INIT                                                                             \
    {                                                                                          \
        BUF_INIT(256 << 20)                                                                    \
    }

__attribute__((unused)) static struct git run_git(const struct fixture *fx)
{
    return (struct git){ .git_dir = fx->run_git, .trust = GIT_SCRUBBED };
}

/* Writes an object of the run, well-formed or not. */
__attribute__((unused)) static void write_object(struct fixture *fx, const char *type,
        const void *data, size_t len, char oid[static OID_MAX])
{
    AUTO(buf_finish) struct buf output = BUF_INIT(128);
    const struct git git = run_git(fx);
    struct git_io io = GIT_IO_INIT;

    io.input = data;
    io.input_len = len;
    io.output = &output;
    CHECK_EQ(git_expect(&git,
                     GIT_ARGS("hash-object", "-w", "--literally", "--stdin", "-t", type), &io,
                     &fx->err),
            0);
    (void)snprintf(oid, OID_MAX, "%s", output.data);
}

__attribute__((unused)) static void add_raw_oid(struct buf *out, const char *oid)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; oid[i]; i += 2) {
        const char *high = strchr(digits, oid[i]);
        const char *low = strchr(digits, oid[i + 1]);
        CHECK(high && low);
        buf_add(out, &(char){ (char)((high - digits) << 4 | (low - digits)) }, 1);
    }
}

__attribute__((unused)) static void add_entry_len(
        struct bytes *tree, const char *mode, const void *name, size_t len, const char *oid)
{
    buf_add_str(&tree->buf, mode);
    buf_add_str(&tree->buf, " ");
    buf_add(&tree->buf, name, len);
    buf_add(&tree->buf, "", 1);
    add_raw_oid(&tree->buf, oid);
}

__attribute__((unused)) static void add_entry(
        struct bytes *tree, const char *mode, const char *name, const char *oid)
{
    add_entry_len(tree, mode, name, strlen(name), oid);
}

/* A commit of the run over base with this tree. */
__attribute__((unused)) static void write_commit(
        struct fixture *fx, const char *tree, const char *parent, char oid[static OID_MAX])
{
    char text[512];

    int n = snprintf(text, sizeof(text),
            "tree %s\nparent %s\nauthor A <a@b> 1700000000 +0000\n"
            "committer A <a@b> 1700000000 +0000\n\nrun\n",
            tree, parent);
    write_object(fx, "commit", text, (size_t)n, oid);
}

__attribute__((unused)) static int open_new(const struct fixture *fx, const char *name)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", fx->top, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    return fd;
}

/* A pack with exactly the objects in `list` (one id per line). */
__attribute__((unused)) static int make_pack(struct fixture *fx, const char *list)
{
    AUTO(fd_close) int fd = open_new(fx, "pack");
    const struct git git = run_git(fx);
    struct git_io io = GIT_IO_INIT;

    io.input = list;
    io.input_len = strlen(list);
    io.output_fd = fd;
    CHECK_EQ(git_expect(&git, GIT_ARGS("pack-objects", "-q", "--stdout"), &io, &fx->err), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd_steal(&fd);
}

__attribute__((unused)) static int take_with(
        struct fixture *fx, int pack, const char *tip, const struct harvest_limits *limits)
{
    int r = harvest_take_pack(&fx->repo, fx->quarantine, pack, tip, fx->base, limits, &fx->err);

    if (r < 0) {
        CHECK_EQ(fx->err.code, r);
        CHECK_EQ(quarantined(fx), 0); /* what is refused leaves nothing */
    }
    return r;
}

__attribute__((unused)) static int take(struct fixture *fx, int pack, const char *tip)
{
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;

    return take_with(fx, pack, tip, &limits);
}

/* The id of a blob with the content "blob". */
__attribute__((unused)) static const char *blob_of(struct fixture *fx)
{
    static char oid[OID_MAX];

    write_object(fx, "blob", "blob", 4, oid);
    return oid;
}

/* A thin pack of the run's current main branch, made by its own git. */
__attribute__((unused)) static int thin_pack(struct fixture *fx, char tip[static OID_MAX])
{
    sh(tip, OID_MAX, "git --git-dir=%s rev-parse main", fx->run_git);
    sh(NULL, 0,
            "printf '%%s\\n^%%s\\n' %s %s | git --git-dir=%s pack-objects -q --revs --thin"
            " --stdout --delta-base-offset >%s/pack",
            tip, fx->base, fx->run_git, fx->top);
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/pack", fx->top);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

/* Takes a commit with this one tree, and a blob with the content "blob". */
__attribute__((unused)) static int take_tree(
        struct fixture *fx, const struct bytes *tree, const char *more)
{
    char tree_oid[OID_MAX];
    char tip[OID_MAX];
    char blob[OID_MAX];
    char list[1024];

    write_object(fx, "blob", "blob", 4, blob);
    write_object(fx, "tree", tree->buf.data, tree->buf.len, tree_oid);
    write_commit(fx, tree_oid, fx->base, tip);
    (void)snprintf(list, sizeof(list), "%s\n%s\n%s\n%s", tip, tree_oid, blob, more);
    AUTO(fd_close) int pack = make_pack(fx, list);
    return take(fx, pack, tip);
}

__attribute__((unused)) static int take_name(
        struct fixture *fx, const char *mode, const char *name)
{
    AUTO(bytes_finish) struct bytes tree = BYTES_INIT;

    add_entry(&tree, mode, name, blob_of(fx));
    return take_tree(fx, &tree, "");
}
