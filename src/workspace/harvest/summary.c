/* summary.c - the difference between two commits, counted and classified for a reviewer. */
#include "base/err.h"
#include "base/str.h"
#include "git/name.h"
#include "git/sensitive.h"
#include "workspace/harvest/difftree.h"
#include "workspace/harvest/harvest.h"
#include "workspace/harvest/quarantine.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counting {
    struct harvest_summary summary;
    size_t room;
    size_t next_lines; /* the file that the next line counts belong to */
    uint64_t path_bytes;
    const struct harvest_limits *limits;
};

static void counting_finish(struct counting counting)
{
    harvest_summary_finish(&counting.summary);
}
DEFINE_AUTO(struct counting, counting_finish)

void harvest_summary_finish(struct harvest_summary *summary)
{
    for (size_t i = 0; i < summary->n_files; i++)
        free(summary->files[i].path);
    free(summary->files);
    *summary = (struct harvest_summary){ 0 };
}

static struct harvest_file *more_room(struct counting *counting)
{
    struct harvest_summary *summary = &counting->summary;

    if (summary->n_files == counting->room) {
        size_t room = counting->room ? 2 * counting->room : 64;
        struct harvest_file *files = reallocarray(summary->files, room, sizeof(*files));
        if (!files)
            return NULL;
        summary->files = files;
        counting->room = room;
    }
    return &summary->files[summary->n_files];
}

static int add_file(void *context, const struct difftree_entry *entry, struct carrel_error *err)
{
    struct counting *counting = context;
    struct harvest_summary *summary = &counting->summary;

    counting->path_bytes += strlen(entry->path);
    if (summary->n_files >= counting->limits->max_paths ||
            counting->path_bytes > counting->limits->max_path_bytes)
        return err_set(err, -EFBIG, "more than %zu paths differ", summary->n_files);
    struct harvest_file *file = more_room(counting);
    char *path = file ? strdup(entry->path) : NULL;
    if (!path)
        return err_set_errno(err, -ENOMEM, "list the changes");

    *file = (struct harvest_file){
        .path = path,
        .status = entry->status,
        .sensitive = sensitive_why(path),
    };
    summary->n_files++;
    summary->n_sensitive += file->sensitive != NULL;
    return 0;
}

static int add_lines(
        void *context, const struct difftree_lines *lines, struct carrel_error *err)
{
    struct counting *counting = context;
    struct harvest_summary *summary = &counting->summary;

    /* git leaves out files whose mode alone changed. */
    while (counting->next_lines < summary->n_files &&
            strcmp(summary->files[counting->next_lines].path, lines->path) != 0)
        counting->next_lines++;
    if (counting->next_lines == summary->n_files)
        return err_set(err, -EPROTO, "git diff-tree counted the lines of an unknown file");
    struct harvest_file *file = &summary->files[counting->next_lines++];
    file->is_binary = lines->is_binary;
    file->added = lines->added;
    file->removed = lines->removed;
    summary->added += lines->added;
    summary->removed += lines->removed;
    return 0;
}

/* "<only in base>\t<only in tip>": if tip descends from base, the first is 0. */
static int count_commits(const struct git *git, const char *base, const char *tip,
        const struct harvest_limits *limits, struct harvest_summary *summary,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf output = BUF_INIT(128);
    struct git_io io = GIT_IO_INIT;
    char range[2 * OID_MAX + 4];
    uint64_t lost;

    (void)snprintf(range, sizeof(range), "%s...%s", base, tip);
    io.output = &output;
    io.timeout_ms = limits->timeout_ms;
    io.max_memory_bytes = limits->max_memory_bytes;
    int r = git_expect(git,
            GIT_ARGS(QUARANTINE_GIT, "rev-list", "--count", "--left-right", range, "--"), &io,
            err);
    if (r < 0)
        return r;
    char *tab = output.data ? strchr(output.data, '\t') : NULL;
    if (tab)
        *tab = '\0';
    if (!tab || str_parse_u64(output.data, &lost) < 0 ||
            str_parse_u64(tab + 1, &summary->n_commits) < 0)
        return err_set(err, -EPROTO, "git rev-list did not print two numbers");
    summary->is_rewritten = lost > 0;
    return 0;
}

int harvest_summarize(const struct repo *repo, const char *dir, const char *base,
        const char *tip, const struct harvest_limits *limits, struct harvest_summary *out,
        struct carrel_error *err)
{
    AUTO(counting_finish) struct counting counting = { .limits = limits };
    const struct git git = harvest_git(repo, dir);
    const struct difftree difftree = {
        .from = base,
        .to = tip,
        .each = add_file,
        .lines = add_lines,
        .context = &counting,
        .timeout_ms = limits->timeout_ms,
        .max_memory_bytes = limits->max_memory_bytes,
    };

    if (!name_is_oid(base) || !name_is_oid(tip))
        return err_set(err, -EINVAL, "the name of a commit is 40 or 64 hex digits");
    if (strcmp(base, tip) != 0) {
        int r = count_commits(&git, base, tip, limits, &counting.summary, err);
        if (r == 0)
            r = difftree_run(&git, &difftree, err);
        if (r < 0)
            return err_wrap(err, r, "compare %.12s with %.12s", base, tip);
    }
    *out = counting.summary;
    counting.summary = (struct harvest_summary){ 0 };
    return 0;
}
