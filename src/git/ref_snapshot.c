/*
 * ref_snapshot.c - all references at one moment, as one file.
 *
 * A repository may have a hundred thousand packed references and a few loose ones. So the
 * packed ones are copied in long stretches, and only the places where something has to be left
 * out or put in are looked for.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/format/packed.h"
#include "git/name.h"
#include "git/ref.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADS "refs/heads/"
#define RUN_HEADS HEADS "task-"
#define DEPTH_MAX 64
#define LOOSE_MAX 1000000

static const char *const kinds[] = { "refs/heads", "refs/remotes", "refs/tags" }; /* sorted */

struct loose_ref {
    char *name;
    char oid[OID_MAX];
};

struct loose {
    struct loose_ref *refs;
    size_t n, room;
    bool may_have_tags; /* some of them may be tag objects */
};

static void loose_finish(struct loose loose)
{
    for (size_t i = 0; i < loose.n; i++)
        free(loose.refs[i].name);
    free(loose.refs);
}
DEFINE_AUTO(struct loose, loose_finish)

static bool is_of_a_run(const char *name)
{
    return strncmp(name, HEADS, strlen(HEADS)) == 0 && name_is_run_branch(name + strlen(HEADS));
}

static int add_loose(const struct repo *repo, struct loose *loose, const char *name,
        struct carrel_error *err)
{
    char oid[OID_MAX];

    if (is_of_a_run(name) || !ref_is_name(name) || ref_read(repo, name, oid, NULL) < 0)
        return 0;
    if (loose->n == loose->room) {
        size_t room = loose->room ? 2 * loose->room : 64;
        struct loose_ref *refs = reallocarray(loose->refs, room, sizeof(*refs));
        if (!refs || room > LOOSE_MAX)
            return err_set(err, -ENOMEM, "too many references; try: git pack-refs --all");
        loose->refs = refs;
        loose->room = room;
    }
    struct loose_ref *ref = &loose->refs[loose->n];
    ref->name = strdup(name);
    if (!ref->name)
        return err_set_errno(err, -ENOMEM, "read references");
    memcpy(ref->oid, oid, sizeof(oid));
    loose->n++;
    if (strncmp(name, HEADS, strlen(HEADS)) != 0)
        loose->may_have_tags = true;
    return 0;
}

static void closedir_if(DIR *dir)
{
    if (dir)
        (void)closedir(dir);
}
DEFINE_AUTO(DIR *, closedir_if)

