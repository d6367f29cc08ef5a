/* policy.c - carrel policy show, check and init. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/args/options.h"
#include "cli/args/subcommands.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <carrel/policy.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

DEFINE_AUTO(struct carrel_policy *, carrel_policy_free)

struct policy_args {
    struct subcommand_args common;
    const char *policy;
    const char *profile;
};

static int take_policy(void *target, const char *value, struct carrel_error *err)
{
    if (!value[0])
        return err_set(err, -EINVAL, "expected a file, or none");
    ((struct policy_args *)target)->policy = value;
    return 0;
}

static int take_profile(void *target, const char *value, struct carrel_error *err)
{
    if (!value[0])
        return err_set(err, -EINVAL, "expected the name of a profile");
    ((struct policy_args *)target)->profile = value;
    return 0;
}

/* ---- show ---- */

static const char *safe(const char *text, char *out, size_t size)
{
    return str_escape(text, strlen(text), out, size);
}

/* A value as one line; every list and text of a file may hold anything. */
static void add_value(struct buf *out, const struct carrel_policy_value *value)
{
    char shown[512];

    if (!value) {
        buf_add_str(out, "-");
    } else if (value->list) {
        buf_add_str(out, "[");
        for (size_t i = 0; value->list[i]; i++)
            buf_addf(
                    out, "%s%s", i > 0 ? ", " : "", safe(value->list[i], shown, sizeof(shown)));
        buf_add_str(out, "]");
    } else {
        buf_add_str(out, safe(value->text, shown, sizeof(shown)));
    }
}

enum { KEY_WIDTH = 27, VALUE_WIDTH = 26, MAXIMUM_WIDTH = 8 };

/* How much of the text fits the column: up to a comma, or all that is left of one word. */
static size_t column_len(const char *text)
{
    size_t fits = 0;

    for (size_t at = 0; text[at] && (at < VALUE_WIDTH || fits == 0); at++)
        if (text[at] == ',' && text[at + 1] == ' ')
            fits = at + 1;
    return strlen(text) <= VALUE_WIDTH || fits == 0 ? strlen(text) : fits;
}

static void add_position(
        struct buf *out, const char *label, const struct carrel_policy_value *value)
{
    char shown[1600];

    buf_addf(out, "%s%s", label, safe(value->from, shown, sizeof(shown)));
}

/* Where the value is from; and where the maximum, if that is another file. */
static void add_positions(struct buf *out, const struct carrel_policy_key *key)
{
    const struct carrel_policy_value *value = key->value;
    const struct carrel_policy_value *maximum = key->maximum;

    if (value)
        add_position(out, "", value);
    else
        buf_add_str(out, "-");
    if (maximum && (!value || !value->name || strcmp(value->name, maximum->name) != 0))
        add_position(out, "; maximum: ", maximum);
}

static int print_key(const struct carrel_policy_key *key, void *context)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    AUTO(buf_finish) struct buf bound = BUF_INIT(64U << 10);
    AUTO(buf_finish) struct buf from = BUF_INIT(64U << 10);

    (void)context;
    add_value(&text, key->value);
    add_value(&bound, key->maximum);
    add_positions(&from, key);
    if (text.is_short || bound.is_short || from.is_short)
        return -ENOMEM;
    size_t len = column_len(text.data);
    printf("%c %-*s %-*.*s %-*s %s\n", key->is_built_in ? ' ' : '*', KEY_WIDTH, key->name,
            VALUE_WIDTH, (int)len, text.data, MAXIMUM_WIDTH, bound.data, from.data);
    for (const char *rest = text.data + len; *rest; rest += len) {
        rest += strspn(rest, " ");
        len = column_len(rest);
        printf("  %-*s %.*s\n", KEY_WIDTH, "", (int)len, rest);
    }
    return 0;
}

static int print_file(const struct carrel_policy_file *file, void *context)
{
    size_t *n = context;
    char shown[800];

    (*n)++;
    printf("%s: %s (%s)\n", file->gives_values ? "values and bounds" : "bounds only",
            safe(file->name, shown, sizeof(shown)), file->authority);
    return 0;
}

