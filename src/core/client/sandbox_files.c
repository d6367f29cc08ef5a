/* sandbox_files.c - <carrel/files.h>: files of a living sandbox, through its handle. */
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "core/client/client.h"
#include "core/client/remote.h"
#include "core/files/files_tar.h"
#include "core/files/files_watch.h"
#include <carrel/files.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/*
 * Takes the options of a call into *own; those that `may` does not name must not be set, since
 * a caller that sets one relies on it.
 */
static int take_options(const struct carrel_files_options *options,
        struct carrel_files_options may, struct carrel_files_options *own,
        struct carrel_error *err)
{
    const struct carrel_files_options *o = own;

    *own = (struct carrel_files_options)CARREL_FILES_OPTIONS_INIT;
    int r = OPTIONS_TAKE(own, options, CARREL_FILES_OPTIONS_INIT, err);
    if (r < 0)
        return r;
    const struct {
        const char *name;
        bool is_set, may_be_set;
    } rows[] = {
        { "max_entries", o->max_entries != 0, may.max_entries != 0 },
        { "max_bytes", o->max_bytes != 0, may.max_bytes != 0 },
        { "mode", o->has_mode, may.has_mode },
        { "is_append", o->is_append, may.is_append },
        { "no_replace", o->no_replace, may.no_replace },
        { "with_parents", o->with_parents, may.with_parents },
        { "is_recursive", o->is_recursive, may.is_recursive },
        { "follows_link", o->follows_link, may.follows_link },
        { "names_only", o->names_only, may.names_only },
        { "is_whole", o->is_whole, may.is_whole },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].is_set && !rows[i].may_be_set)
            return err_set(err, -EINVAL, "the option %s has no meaning here", rows[i].name);
    if (o->has_mode && o->mode > 0777)
        return err_set(err, -EINVAL, "the mode %04o is more than permissions", o->mode);
    return 0;
}

/* Access through the connection of the handle, which outlives it. */
static int access_to(struct carrel_sandbox *sandbox, const struct carrel_files_options *options,
        struct file_access *access, struct carrel_error *err)
{
    int r = client_connect(sandbox, err);

    if (r < 0)
        return r;
    *access = file_access_of(&sandbox->box->base);
    access->has_user = options->has_user;
    access->uid = options->uid;
    access->gid = options->gid;
    return 0;
}

/* The beginning of a call on one sandbox: its options are checked, and it is reached. */
static int begin(struct carrel_sandbox *sandbox, const struct carrel_files_options *options,
        struct carrel_files_options may, struct carrel_files_options *own,
        struct file_access *access, struct carrel_error *err)
{
    int r = take_options(options, may, own, err);

    return r < 0 ? r : access_to(sandbox, own, access, err);
}

static struct files_limits limits_of(const struct carrel_files_options *options)
{
    return (struct files_limits){
        .entries = options->max_entries,
        .bytes = options->max_bytes,
    };
}

/* Failures that say what is, or is not, at the path that the caller gave. */
static int outcome(int r, struct carrel_error *err)
{
    static const int of_caller[] = { -ENOENT, -EEXIST, -ENOTDIR, -EISDIR, -ENOTEMPTY, -ELOOP,
        -ENAMETOOLONG, -EXDEV, -EFBIG, -EBADMSG };

    for (size_t i = 0; i < ARRAY_LEN(of_caller); i++)
        if (r == of_caller[i] && err->code == r)
            return err_from(err, r, CARREL_FROM_CALLER);
    return r;
}

int carrel_files_read(struct carrel_sandbox *sandbox, const char *path, int out,
        const struct carrel_files_options *options, struct carrel_error *err)
{
    const struct carrel_files_options may = { .is_whole = true, .max_bytes = 1 };
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = begin(sandbox, options, may, &own, &access, err);
    if (r < 0)
        return r;
    if (own.max_bytes && !own.is_whole)
        return err_set(err, -EINVAL, "the option max_bytes needs is_whole here");
    const struct files_limits limits = limits_of(&own);
    r = own.is_whole ? files_read_whole(&access, path, out, &limits, err)
                     : files_read(&access, path, out, err);
    return outcome(r, err);
}

int carrel_files_write(struct carrel_sandbox *sandbox, const char *path, int in,
        const struct carrel_files_options *options, struct carrel_error *err)
{
    const struct carrel_files_options may = {
        .has_mode = true,
        .is_append = true,
        .no_replace = true,
    };
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = begin(sandbox, options, may, &own, &access, err);
    if (r < 0)
        return r;
    int flags = (own.is_append ? O_APPEND : O_TRUNC) | (own.no_replace ? O_EXCL : 0);
    r = files_write(&access, path, in, flags, own.has_mode ? own.mode : 0644, err);
    return outcome(r, err);
}

