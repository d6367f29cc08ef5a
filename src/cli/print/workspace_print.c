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

const char *workspace_state_text(const struct workspace *ws, char text[static 64])
{
    (void)snprintf(text, 64, "%s%s%s", workspaces_state(ws),
            ws->is_user_locked ? ",locked" : "", ws->is_opened ? ",open" : "");
    return text;
}

void workspace_put(const char *text)
{
    char shown[4 * PATH_MAX];

    (void)fputs(str_escape(text, strlen(text), shown, sizeof(shown)), stdout);
}

void workspace_put_summary(const struct harvest_summary *s, uint64_t n_other_commits)
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

static void write_id(struct json *json, const char *key, const char *id)
{
    json_str(json, key, id[0] ? id : NULL);
}

void workspace_write_name(struct json *json, const struct workspace *ws)
{
    char name[2 * NAME_ID_MAX + 2];

    (void)snprintf(name, sizeof(name), "%s/%s", ws->task, ws->run);
    json_str(json, "name", name);
    json_str(json, "run", ws->run);
    json_str(json, "task", ws->task);
}

void workspace_write(struct json *json, const struct workspace *ws)
{
    workspace_write_name(json, ws);
    json_str(json, "state", workspaces_state(ws));
    write_id(json, "branch", ws->branch);
    write_id(json, "base", ws->base);
    write_id(json, "tip", ws->tip);
    write_id(json, "snapshot", ws->snapshot);
    json_str(json, "repository", ws->repo);
    json_str(json, "top", ws->top);
    json_str(json, "path", ws->path);
    json_str(json, "tree", workspace_mode_name(ws->mode));
    json_bool(json, "folder", ws->is_folder);
    json_bool(json, "locked", ws->is_user_locked);
    json_bool(json, "open", ws->is_opened);
    json_bool(json, "committed", ws->is_published);
    json_u64(json, "other_commits", ws->n_other_commits);
    json_i64(json, "created", ws->created_s);
    json_str(json, "note", ws->note[0] ? ws->note : NULL);
}

void workspace_write_summary(
        struct json *json, const char *key, const struct harvest_summary *summary)
{
    json_object(json, key);
    json_u64(json, "added", summary->added);
    json_u64(json, "removed", summary->removed);
    json_u64(json, "commits", summary->n_commits);
    json_bool(json, "rewritten", summary->is_rewritten);
    json_array(json, "files");
    for (size_t i = 0; i < summary->n_files; i++) {
        const struct harvest_file *file = &summary->files[i];
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
