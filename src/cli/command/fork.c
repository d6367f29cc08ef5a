/* fork.c - carrel snapshot, snapshots and fork: sandboxes from what others wrote. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/sandbox_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <carrel/sandbox.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fork_args {
    struct sandbox_args sandbox; /* first: the shared rows take it for their own */
    uint64_t n;
    bool inherits_env;
};

static int take_count(void *target, const char *value, struct carrel_error *err)
{
    uint64_t *n = &((struct fork_args *)target)->n;

    if (str_parse_u64(value, n) < 0 || *n == 0 || *n > 1024)
        return err_set(err, -EINVAL, "expected a number from 1 to 1024");
    return 0;
}

#define ROW(name, help, member) OPTION_FLAG(name, help, struct fork_args, member)

static const struct option_row fork_rows[] = {
    { "n", "N", "number of sandboxes (default: 1)", .take = take_count },
    { "label", "NAME=VALUE", "label, instead of those of ID; repeatable",
            .take = sandbox_take_label },
    ROW("inherit-env", "keep the variables given with 'create --env'", inherits_env),
    ROW("json", "print JSON and nothing else", sandbox.run.is_json),
    ROW("help", "print this text", sandbox.run.wants_help),
};

static const struct sandbox_command fork_command = {
    .usage = "carrel fork ID [-n N] [options]",
    .help = "Creates sandboxes that start with the current files of ID, and prints their ids.\n"
            "Processes and memory are not forked. If nothing runs in ID no data is copied;\n"
            "otherwise its written files are copied once. Variables of 'create --env' may be\n"
            "secrets and are inherited only with --inherit-env.",
    .rows = fork_rows,
    .n_rows = ARRAY_LEN(fork_rows),
    .min_words = 1,
    .max_words = 1,
};

/* Of sandboxes whose ids are printed at the end. */
struct receipts {
    int *list;
    size_t n;
};

struct forks {
    struct json *json; /* NULL: each id is printed as it comes */
    struct receipts receipts;
};

static void take_ready(
        const char *id, int receipt, const struct carrel_error *failure, void *context)
{
    struct forks *forks = context;

    if (failure)
        return; /* the first is reported at the end */
    if (forks->json) {
        json_str(forks->json, NULL, id);
        forks->receipts.list[forks->receipts.n++] = receipt;
    } else if (puts(id) >= 0 && fflush(stdout) == 0) {
        carrel_sandbox_received(receipt);
    } else {
        fd_close(receipt);
    }
}

/* A sandbox whose id was not printed ends with this process. */
static int print_all(struct buf *text, const struct receipts *receipts)
{
    int status = report_print_json(text, 0);

    for (size_t i = 0; status == 0 && i < receipts->n; i++)
        carrel_sandbox_received(receipts->list[i]);
    return status;
}

static int fork_it(struct fork_args *args, struct carrel_error *err)
{
    AUTO(carrel_sandbox_free) struct carrel_sandbox *sandbox = NULL;
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    struct json json = { .out = &text };
    const uint32_t n = args->n ? (uint32_t)args->n : 1;
    AUTO(free) int *list = calloc(n, sizeof(*list));
    struct forks forks = {
        .json = args->sandbox.run.is_json ? &json : NULL,
        .receipts = { .list = list },
    };

    if (!list)
        return err_set_errno(err, -ENOMEM, "fork");
    fd_raise_limit(); /* one receipt for each */
    json_object(&json, NULL);
    json_array(&json, "ids");
    const struct carrel_fork_options fork = {
        .size = sizeof(fork),
        .n = n,
        .inherits_env = args->inherits_env,
        .labels = (const char *const *)args->sandbox.labels,
        .ready = take_ready,
        .context = &forks,
    };
    int r = carrel_sandbox_open(args->sandbox.words[0], &sandbox, err);
    if (r == 0)
        r = carrel_sandbox_fork(sandbox, &fork, err);
    json_end_array(&json);
    json_str(&json, "error", r < 0 ? err->message : NULL);
    json_end_object(&json);
    if (!forks.json)
        return r;
    int status = print_all(&text, &forks.receipts);
    return r < 0 && status == 0 ? report_error(STATUS_FAILED, err) : status;
}

int cmd_fork(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct fork_args args = { 0 };

    int r = sandbox_args_parse(&args.sandbox, &fork_command, argc, argv, &err);
    int status = r == 0 ? fork_it(&args, &err) : 0;
    if (r < 0 || status < 0)
        status = report_fail(args.sandbox.run.is_json, &err);
    sandbox_args_finish(&args.sandbox);
    return report_finish(status);
}