static struct carrel_file_time time_of(const struct timespec *time)
{
    return (struct carrel_file_time){ time->tv_sec, (uint32_t)time->tv_nsec };
}

static void fill_stat(const struct file_stat *from, struct carrel_file_stat *to)
{
    *to = (struct carrel_file_stat){
        .size = sizeof(*to),
        .device = from->device,
        .inode = from->inode,
        .links = from->links,
        .mode = from->mode,
        .uid = from->uid,
        .gid = from->gid,
        .bytes = from->size,
        .held_bytes = from->held_bytes,
        .accessed = time_of(&from->atime),
        .modified = time_of(&from->mtime),
        .changed = time_of(&from->ctime),
    };
}

struct visitor {
    int (*visit)(const struct carrel_file_entry *entry, void *context);
    void *context;
};

static int visit_entry(const struct files_entry *entry, void *context, struct carrel_error *err)
{
    const struct visitor *visitor = context;
    struct carrel_file_stat stat;
    const struct carrel_file_entry given = {
        .size = sizeof(given),
        .name = entry->name,
        .stat = entry->stat ? &stat : NULL,
        .target = entry->target,
    };

    (void)err;
    if (entry->stat)
        fill_stat(entry->stat, &stat);
    return visitor->visit(&given, visitor->context);
}

int carrel_files_list(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options,
        int (*visit)(const struct carrel_file_entry *entry, void *context), void *context,
        struct carrel_error *err)
{
    const struct carrel_files_options may = { .names_only = true };
    struct visitor visitor = { .visit = visit, .context = context };
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = begin(sandbox, options, may, &own, &access, err);
    if (r < 0)
        return r;
    r = files_list(&access, path, !own.names_only, visit_entry, &visitor, err);
    return outcome(r, err);
}

int carrel_files_stat(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options, struct carrel_file_stat *out, char **target,
        struct carrel_error *err)
{
    const struct carrel_files_options may = { .follows_link = true };
    AUTO(buf_finish) struct buf link = BUF_INIT(PATH_MAX);
    struct carrel_file_stat given = CARREL_FILE_STAT_INIT;
    struct file_stat stat;
    char *text = NULL;
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = take_options(options, may, &own, err);
    if (r == 0)
        r = OPTIONS_GIVE(out, &given, CARREL_FILE_STAT_INIT, err); /* it has the right size */
    if (r == 0)
        r = access_to(sandbox, &own, &access, err);
    if (r < 0)
        return r;
    r = files_stat(&access, path, own.follows_link, &stat, target ? &link : NULL, err);
    if (r == 0 && link.len > 0)
        r = buf_take(&link, &text, err);
    if (r < 0)
        return outcome(r, err);
    if (target)
        *target = text;
    fill_stat(&stat, &given);
    return OPTIONS_GIVE(out, &given, CARREL_FILE_STAT_INIT, err);
}

int carrel_files_make_dir(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options, struct carrel_error *err)
{
    const struct carrel_files_options may = { .has_mode = true, .with_parents = true };
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = begin(sandbox, options, may, &own, &access, err);
    if (r < 0)
        return r;
    r = files_make_dir(&access, path, own.has_mode ? own.mode : 0755, own.with_parents, err);
    return outcome(r, err);
}

int carrel_files_move(struct carrel_sandbox *sandbox, const char *from, const char *to,
        const struct carrel_files_options *options, struct carrel_error *err)
{
    const struct carrel_files_options may = { .no_replace = true };
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = begin(sandbox, options, may, &own, &access, err);
    if (r < 0)
        return r;
    return outcome(files_move(&access, from, to, own.no_replace, err), err);
}

int carrel_files_remove(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options, struct carrel_error *err)
{
    const struct carrel_files_options may = { .is_recursive = true };
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = begin(sandbox, options, may, &own, &access, err);
    if (r < 0)
        return r;
    r = own.is_recursive ? files_remove_tree(&access, path, err)
                         : files_remove(&access, path, err);
    return outcome(r, err);
}

/* --- trees --- */

/* Options and count of a call that copies. */
static int check_tree(const struct carrel_files_options *options,
        struct carrel_files_count *count, struct carrel_files_options *own,
        struct carrel_error *err)
{
    const struct carrel_files_options may = { .max_entries = 1, .max_bytes = 1 };
    const struct carrel_files_count nothing = CARREL_FILES_COUNT_INIT;

