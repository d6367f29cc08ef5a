/* workspace_open.c - carrel workspace open, close, move, lock, unlock, repair. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "cli/args/workspace_args.h"
#include "cli/command/workspace.h"
#include "cli/print/report.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* A path as typed is relative to the current directory. */
static int make_absolute(
        const char *given, char path[static PATH_MAX], struct carrel_error *err)
{
    char cwd[PATH_MAX];

    if (!getcwd(cwd, sizeof(cwd)))
        return err_set_errno(err, -errno, "current directory");
    return path_absolute(cwd, given, path, PATH_MAX)
                   ? 0
                   : err_set_errno(err, -ENAMETOOLONG, "'%s'", given);
}

static int done(const struct subcommand_args *args, const struct carrel_workspace *workspace,
        const char *text)
{
    return report_done(
            args->is_json, text, (const char *[]){ "name", verb_name(workspace), NULL });
}

int verb_open(const struct subcommand_args *args)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    const char *given = workspace_args_of(args)->at;
    struct carrel_error err = { 0 };
    AUTO(carrel_free) char *path = NULL;
    char at[PATH_MAX];

    if (verb_find(args, &workspace, &err) < 0 ||
            (given && make_absolute(given, at, &err) < 0) ||
            carrel_workspace_open(workspace, given ? at : NULL, &path, &err) < 0)
        return report_fail(args->is_json, &err);
    /* The path is printed unescaped: for cd "$(carrel workspace open)". */
    return report_done(args->is_json, path,
            (const char *[]){ "name", verb_name(workspace), "path", path, NULL });
}

int verb_close(const struct subcommand_args *args)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    struct carrel_error err = { 0 };

    if (verb_find(args, &workspace, &err) < 0 || carrel_workspace_close(workspace, &err) < 0)
        return report_fail(args->is_json, &err);
    return done(args, workspace, "closed; what was committed there is in the workspace");
}

int verb_move(const struct subcommand_args *args)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    const char *given = args->n_words == 2 ? args->words[0] : NULL;
    struct carrel_error err = { 0 };
    char to[PATH_MAX];

    if (carrel_workspace_find(given, NULL, &workspace, &err) < 0 ||
            make_absolute(args->words[args->n_words - 1], to, &err) < 0 ||
            carrel_workspace_move(workspace, to, &err) < 0)
        return report_fail(args->is_json, &err);
    return done(args, workspace, "moved");
}

int verb_lock(const struct subcommand_args *args)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    struct carrel_error err = { 0 };

    if (verb_find(args, &workspace, &err) < 0 ||
            carrel_workspace_lock(workspace, workspace_args_of(args)->reason, &err) < 0)
        return report_fail(args->is_json, &err);
    return done(args, workspace, "locked; 'carrel workspace unlock' undoes it");
}

int verb_unlock(const struct subcommand_args *args)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    struct carrel_error err = { 0 };

    if (verb_find(args, &workspace, &err) < 0 || carrel_workspace_unlock(workspace, &err) < 0)
        return report_fail(args->is_json, &err);
    return done(args, workspace, "unlocked");
}

int verb_repair(const struct subcommand_args *args)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 10);
    struct json json = { .out = &text };
    struct carrel_error err = { 0 };

    if (verb_find(args, &workspace, &err) < 0)
        return report_fail(args->is_json, &err);
    int mended = carrel_workspace_repair(workspace, &err);
    if (mended < 0)
        return report_fail(args->is_json, &err);
    if (!args->is_json) {
        if (mended == 0)
            (void)puts("nothing was wrong");
        else
            printf("mended %d thing%s\n", mended, mended == 1 ? "" : "s");
        return report_finish(0);
    }
    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    json_str(&json, "name", verb_name(workspace));
    json_i64(&json, "mended", mended);
    json_end_object(&json);
    return report_print_json(&text, 0);
}