/* Collects what is in the directory `name` ("refs/heads/topic"). */
static int walk(const struct repo *repo, struct loose *loose, int parent, const char *last,
        const char *name, unsigned depth, struct carrel_error *err)
{
    int fd = openat(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) /* gone meanwhile, or never there */
        return errno == ENOENT || errno == ENOTDIR
                       ? 0
                       : err_set_errno(err, -errno, "open '%s'", name);
    AUTO(closedir_if) DIR *dir = fdopendir(fd);
    if (!dir) {
        fd_close(fd);
        return err_set_errno(err, -ENOMEM, "read '%s'", name);
    }

    for (;;) {
        char child[REF_NAME_MAX + 1];

        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            return errno ? err_set_errno(err, -errno, "read '%s'", name) : 0;
        if (entry->d_name[0] == '.')
            continue;
        int len = snprintf(child, sizeof(child), "%s/%s", name, entry->d_name);
        if (len < 0 || (size_t)len >= sizeof(child))
            continue;
        bool is_dir = entry->d_type == DT_DIR;
        if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {
            struct stat st;
            is_dir = fstatat(fd, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
        }
        int r = 0;
        if (!is_dir && (entry->d_type == DT_FIFO || entry->d_type == DT_SOCK))
            continue; /* to open one would be to wait */
        if (!is_dir)
            r = add_loose(repo, loose, child, err);
        else if (depth < DEPTH_MAX)
            r = walk(repo, loose, fd, entry->d_name, child, depth + 1, err);
        if (r < 0)
            return r;
    }
}

static int by_name(const void *a, const void *b)
{
    const struct loose_ref *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Copies the records from `from` to before `to`, without those of runs, which can only be in
 * one stretch. */
static void copy(const struct packed *packed, size_t from, size_t to, struct buf *out)
{
    static const char first[] = RUN_HEADS, after[] = HEADS "task.";
    if (to <= from) /* or the file is not in the order that it promises */
        return;

    size_t runs = packed_find(packed, first, strlen(first));
    size_t runs_end = packed_find(packed, after, strlen(after));
    struct packed_ref ref;

    if (runs < from)
        runs = from;
    if (runs_end > to)
        runs_end = to;
    if (runs >= runs_end) {
        buf_add(out, packed->data + from, to - from);
        return;
    }
    buf_add(out, packed->data + from, runs - from);
    for (size_t at = runs; at < runs_end && packed_read(packed, at, &ref); at = ref.next) {
        char name[REF_NAME_MAX + 1];
        (void)snprintf(name, sizeof(name), "%.*s",
                (int)(ref.name_len < REF_NAME_MAX ? ref.name_len : REF_NAME_MAX), ref.name);
        if (!is_of_a_run(name))
            buf_add(out, packed->data + at, ref.next - at);
    }
    buf_add(out, packed->data + runs_end, to - runs_end);
}

/* Merges the references of one kind: loose ones from *next on, which outrank packed ones. */
static void merge(const struct packed *packed, const struct loose *loose, size_t *next,
        const char *kind, struct buf *out)
{
    char bound[32];
    size_t kind_len = strlen(kind);
    int len = snprintf(bound, sizeof(bound), "%s/", kind);
    size_t at = packed_find(packed, bound, (size_t)len);

    bound[kind_len] = '/' + 1;
    size_t end = packed_find(packed, bound, (size_t)len);
    for (; *next < loose->n && strncmp(loose->refs[*next].name, kind, kind_len) == 0; ++*next) {
        const struct loose_ref *ref = &loose->refs[*next];
        size_t name_len = strlen(ref->name);
        size_t place = packed_find(packed, ref->name, name_len);
        struct packed_ref same;

        copy(packed, at, place, out);
        buf_addf(out, "%s %s\n", ref->oid, ref->name);
        at = place;
        if (place < end && packed_read(packed, place, &same) && same.name_len == name_len &&
                memcmp(same.name, ref->name, name_len) == 0)
            at = same.next;
    }
    copy(packed, at, end, out);
}

/* References that are not files. */
static int snapshot_by_git(
        const struct repo *repo, struct buf *packed, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf lines = BUF_INIT(packed->max);
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;

    io.output = &lines;
    io.timeout_ms = 60000;
    int r = git_expect(&git,
            GIT_ARGS("for-each-ref", "--format=%(objectname) %(refname)", kinds[0], kinds[1],
                    kinds[2]),
            &io, err);
    if (r < 0)
        return r;
    buf_add_str(packed, "# pack-refs with: sorted \n");
    buf_add_str(&lines, lines.len ? "\n" : "");
    const struct packed all = { .data = lines.data ? lines.data : "", .len = lines.len };
    copy(&all, 0, all.len, packed);
    return 0;
}

static int snapshot_files(const struct repo *repo, struct buf *out, struct carrel_error *err)
{
    AUTO(loose_finish) struct loose loose = { 0 };
    AUTO(packed_close) struct packed packed = { 0 };
    AUTO(fd_close) int dir = open(repo->common_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    size_t next = 0;
    int r = 0;

    if (dir < 0)
        return err_set_errno(err, -errno, "open '%s'", repo->common_dir);
    /* The files first: one that is packed meanwhile is found in packed-refs afterwards. */
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(kinds); i++)
        r = walk(repo, &loose, dir, kinds[i], kinds[i], 0, err);
    if (r == 0)
        r = packed_open(repo->common_dir, &packed, err);
    if (r < 0)
        return r;
    if (loose.n > 0)
        qsort(loose.refs, loose.n, sizeof(*loose.refs), by_name);

    /* Whether a loose tag is a tag object is not known here, so git must not be told that it
     * has all of that in the file. What it has after "^" counts all the same. */
    buf_add_str(out, packed.is_fully_peeled && !loose.may_have_tags
                             ? "# pack-refs with: peeled fully-peeled sorted \n"
                             : "# pack-refs with: sorted \n");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        merge(&packed, &loose, &next, kinds[i], out);
    return 0;
}

int ref_snapshot(const struct repo *repo, struct buf *packed, struct carrel_error *err)
{
    int r = repo->has_file_refs ? snapshot_files(repo, packed, err)
                                : snapshot_by_git(repo, packed, err);

    if (r == 0 && packed->is_short)
        return err_set(err, -EFBIG, "the repository has more references than fit %zu bytes",
                packed->max);
    return r;
}
