/*
 * review.c - lets a program work on a git repository, shows what it changed, and applies that
 * if it touched only what it was asked to.
 *
 *     cc review.c $(pkg-config --cflags --libs carrel) -o review
 *     ./review REPOSITORY FILE PROGRAM [ARG...]
 */
#include <carrel/carrel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct carrel_error err;

static void must(int r, const char *what)
{
    if (r >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, err.message);
    exit(1);
}

/* Runs it in a workspace of its own: nothing reaches the user's files yet. */
static void work(const char *repo, const char *const *argv)
{
    struct carrel_workspace_options workspace = CARREL_WORKSPACE_OPTIONS_INIT;
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;

    workspace.repo = repo;
    workspace.run = "review";
    options.argv = argv;
    options.workspace = &workspace;
    options.stderr_fd = 2;
    must(carrel_run(&options, &result, &err), "run");
    if (carrel_run_result_status(result) != 0)
        fprintf(stderr, "the program ended with status %d\n", carrel_run_result_status(result));
    carrel_run_result_free(result);
}

/* Whether the run changed that file and no other. */
static bool changed_only(const struct carrel_workspace *workspace, const char *file)
{
    struct carrel_workspace_report *report = NULL;

    must(carrel_workspace_report(workspace, &report, &err), "report");
    bool is_it =
            report->total->n_files == 1 && strcmp(report->total->files[0]->path, file) == 0;
    carrel_workspace_report_free(report);
    return is_it;
}

static int check(const struct carrel_journal_verdict *verdict, void *context)
{
    (void)context;
    printf("journal: %s\n", carrel_record_state_name(verdict->state));
    return 0;
}

int main(int argc, char **argv)
{
    struct carrel_workspace *workspace = NULL;
    struct carrel_apply_outcome *outcome = NULL;

    if (argc < 4) {
        fprintf(stderr, "usage: review REPOSITORY FILE PROGRAM [ARG...]\n");
        return 2;
    }
    work(argv[1], (const char *const *)argv + 3);
    must(carrel_workspace_find("review", argv[1], &workspace, &err), "find");
    must(carrel_workspace_diff(workspace, NULL, 1, &err), "diff");

    bool is_applied = changed_only(workspace, argv[2]);
    if (is_applied) {
        must(carrel_workspace_apply(workspace, NULL, &outcome, &err), "apply");
        printf("applied %zu file(s)\n", outcome->n_files);
        carrel_apply_outcome_free(outcome);
    } else {
        printf("it changed more than %s: discarded\n", argv[2]);
    }
    must(carrel_workspace_discard(workspace, CARREL_DISCARD_FORCE, &err), "discard");
    must(carrel_journal_verify(carrel_workspace_info(workspace)->name, NULL, check, NULL, &err),
            "journal");
    carrel_workspace_free(workspace);
    return is_applied ? 0 : 1;
}
