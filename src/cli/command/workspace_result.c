/* workspace_result.c - carrel workspace commit, apply, merge, cherry-pick, discard, prune:
 * what becomes of a run's work. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/args/workspace_args.h"
#include "cli/command/workspace.h"
#include "cli/print/report.h"
#include "cli/print/workspace_print.h"
#include <errno.h>
#include <stdio.h>

#define JSON_MAX (SIZE_MAX / 4)
#define WORDS_MAX 600

DEFINE_AUTO(struct carrel_apply_outcome *, carrel_apply_outcome_free)

int verb_commit(const struct subcommand_args *args)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    const char *message = workspace_args_of(args)->message;
    struct carrel_error err = { 0 };
    AUTO(carrel_free) char *commit = NULL;
    char text[WORDS_MAX];

    int r = verb_find(args, &workspace, &err);
    if (r == 0)
        r = carrel_workspace_commit(workspace, message, &commit, &err);
    if (r < 0)
        return report_fail(args->is_json, &err);
    if (message && r == 0)
        (void)fputs("carrel: note: everything was committed already with another message; "
                    "--message is not used\n",
                stderr);
    const char *name = verb_name(workspace);
    (void)snprintf(text, sizeof(text), "%s is on its branch: commit %s", name, commit);
    return report_done(
            args->is_json, text, (const char *[]){ "name", name, "commit", commit, NULL });
}

/* All but the plain apply have put the work on its branch by then, as they say they do. */
static void conflict_words(
        const char *name, enum carrel_apply how, size_t n, char *text, size_t size)
{
    (void)snprintf(text, size,
            "%zu conflict%s, and %s; commit or move your own changes to these paths, or use "
            "'carrel workspace patch %s'",
            n, n == 1 ? "" : "s",
            how == CARREL_APPLY_FILES
                    ? "nothing was changed"
                    : "the changes are on the run's branch, but nothing of yours was changed",
            name);
}

static int print_outcome_json(const char *name, enum carrel_apply how,
        const struct carrel_apply_outcome *outcome, int status)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };
    char words[WORDS_MAX];

    conflict_words(name, how, outcome->n_conflicts, words, sizeof(words));
    json_object(&json, NULL);
    json_bool(&json, "ok", status == 0);
    json_str(&json, "error", status == 0 ? NULL : words);
    json_str(&json, "name", name);
    json_u64(&json, "files", outcome->n_files);
    json_u64(&json, "submodules", outcome->n_submodules);
    json_str(&json, "commit", outcome->commit);
    json_str(&json, "top", outcome->top);
    json_str(&json, "branch", outcome->branch);
    json_array(&json, "conflicts");
    for (size_t i = 0; i < outcome->n_conflicts; i++) {
        json_object(&json, NULL);
        json_str(&json, "path", outcome->conflicts[i]->path);
        json_str(&json, "why", outcome->conflicts[i]->why);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    return report_print_json(&text, status);
}

static int print_conflicts(
        const char *name, enum carrel_apply how, const struct carrel_apply_outcome *outcome)
{
    for (size_t i = 0; i < outcome->n_conflicts; i++) {
        workspace_put(outcome->conflicts[i]->path);
        printf(": %s\n", outcome->conflicts[i]->why);
    }
    int status = report_finish(STATUS_CONFLICT);
    char words[WORDS_MAX];
    conflict_words(name, how, outcome->n_conflicts, words, sizeof(words));
    (void)fprintf(stderr, "carrel: %s\n", words);
    return status;
}

/* " in /home/me/project (branch main)" */
static void put_target(const struct carrel_apply_outcome *outcome)
{
    (void)fputs(" in ", stdout);
    workspace_put(outcome->top);
    if (!outcome->branch)
        return;
    (void)fputs(" (branch ", stdout);
    workspace_put(outcome->branch);
    (void)putchar(')');
}

static void print_outcome(
        const char *name, enum carrel_apply how, const struct carrel_apply_outcome *outcome)
{
    const char *plural = outcome->n_files == 1 ? "" : "s";

    if (outcome->n_files == 0 && outcome->n_submodules == 0 && !outcome->commit) {
        printf("nothing to do: %s has no change that your files lack\n", name);
        return;
    }
    static const char *const done[] = {
        [CARREL_APPLY_FILES] = "changed",
        [CARREL_APPLY_MERGE] = "merged: changed",
        [CARREL_APPLY_SQUASH] = "staged changes to",
        [CARREL_APPLY_CHERRY_PICK] = "picked: changed",
    };
    printf("%s %zu file%s", done[how], outcome->n_files, plural);
    put_target(outcome);
    if (how == CARREL_APPLY_FILES)
        (void)puts("; nothing is staged or committed");
    else if (how == CARREL_APPLY_SQUASH)
        (void)puts("; 'git commit' takes them");
    else
        printf(", HEAD is %s\n", outcome->commit);
    if (outcome->n_submodules > 0)
        printf("%zu submodule%s moved: 'git submodule update' checks %s out there\n",
                outcome->n_submodules, outcome->n_submodules == 1 ? "" : "s",
                outcome->n_submodules == 1 ? "it" : "them");
}