static int print_text(const struct carrel_policy *policy)
{
    size_t n_files = 0;

    (void)carrel_policy_file_each(policy, print_file, &n_files, NULL);
    if (n_files == 0)
        (void)puts("no policy file found: all values are built in or from the environment");
    printf("hash: %s\n\n  %-*s %-*s %-*s %s\n", carrel_policy_hash(policy), KEY_WIDTH, "key",
            VALUE_WIDTH, "value", MAXIMUM_WIDTH, "maximum", "from");
    int r = carrel_policy_key_each(policy, print_key, NULL, NULL);
    if (r < 0)
        return r;
    (void)puts("\n"
               "* differs from the built-in value");
    return 0;
}

static int print_json(const struct carrel_policy *policy)
{
    AUTO(carrel_free) char *text = NULL;
    struct carrel_error err = { 0 };

    if (carrel_policy_json(policy, &text, &err) < 0)
        return report_fail(true, &err);
    (void)puts(text);
    return report_finish(0);
}

static int show(const struct subcommand_args *args)
{
    const struct policy_args *own = container_of(args, const struct policy_args, common);
    struct carrel_policy_options options = CARREL_POLICY_OPTIONS_INIT;
    AUTO(carrel_policy_free) struct carrel_policy *policy = NULL;
    struct carrel_error err = { 0 };

    options.file = own->policy;
    options.profile = own->profile;
    if (carrel_policy_load(&options, &policy, &err) < 0)
        return report_fail(args->is_json, &err);
    if (args->is_json)
        return print_json(policy);
    if (print_text(policy) < 0) {
        (void)err_set_errno(&err, -ENOMEM, "policy");
        return report_fail(args->is_json, &err);
    }
    return report_finish(0);
}

/* ---- check ---- */

static int check(const struct subcommand_args *args)
{
    const char *file = args->words[0];
    struct carrel_error err = { 0 };
    char shown[800];
    char text[sizeof(shown) + 8];

    if (carrel_policy_check(file, &err) < 0)
        return report_fail(args->is_json, &err);
    (void)snprintf(text, sizeof(text), "%s: ok", safe(file, shown, sizeof(shown)));
    return report_done(args->is_json, text, (const char *[]){ "file", file, NULL });
}

/* ---- init ---- */

static int write_template(const char *path, struct carrel_error *err)
{
    const char *text = carrel_policy_template();

    AUTO(fd_close)
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0644);
    if (fd < 0 && errno == EEXIST)
        return err_set(err, -EEXIST, "'%s' exists and is not overwritten", path);
    if (fd < 0)
        return err_set_errno(err, -errno, "create '%s'", path);
    int r = fd_write_all(fd, text, strlen(text));
    if (r < 0) {
        (void)unlink(path); /* half a template could be another policy */
        return err_set_errno(err, r, "write '%s'", path);
    }
    return 0;
}

static int init(const struct subcommand_args *args)
{
    const char *path = args->n_words > 0 ? args->words[0] : "carrel.yaml";
    struct carrel_error err = { 0 };
    char shown[800];
    char text[sizeof(shown) + 80];

    if (write_template(path, &err) < 0)
        return report_fail(args->is_json, &err);
    (void)snprintf(text, sizeof(text), "wrote %s; 'carrel policy show' prints what is in force",
            safe(path, shown, sizeof(shown)));
    return report_done(args->is_json, text, (const char *[]){ "file", path, NULL });
}

/* ---- the command ---- */

static const struct option_row rows[] = {
    { "policy", "FILE", "policy file to use instead of the one found; none: built-in defaults",
            .take = take_policy },
    { "profile", "NAME", "profile of that policy", .take = take_profile },
};

static const struct subcommand verbs[] = {
    { "show", "", "print the policy in force, and where each value comes from",
            "That is the policy 'carrel run' would use in this directory and environment.", 0,
            0, OPTION_BIT(0) | OPTION_BIT(1), show, NULL },
    { "check", "FILE", "check a policy file and all its profiles",
            "The file is checked by itself, without other policy files. Exit status: 0 if it\n"
            "is correct, 125 if not.",
            1, 1, 0, check, NULL },
    { "init", "[FILE]", "write a commented policy file",
            "The default is carrel.yaml. An existing file is not overwritten.", 0, 1, 0, init,
            NULL },
};

int cmd_policy(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "policy",
        .help = "Usage: carrel policy SUBCOMMAND [options]\n\n"
                "A policy says what runs may do: runtime, limits and their maxima, network,\n"
                "mounts, variables, imports, journal. carrel-policy(5) describes the file.",
        .list = verbs,
        .n = ARRAY_LEN(verbs),
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
    };
    struct policy_args args = { 0 };

    return subcommands_run(&set, argc, argv, &args.common);
}
