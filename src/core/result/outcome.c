/* outcome.c - what became of a workspace, as JSON and as text. */
#include "core/result/outcome.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define FILES_IN_JSON 1000U
#define LINES_IN_TEXT 8U

void outcome_free(struct outcome *outcome)
{
    if (!outcome)
        return;
    harvest_summary_finish(&outcome->summary);
    if (outcome->applied.top)
        apply_outcome_finish(&outcome->applied);
    oddities_free(outcome->oddities, outcome->n_oddities);
    free(outcome->path);
    free(outcome);
}

bool outcome_is_unread(const struct outcome *outcome)
{
    return outcome->unread.code < 0;
}

void outcome_write_count(
        const struct outcome *outcome, struct json *json, const char *key, uint64_t n)
{
    if (outcome_is_unread(outcome))
        json_null(json, key);
    else
        json_u64(json, key, n);
}

static void write_files(const struct outcome *outcome, struct json *json)
{
    const struct harvest_summary *summary = &outcome->summary;
    size_t n = summary->n_files < FILES_IN_JSON ? summary->n_files : FILES_IN_JSON;

    json_array(json, "files");
    for (size_t i = 0; i < n; i++) {
        const struct harvest_file *file = &summary->files[i];
        const char status[2] = { file->status, '\0' };
        json_object(json, NULL);
        json_str(json, "path", file->path);
        json_str(json, "status", status);
        if (file->is_binary) {
            json_null(json, "added");
            json_null(json, "removed");
        } else {
            json_u64(json, "added", file->added);
            json_u64(json, "removed", file->removed);
        }
        json_str(json, "sensitive", file->sensitive);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_oddities(const struct outcome *outcome, struct json *json)
{
    json_array(json, "left_out");
    for (size_t i = 0; i < outcome->n_oddities && i < FILES_IN_JSON; i++) {
        json_object(json, NULL);
        json_str(json, "path", outcome->oddities[i].path);
        json_str(json, "why", oddity_text(outcome->oddities[i].kind));
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_conflicts(const struct outcome *outcome, struct json *json)
{
    json_array(json, "conflicts");
    for (size_t i = 0; i < outcome->applied.n_conflicts; i++) {
        json_object(json, NULL);
        json_str(json, "path", outcome->applied.conflicts[i].path);
        json_str(json, "why", outcome->applied.conflicts[i].why);
        json_end_object(json);
    }
    json_end_array(json);
}

void outcome_write_json(const struct outcome *outcome, const char *run, struct json *json)
{
    const struct harvest_summary *summary = &outcome->summary;
    char name[2 * NAME_ID_MAX + 2];

    (void)snprintf(name, sizeof(name), "%s/%s", outcome->task, run);
    json_str(json, "name", name);
    json_str(json, "run", run);
    json_str(json, "directory", outcome->path);
    json_str(json, "branch", outcome->branch[0] ? outcome->branch : NULL);
    json_str(json, "base", outcome->base);
    json_str(json, "tip", outcome->tip[0] ? outcome->tip : NULL);
    json_str(json, "snapshot", outcome->snapshot[0] ? outcome->snapshot : NULL);
    json_str(json, "tree", outcome->tree);
    json_str(json, "state", outcome->state);
    json_str(json, "unread", outcome_is_unread(outcome) ? outcome->unread.message : NULL);
    outcome_write_count(outcome, json, "changed", summary->n_files);
    outcome_write_count(outcome, json, "added", summary->added);
    outcome_write_count(outcome, json, "removed", summary->removed);
    outcome_write_count(outcome, json, "commits", summary->n_commits);
    outcome_write_count(outcome, json, "other_commits", outcome->n_other_commits);
    outcome_write_count(outcome, json, "sensitive", summary->n_sensitive);
    if (outcome_is_unread(outcome))
        json_null(json, "rewritten");
    else
        json_bool(json, "rewritten", summary->is_rewritten);
    write_files(outcome, json);
    write_oddities(outcome, json);
    write_conflicts(outcome, json);
}

static void write_path(struct buf *text, const char *mark, const char *path, const char *why)
{
    char shown[512];

    buf_addf(text, "  %s %s  (%s)\n", mark,
            str_escape(path, strlen(path), shown, sizeof(shown)), why);
}

static void write_listed(const struct outcome *outcome, struct buf *text)
{
    const struct harvest_summary *summary = &outcome->summary;
    size_t shown = 0;

    for (size_t i = 0; i < summary->n_files; i++)
        if (summary->files[i].sensitive && shown++ < LINES_IN_TEXT)
            write_path(text, "!", summary->files[i].path, summary->files[i].sensitive);
    if (shown > LINES_IN_TEXT)
        buf_addf(text, "  ! and %zu more files that the host could execute\n",
                shown - LINES_IN_TEXT);
    for (size_t i = 0; i < outcome->n_oddities && i < LINES_IN_TEXT; i++)
        write_path(
                text, "?", outcome->oddities[i].path, oddity_text(outcome->oddities[i].kind));
    for (size_t i = 0; i < outcome->applied.n_conflicts && i < LINES_IN_TEXT; i++)
        write_path(text, "x", outcome->applied.conflicts[i].path,
                outcome->applied.conflicts[i].why);
}

void outcome_write_text(const struct outcome *outcome, const char *run, struct buf *text)
{
    const struct harvest_summary *summary = &outcome->summary;

    if (outcome_is_unread(outcome)) {
        buf_addf(text,
                "workspace %s: kept, not read: %s; 'carrel workspace diff %s' tries again\n",
                run, outcome->unread.message, run);
    } else if (strcmp(outcome->state, "discarded") == 0) {
        buf_addf(text, "workspace %s: discarded\n", run);
    } else if (summary->n_files == 0 && summary->n_commits == 0) {
        buf_addf(text, "workspace %s: no%s changed\n", run,
                outcome->n_other_commits == 0 ? "thing" : " files");
    } else {
        buf_addf(text, "workspace %s: %zu file%s changed, +%" PRIu64 " -%" PRIu64, run,
                summary->n_files, summary->n_files == 1 ? "" : "s", summary->added,
                summary->removed);
        buf_addf(text, ", %" PRIu64 " commit%s", summary->n_commits,
                summary->n_commits == 1 ? "" : "s");
        buf_addf(text, "%s\n", summary->is_rewritten ? ", history rewritten" : "");
    }
    if (strcmp(outcome->tree, workspace_mode_name(WORKSPACE_OVERLAY)) != 0)
        buf_add_str(text, "  its tree is a whole copy, not an overlay\n");
    if (outcome->n_other_commits > 0)
        buf_addf(text,
                "  also %" PRIu64 " commit%s on other branches or in the stash; %s in the "
                "workspace (carrel workspace shell %s)\n",
                outcome->n_other_commits, outcome->n_other_commits == 1 ? "" : "s",
                outcome->n_other_commits == 1 ? "it stays" : "they stay", run);
    write_listed(outcome, text);
    if (outcome->no_branch.code < 0)
        buf_addf(text, "  its commits are on no branch: %s\n", outcome->no_branch.message);
    if (strcmp(outcome->state, "committed") == 0)
        buf_addf(text, "committed to branch %s\n", outcome->branch);
    else if (outcome->has_branch)
        buf_addf(text, "  its commits are on branch %s\n", outcome->branch);
    if (strcmp(outcome->state, "applied") == 0)
        buf_add_str(text, "applied to your files, uncommitted\n");
    else if (strcmp(outcome->state, "conflict") == 0)
        buf_add_str(text, "not applied: the files above conflict; nothing was changed\n");
    if (summary->n_files > 0 && strcmp(outcome->state, "kept") == 0)
        buf_addf(text, "  carrel workspace diff %s | apply %s | discard %s\n", run, run, run);
}
