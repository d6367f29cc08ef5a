/*
 * fast_import.c - commits a list of changes, without a checkout and without an index.
 *
 * One git fast-import gets the base tree by its id and then only the changes. It reads only the
 * trees on the paths to them, so the size of the rest does not matter. It does not check names,
 * so they are checked here.
 */
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "git/format/treepath.h"
#include "git/name.h"
#include "workspace/harvest/harvest.h"
#include "workspace/harvest/quarantine.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEXT_MAX (1 << 20)
#define BRANCH "refs/heads/made" /* never written: the stream resets it before the end */

/* The input of fast-import, generated on demand. */
struct stream {
    int upper;
    const struct changes *changes;
    size_t next;     /* change */
    struct buf text; /* the text before, between and after the contents */
    size_t text_at;
    int file; /* whose content is being sent; -1: none */
    uint64_t left;
    const char *parent;
    bool is_over;
};

static void stream_finish(struct stream stream)
{
    fd_close(stream.file);
    buf_finish(stream.text);
}
DEFINE_AUTO(struct stream, stream_finish)

/* For messages. */
#define QUOTED(path) str_escape((path), strlen(path), (char[200]){ 0 }, 200)

/*
 * Opens what the walk found below `upper`. If processes of the run were still alive, it may
 * have been replaced since: so no link is followed, no mount is entered, and its type is
 * checked on the descriptor.
 */
static int open_below(int upper, const char *path, uint64_t flags)
{
    const struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOFOLLOW,
        .resolve =
                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    int fd = (int)syscall(SYS_openat2, upper, path, &how, sizeof(how));

    return fd < 0 ? -errno : fd;
}

static int changed(const char *path, struct carrel_error *err)
{
    return err_set(err, -ESTALE, "'%s' changed while it was read: is the run still active?",
            QUOTED(path));
}

static int begin_file(struct stream *stream, const struct change *change, const char *mode,
        struct carrel_error *err)
{
    struct stat st;

    int fd = open_below(stream->upper, change->path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return err_set_errno(err, fd, "read '%s'", QUOTED(change->path));
    stream->file = fd;
    if (fstat(stream->file, &st) < 0)
        return err_set_errno(err, -errno, "stat '%s'", QUOTED(change->path));
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != change->size)
        return changed(change->path, err);

    stream->left = change->size;
    buf_addf(&stream->text, "M %s inline ", mode);
    treepath_quote(&stream->text, change->path);
    buf_addf(&stream->text, "\ndata %" PRIu64 "\n", change->size);
    return 0;
}

static int add_link(
        struct stream *stream, const struct change *change, struct carrel_error *err)
{
    char target[PATH_MAX];
    AUTO(fd_close) int fd = open_below(stream->upper, change->path, O_PATH);
    if (fd < 0)
        return err_set_errno(err, fd, "read the link '%s'", QUOTED(change->path));

    ssize_t n = readlinkat(fd, "", target, sizeof(target));
    if (n < 0 || n == sizeof(target))
        return changed(change->path, err);
    buf_add_str(&stream->text, "M 120000 inline ");
    treepath_quote(&stream->text, change->path);
    buf_addf(&stream->text, "\ndata %zd\n", n);
    buf_add(&stream->text, target, (size_t)n);
    buf_add_str(&stream->text, "\n");
    return 0;
}

static int add_change(
        struct stream *stream, const struct change *change, struct carrel_error *err)
{
    switch (change->kind) {
    case CHANGE_REMOVE:
        buf_add_str(&stream->text, "D ");
        treepath_quote(&stream->text, change->path);
        buf_add_str(&stream->text, "\n");
        return 0;
    case CHANGE_FILE:
        return begin_file(stream, change, "100644", err);
    case CHANGE_EXECUTABLE:
        return begin_file(stream, change, "100755", err);
    case CHANGE_LINK:
        return add_link(stream, change, err);
    }
    return err_set(err, -EINVAL, "'%s' is a change of an unknown kind", QUOTED(change->path));
}

/* Asks for the trees of parent and commit, and for the commit's id. */
static void add_end(struct stream *stream)
{
    buf_addf(&stream->text, "\nls %s \"\"\nls :1 \"\"\nget-mark :1\nreset " BRANCH "\n\ndone\n",
            stream->parent);
    stream->is_over = true;
}