static int apply(const struct subcommand_args *args, enum carrel_apply how)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    AUTO(carrel_apply_outcome_free) struct carrel_apply_outcome *outcome = NULL;
    struct carrel_apply_options options = CARREL_APPLY_OPTIONS_INIT;
    struct carrel_error err = { 0 };

    options.how = how;
    options.repo = workspace_args_of(args)->repo;
    options.here = ".";
    if (carrel_workspace_find(args->words[0], options.repo, &workspace, &err) < 0 ||
            carrel_workspace_apply(workspace, &options, &outcome, &err) < 0)
        return report_fail(args->is_json, &err);
    const char *name = verb_name(workspace);
    const bool has_conflicts = outcome->n_conflicts > 0;
    if (args->is_json)
        return print_outcome_json(name, how, outcome, has_conflicts ? STATUS_CONFLICT : 0);
    if (has_conflicts)
        return print_conflicts(name, how, outcome);
    print_outcome(name, how, outcome);
    return report_finish(0);
}

int verb_apply(const struct subcommand_args *args)
{
    const struct workspace_args *own = workspace_args_of(args);
    struct carrel_error err = { 0 };

    if (own->is_squash && own->is_merge) {
        (void)err_set(&err, -EINVAL, "--squash and --merge cannot be combined");
        return report_fail(args->is_json, &err);
    }
    if (own->is_squash)
        return apply(args, CARREL_APPLY_SQUASH);
    return apply(args, own->is_merge ? CARREL_APPLY_MERGE : CARREL_APPLY_FILES);
}

int verb_merge(const struct subcommand_args *args)
{
    return apply(args, CARREL_APPLY_MERGE);
}

int verb_cherry_pick(const struct subcommand_args *args)
{
    return apply(args, CARREL_APPLY_CHERRY_PICK);
}

/* What `discard` and `prune` have done, for JSON. */
struct removal {
    struct buf text;
    struct json json;
    const struct workspace_args *args;
    bool is_json;
    size_t n;
};

static void begin_removal(struct removal *removal, const struct subcommand_args *args)
{
    *removal = (struct removal){
        .text = BUF_INIT(JSON_MAX), .args = workspace_args_of(args), .is_json = args->is_json
    };
    removal->json.out = &removal->text;
    json_object(&removal->json, NULL);
    json_array(&removal->json, "discarded");
}

/* `given` is NULL for one that was found already. */
static void discard_one(
        struct removal *removal, const char *given, struct carrel_workspace *found, int *status)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = found;
    struct carrel_error err = { 0 };

    int r = workspace ? 0 : carrel_workspace_find(given, NULL, &workspace, &err);
    const char *name = r < 0 ? given : verb_name(workspace);
    if (r == 0)
        r = carrel_workspace_discard(workspace,
                removal->args->is_forced ? CARREL_DISCARD_FORCE : CARREL_DISCARD_SAVED, &err);
    if (removal->is_json) {
        json_object(&removal->json, NULL);
        json_str(&removal->json, "name", name);
        json_bool(&removal->json, "ok", r == 0);
        json_str(&removal->json, "error", r < 0 ? err.message : NULL);
        json_end_object(&removal->json);
    }
    if (r < 0) {
        *status = report_error(STATUS_FAILED, &err);
    } else if (!removal->is_json) {
        (void)fputs("discarded ", stdout);
        workspace_put(name);
        (void)putchar('\n');
    }
}

static int end_removal(struct removal *removal, int status)
{
    if (!removal->is_json) {
        status = report_finish(status);
    } else {
        json_end_array(&removal->json);
        json_bool(&removal->json, "ok", status == 0);
        json_end_object(&removal->json);
        status = report_print_json(&removal->text, status);
    }
    buf_finish(removal->text);
    return status;
}

int verb_discard(const struct subcommand_args *args)
{
    const struct workspace_args *own = workspace_args_of(args);
    struct carrel_error err = { 0 };
    struct carrel_workspace *only = NULL;
    struct removal removal;
    int status = 0;

    if (args->n_words == 0 && own->is_forced) {
        (void)err_set(&err, -EINVAL, "--force needs a NAME: what it removes is lost for good");
        return report_fail(args->is_json, &err);
    }
    if (args->n_words == 0 && verb_find(args, &only, &err) < 0)
        return report_fail(args->is_json, &err);
    begin_removal(&removal, args);
    if (only)
        discard_one(&removal, NULL, only, &status);
    for (size_t i = 0; i < args->n_words; i++)
        discard_one(&removal, args->words[i], NULL, &status);
    return end_removal(&removal, status);
}

static int on_pruned(const struct carrel_workspace_info *info, void *context)
{
    struct removal *removal = context;
    char age[16];

    removal->n++;
    if (removal->is_json) {
        json_object(&removal->json, NULL);
        workspace_write(&removal->json, info);
        json_end_object(&removal->json);
    } else {
        printf("%s %s (%s old)\n", removal->args->is_dry_run ? "would discard" : "discarded",
                info->name, workspace_age(info->created_s, age));
    }
    return 0;
}

int verb_prune(const struct subcommand_args *args)
{
    const struct workspace_args *own = workspace_args_of(args);
    struct carrel_workspace_prune_options options = CARREL_WORKSPACE_PRUNE_OPTIONS_INIT;
    struct carrel_error err = { 0 };
    struct removal removal;

    options.dir = own->is_all ? NULL : ".";
    options.older_than_s = own->older_than_s;
    options.is_dry_run = own->is_dry_run;
    begin_removal(&removal, args);
    int r = carrel_workspace_prune(&options, on_pruned, &removal, &err);
    if (r == -ENOENT && !own->is_all)
        (void)err_set(&err, -ENOENT,
                "the current directory is in no git repository; --all prunes the workspaces of "
                "every one");
    int status = r < 0 ? report_error(STATUS_FAILED, &err) : 0;
    if (status == 0 && removal.n == 0 && !args->is_json)
        (void)puts("nothing to prune");
    return end_removal(&removal, status);
}