    int r = count ? OPTIONS_GIVE(count, &nothing, CARREL_FILES_COUNT_INIT, err) : 0;
    return r < 0 ? r : take_options(options, may, own, err);
}

static int begin_tree(struct carrel_sandbox *sandbox,
        const struct carrel_files_options *options, struct carrel_files_count *count,
        struct carrel_files_options *own, struct file_access *access, struct carrel_error *err)
{
    int r = check_tree(options, count, own, err);

    return r < 0 ? r : access_to(sandbox, own, access, err);
}

static int end_tree(int r, const struct files_count *from, struct carrel_files_count *to,
        struct carrel_error *err)
{
    const struct carrel_files_count given = {
        .size = sizeof(given),
        .files = from->files,
        .directories = from->directories,
        .links = from->links,
        .bytes = from->bytes,
        .skipped = from->skipped,
        .stray_links = from->stray_links,
    };

    if (r == 0 && to)
        r = OPTIONS_GIVE(to, &given, CARREL_FILES_COUNT_INIT, err);
    return outcome(r, err);
}

int carrel_files_copy(struct carrel_sandbox *from_sandbox, const char *from,
        struct carrel_sandbox *to_sandbox, const char *to,
        const struct carrel_files_options *options, struct carrel_files_count *count,
        struct carrel_error *err)
{
    struct file_access access[2] = { FILE_ACCESS_INIT, FILE_ACCESS_INIT };
    struct files_end source = { .path = from };
    struct files_end target = { .path = to };
    struct files_count done = { 0 };
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = check_tree(options, count, &own, err);
    if (r == 0 && !from_sandbox && !to_sandbox)
        r = err_set(err, -EINVAL, "neither end of the copy is in a sandbox");
    if (r == 0 && from_sandbox)
        r = access_to(from_sandbox, &own, &access[0], err);
    if (r == 0 && to_sandbox)
        r = access_to(to_sandbox, &own, &access[1], err);
    if (r < 0)
        return r;
    source.access = from_sandbox ? &access[0] : NULL;
    target.access = to_sandbox ? &access[1] : NULL;
    const struct files_limits limits = limits_of(&own);
    r = files_copy(&source, &target, &limits, &done, err);
    return end_tree(r, &done, count, err);
}

int carrel_files_copy_stream(struct carrel_sandbox *sandbox, const char *to, int in,
        const struct carrel_files_options *options, struct carrel_files_count *count,
        struct carrel_error *err)
{
    struct files_count done = { 0 };
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = begin_tree(sandbox, options, count, &own, &access, err);
    if (r < 0)
        return r;
    const struct files_end target = { .access = &access, .path = to };
    const struct files_limits limits = limits_of(&own);
    r = files_copy_stream(in, &target, &limits, &done, err);
    return end_tree(r, &done, count, err);
}

int carrel_files_export(struct carrel_sandbox *sandbox, const char *path, int out,
        const struct carrel_files_options *options, struct carrel_files_count *count,
        struct carrel_error *err)
{
    struct files_count done = { 0 };
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = begin_tree(sandbox, options, count, &own, &access, err);
    if (r < 0)
        return r;
    const struct files_limits limits = limits_of(&own);
    r = files_export(&access, path, out, &limits, &done, err);
    return end_tree(r, &done, count, err);
}

int carrel_files_import(struct carrel_sandbox *sandbox, const char *path, int in,
        const struct carrel_files_options *options, struct carrel_files_count *count,
        struct carrel_error *err)
{
    struct files_count done = { 0 };
    struct file_access access;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = begin_tree(sandbox, options, count, &own, &access, err);
    if (r < 0)
        return r;
    const struct files_limits limits = limits_of(&own);
    r = files_import(&access, path, in, &limits, &done, err);
    return end_tree(r, &done, count, err);
}

/* --- watch --- */

/* Its connection is its own: events of the sandbox must not go to other users of the handle. */
int carrel_watch_open(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options, struct carrel_watch **out,
        struct carrel_error *err)
{
    const struct carrel_files_options may = { .is_recursive = true };
    struct file_access access = FILE_ACCESS_INIT;
    struct carrel_files_options own;

    err = ERR_OR_IGNORED(err);
    int r = take_options(options, may, &own, err);
    if (r == 0)
        r = client_file_access(carrel_sandbox_id(sandbox), &access, err);
    if (r < 0)
        return r == -ENOENT ? err_set(err, -ESRCH, "the sandbox has ended") : r;
    access.has_user = own.has_user;
    access.uid = own.uid;
    access.gid = own.gid;
    r = files_watch_open(&access, path, own.is_recursive, out, err);
    file_access_close(&access); /* on success there is nothing left of it */
    return outcome(r, err);
}