/* Generates more text, or starts a file. */
static int refill(struct stream *stream, struct carrel_error *err)
{
    buf_clear(&stream->text);
    stream->text_at = 0;
    if (stream->next < stream->changes->n) {
        int r = add_change(stream, &stream->changes->items[stream->next++], err);
        if (r < 0)
            return r;
    } else if (!stream->is_over) {
        add_end(stream);
    }
    return stream->text.is_short ? err_set_errno(err, -ENOMEM, "write to git") : 0;
}

static ssize_t read_content(
        struct stream *stream, char *data, size_t size, struct carrel_error *err)
{
    const char *path = stream->changes->items[stream->next - 1].path;
    ssize_t n = 0;
    char beyond;

    if (stream->left > 0) {
        n = read(stream->file, data, size < stream->left ? size : (size_t)stream->left);
        if (n < 0)
            return err_set_errno(err, -errno, "read '%s'", QUOTED(path));
        if (n == 0)
            return changed(path, err);
        stream->left -= (uint64_t)n;
    }
    if (stream->left == 0) {
        if (read(stream->file, &beyond, 1) != 0)
            return changed(path, err);
        fd_close(fd_steal(&stream->file));
        buf_clear(&stream->text);
        buf_add_str(&stream->text, "\n");
        stream->text_at = 0;
    }
    return n;
}

static ssize_t next_bytes(void *context, char *data, size_t size, struct carrel_error *err)
{
    struct stream *stream = context;
    size_t used = 0;

    while (used < size) {
        size_t ready = stream->text.len - stream->text_at;
        if (ready > 0) {
            size_t n = ready < size - used ? ready : size - used;
            memcpy(data + used, stream->text.data + stream->text_at, n);
            stream->text_at += n;
            used += n;
        } else if (stream->file >= 0) {
            ssize_t n = read_content(stream, data + used, size - used, err);
            if (n < 0)
                return n;
            used += (size_t)n;
        } else if (stream->is_over) {
            break;
        } else {
            int r = refill(stream, err);
            if (r < 0)
                return r;
        }
    }
    return (ssize_t)used;
}

/* A name must not contain what ends the line or the address. */
static void add_identity(struct buf *text, const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name >= ' ' && *name != '<' && *name != '>' && *name != 0x7f)
            buf_add(text, name, 1);
}

static void add_start(struct stream *stream, const char *base_tree, const char *message,
        const struct harvest_author *author)
{
    struct buf *text = &stream->text;
    size_t len = strlen(message);
    bool has_end = len > 0 && message[len - 1] == '\n';

    buf_add_str(text, "commit " BRANCH "\nmark :1\ncommitter ");
    add_identity(text, author->name);
    buf_add_str(text, " <");
    add_identity(text, author->email);
    buf_addf(text, "> %" PRId64 " +0000\ndata %zu\n%s%s\nfrom %s\nM 040000 %s \"\"\n",
            author->when_s < 0 ? 0 : author->when_s, len + !has_end, message,
            has_end ? "" : "\n", stream->parent, base_tree);
}

static int check_paths(const struct changes *changes, struct carrel_error *err)
{
    for (size_t i = 0; i < changes->n; i++) {
        const struct change *change = &changes->items[i];
        /*
         * A path of base may be removed whatever its name; an empty path would mean everything.
         */
        const char *why = change->kind != CHANGE_REMOVE ? treepath_why_not(change->path)
                          : change->path[0] == '\0'     ? "it is empty"
                                                        : NULL;
        if (why)
            return err_set(err, -EBADMSG,
                    "the path '%s' is refused: %s; rename or remove it in the workspace",
                    QUOTED(change->path), why);
    }
    return 0;
}

/* Whether git, on any system, might treat one of the new paths as .gitmodules. */
static bool may_have_modules(const struct changes *changes)
{
    for (size_t i = 0; i < changes->n; i++) {
        const char *path = changes->items[i].path;
        if (changes->items[i].kind == CHANGE_REMOVE)
            continue;
        if (strcasestr(path, "gitmod") || strcasestr(path, "gi7eb"))
            return true;
        for (const char *at = path; *at; at++)
            if ((unsigned char)*at >= 0x80) /* perhaps a character that HFS+ ignores */
                return true;
    }
    return false;
}

struct reply {
    char parent_tree[OID_MAX];
    char tree[OID_MAX];
    char commit[OID_MAX];
};

