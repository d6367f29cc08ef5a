/* workspace_print.c - one way to print a workspace, one to write it as JSON. */
#include "cli/print/workspace_print.h"
#include "base/json.h"
#include "base/str.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

const char *workspace_age(int64_t created_s, char text[static SPAN_MAX])
{
    const int64_t age = (int64_t)time(NULL) - created_s;

    return span_text(age < 0 ? 0 : (uint64_t)age, text); /* the clock was set back */
}

const char *workspace_size(uint64_t bytes, char text[static 16])
{
    static const char *const units[] = { "bytes", "KB", "MB", "GB", "TB" };
    size_t unit = 0;
    double n = (double)bytes;

    while (n >= 1000 && unit < ARRAY_LEN(units) - 1) {
        n /= 1024;
        unit++;
    }
    (void)snprintf(text, 16, unit > 1 && n < 100 ? "%.1f %s" : "%.0f %s", n, units[unit]);
    return text;
}

const char *workspace_state_text(const struct carrel_workspace_info *info, char text[static 64])
{
    (void)snprintf(text, 64, "%s%s%s", carrel_workspace_state_name(info->state),
            info->is_locked ? ",locked" : "", info->is_open ? ",open" : "");
    return text;
}

const char *workspace_tree_name(enum carrel_tree tree)
{
    return tree == CARREL_TREE_COPY ? "copy" : "overlay";
}

void workspace_put(const char *text)
{
    char shown[4 * PATH_MAX];

    (void)fputs(str_escape(text, strlen(text), shown, sizeof(shown)), stdout);
}

void workspace_put_summary(const struct carrel_workspace_changes *s, uint64_t n_other_commits)
{
    if (s->n_files == 0 && s->n_commits == 0) {
        (void)fputs(n_other_commits == 0 ? "nothing changed" : "no files changed", stdout);
        return;
    }
    printf("%zu file%s changed, +%" PRIu64 " -%" PRIu64, s->n_files, s->n_files == 1 ? "" : "s",
            s->added, s->removed);
    if (s->n_commits > 0)
        printf(", %" PRIu64 " commit%s", s->n_commits, s->n_commits == 1 ? "" : "s");
    if (s->is_rewritten)
        (void)fputs(", history rewritten", stdout);
}

void workspace_write_name(struct json *json, const struct carrel_workspace_info *info)
{
    json_str(json, "name", info->name);
    json_str(json, "run", info->run);
    json_str(json, "task", info->task);
}

void workspace_write(struct json *json, const struct carrel_workspace_info *info)
{
    workspace_write_name(json, info);
    json_str(json, "state", carrel_workspace_state_name(info->state));
    json_str(json, "branch", info->branch);
    json_str(json, "base", info->base);
    json_str(json, "tip", info->tip);
    json_str(json, "snapshot", info->snapshot);
    json_str(json, "repository", info->repository);
    json_str(json, "top", info->top);
    json_str(json, "path", info->path);
    json_str(json, "tree", workspace_tree_name(info->tree));
    json_bool(json, "folder", info->is_folder);
    json_bool(json, "locked", info->is_locked);
    json_bool(json, "open", info->is_open);
    json_bool(json, "committed", info->is_committed);
    json_u64(json, "other_commits", info->n_other_commits);
    json_i64(json, "created", info->created_s);
    json_str(json, "note", info->note);
}

void workspace_write_summary(
        struct json *json, const char *key, const struct carrel_workspace_changes *changes)
{
    json_object(json, key);
    json_u64(json, "added", changes->added);
    json_u64(json, "removed", changes->removed);
    json_u64(json, "commits", changes->n_commits);
    json_bool(json, "rewritten", changes->is_rewritten);
    json_array(json, "files");
    for (size_t i = 0; i < changes->n_files; i++) {
        const struct carrel_workspace_file *file = changes->files[i];
        json_object(json, NULL);
        json_str(json, "path", file->path);
        json_bytes(json, "status", &file->status, 1);
        json_bool(json, "binary", file->is_binary);
        json_u64(json, "added", file->added);
        json_u64(json, "removed", file->removed);
        json_str(json, "sensitive", file->sensitive);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}