/* --- snapshots --- */

static const struct option_row plain_rows[] = {
    OPTION_FLAG("json", "print JSON and nothing else", struct sandbox_args, run.is_json),
    OPTION_FLAG("help", "print this text", struct sandbox_args, run.wants_help),
};

static const struct sandbox_command snapshot_command = {
    .usage = "carrel snapshot ID NAME | carrel snapshot rm NAME",
    .help = "Saves the current files of a sandbox under a name for 'carrel create --from\n"
            "NAME'. If nothing runs in the sandbox no data is copied; otherwise its written\n"
            "files are copied.\n\n"
            "'rm' removes a snapshot. Sandboxes that use its files keep them.",
    .rows = plain_rows,
    .n_rows = ARRAY_LEN(plain_rows),
    .min_words = 2,
    .max_words = 2,
};

static const struct sandbox_command snapshots_command = {
    .usage = "carrel snapshots [options]",
    .help = "Lists the snapshots.",
    .rows = plain_rows,
    .n_rows = ARRAY_LEN(plain_rows),
};

static int take_snapshot(const struct sandbox_args *args, struct carrel_error *err)
{
    AUTO(carrel_sandbox_free) struct carrel_sandbox *sandbox = NULL;
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);
    struct json json = { .out = &text };
    const char *name = args->words[1];
    bool is_copied = false;

    int r = carrel_sandbox_open(args->words[0], &sandbox, err);
    if (r == 0)
        r = carrel_sandbox_snapshot(sandbox, name, &is_copied, err);
    if (r < 0)
        return r;
    const char *how = is_copied ? "copied" : "stacked";
    if (!args->run.is_json) {
        printf("%s (%s)\n", name, how);
        return 0;
    }
    json_object(&json, NULL);
    json_str(&json, "name", name);
    json_str(&json, "by", how);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int remove_snapshot(const struct sandbox_args *args, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);
    struct json json = { .out = &text };

    int r = carrel_snapshot_remove(args->words[1], err);
    if (r < 0 || !args->run.is_json)
        return r;
    json_object(&json, NULL);
    json_str(&json, "name", args->words[1]);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

int cmd_snapshot(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct sandbox_args args;

    int r = sandbox_args_parse(&args, &snapshot_command, argc, argv, &err);
    if (r == 0)
        r = strcmp(args.words[0], "rm") == 0 ? remove_snapshot(&args, &err)
                                             : take_snapshot(&args, &err);
    else if (r > 0)
        r = 0;
    int status = r < 0 ? report_fail(args.run.is_json, &err) : report_finish(r);
    sandbox_args_finish(&args);
    return status;
}

static int add_line(const struct carrel_snapshot_info *info, void *context)
{
    char size[32];

    buf_addf(context, "%-24s  %-19.19s  %6zu  %8s  %-20s  %s\n", info->name, info->created,
            info->n_layers, str_size(info->bytes, size), info->from ? info->from : "-",
            info->image ? info->image : "-");
    return 0;
}

static int add_object(const struct carrel_snapshot_info *info, void *context)
{
    struct json *json = context;

    json_object(json, NULL);
    json_str(json, "name", info->name);
    json_str(json, "created", info->created);
    json_u64(json, "layers", info->n_layers);
    json_u64(json, "bytes", info->bytes);
    json_str(json, "from", info->from);
    json_str(json, "image", info->image);
    json_end_object(json);
    return 0;
}

static int list_snapshots(const struct sandbox_args *args, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(16U << 20);
    struct json json = { .out = &text };

    if (!args->run.is_json) {
        buf_addf(&text, "%-24s  %-19s  %6s  %8s  %-20s  %s\n", "NAME", "CREATED (UTC)",
                "LAYERS", "SIZE", "FROM", "IMAGE");
        int listed = carrel_snapshot_each(add_line, &text, err);
        return listed < 0 ? listed : report_print_text(&text, 0);
    }
    json_object(&json, NULL);
    json_array(&json, "snapshots");
    int r = carrel_snapshot_each(add_object, &json, err);
    json_end_array(&json);
    json_end_object(&json);
    return r < 0 ? r : report_print_json(&text, 0);
}

int cmd_snapshots(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct sandbox_args args;

    int r = sandbox_args_parse(&args, &snapshots_command, argc, argv, &err);
    if (r == 0)
        r = list_snapshots(&args, &err);
    else if (r > 0)
        r = 0;
    int status = r < 0 ? report_fail(args.run.is_json, &err) : report_finish(r);
    sandbox_args_finish(&args);
    return status;
}