static int parse_reply(const char *text, struct reply *out, struct carrel_error *err)
{
    struct reply reply = { 0 };

    if (sscanf(text, "040000 tree %64[0-9a-f] 040000 tree %64[0-9a-f] %64[0-9a-f]",
                reply.parent_tree, reply.tree, reply.commit) != 3 ||
            !name_is_oid(reply.commit))
        return err_set(err, -EPROTO, "git fast-import did not report its result");
    *out = reply;
    return 0;
}

static int import(const struct git *git, struct stream *stream,
        const struct harvest_limits *limits, struct reply *out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf output = BUF_INIT(1024);
    struct git_io io = GIT_IO_INIT;

    io.source = next_bytes;
    io.context = stream;
    io.output = &output;
    io.max_memory_bytes = limits->max_memory_bytes;
    io.timeout_ms = limits->timeout_ms;
    /*
     * Always a pack: one file to sync and to publish. Deltas between unrelated files are not
     * worth the search.
     */
    int r = git_expect(git,
            GIT_ARGS(QUARANTINE_GIT, "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet",
                    "--done", "--depth=0"),
            &io, err);
    if (r < 0)
        return err_wrap(err, r, "commit the changes");
    return parse_reply(output.data ? output.data : "", out, err);
}

/* Makes git check the new packs like foreign ones. */
static int check_modules(const struct git *git, const char *objects,
        const struct harvest_limits *limits, struct carrel_error *err)
{
    AUTO(dir_close) DIR *dir = NULL;
    struct git_io io = GIT_IO_INIT;
    char path[PATH_MAX];

    io.max_memory_bytes = limits->max_memory_bytes;
    io.timeout_ms = limits->timeout_ms;
    if (snprintf(path, sizeof(path), "%s/pack", objects) < (int)sizeof(path))
        dir = dir_open(AT_FDCWD, path);
    if (!dir)
        return err_set(err, -EIO, "list '%s'", path);
    for (const char *name; (name = dir_next(dir));) {
        size_t len = strlen(name);
        if (len < 5 || strcmp(name + len - 5, ".pack") != 0)
            continue;
        if (snprintf(path, sizeof(path), "%s/pack/%s", objects, name) >= (int)sizeof(path))
            return err_set_errno(err, -ENAMETOOLONG, "check the commit");
        int r = git_run(git,
                GIT_ARGS(QUARANTINE_GIT, "index-pack", "--verify", "--strict", path), &io, err);
        if (r != 0)
            return err_wrap(err, r > 0 ? -EBADMSG : r, "the changes are refused");
    }
    return 0;
}

int harvest_commit_changes(const struct repo *repo, const char *dir, int upper,
        const struct changes *changes, const char *base_tree, const char *parent,
        const char *message, const struct harvest_author *author,
        const struct harvest_limits *limits, char commit[static OID_MAX],
        struct carrel_error *err)
{
    AUTO(quarantine_finish) struct quarantine quarantine = QUARANTINE_INIT;
    AUTO(stream_finish)
    struct stream stream = {
        .upper = upper,
        .changes = changes,
        .text = BUF_INIT(TEXT_MAX),
        .file = -1,
        .parent = parent,
    };
    struct reply reply;

    if (!name_is_oid(base_tree) || !name_is_oid(parent))
        return err_set(err, -EINVAL, "the name of an object is 40 or 64 hex digits");
    int r = check_paths(changes, err);
    if (r < 0)
        return r;
    add_start(&stream, base_tree, message, author);
    if (stream.text.is_short)
        return err_set(err, -E2BIG, "the message of the commit is longer than a megabyte");
    r = quarantine_begin(repo, dir, &quarantine, err);
    if (r < 0)
        return r;

    const struct git git = { .git_dir = quarantine.git_dir, .trust = GIT_SCRUBBED };
    r = import(&git, &stream, limits, &reply, err);
    if (r < 0)
        return r;
    if (strcmp(reply.tree, reply.parent_tree) == 0) {
        (void)snprintf(commit, OID_MAX, "%s", parent);
        return 0;
    }
    if (may_have_modules(changes)) {
        r = check_modules(&git, quarantine.objects, limits, err);
        if (r < 0)
            return r;
    }
    r = quarantine_keep(&quarantine, err);
    if (r < 0)
        return r;
    (void)snprintf(commit, OID_MAX, "%s", reply.commit);
    return 0;
}
