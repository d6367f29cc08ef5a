/* image.c - carrel image: root filesystems for sandboxes. */
#include "image/image.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/options.h"
#include "cli/args/report_args.h"
#include "cli/args/subcommands.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "core/host/pull.h"
#include "core/state/state.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#define JSON_MAX (SIZE_MAX / 4)

struct image_args {
    char **words;
    size_t n_words;
    const char *state;
    const char *tag;
    bool is_insecure;
    bool is_json;
    bool wants_help;
};

static int take_tag(void *t, const char *v, struct carrel_error *err)
{
    struct image_args *args = t;

    if (!v[0])
        return err_set(err, -EINVAL, "expected the tag of an image in the source");
    args->tag = v;
    return 0;
}

/* "2026-01-31 23:59:59", UTC. */
static const char *time_text(uint64_t seconds, char text[static 32])
{
    time_t when = (time_t)seconds;
    struct tm tm;

    if (!gmtime_r(&when, &tm) || strftime(text, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        text[0] = '\0';
    return text;
}

/* "11.2M": for columns, where str_size() would be exact. */
static const char *about(uint64_t bytes, char text[static 32])
{
    static const char units[] = "KMGT";
    unsigned tenths = 0;
    int unit = -1;

    while (unit < 3 && bytes >= 1024) {
        tenths = (unsigned)(bytes % 1024 * 10 / 1024);
        bytes /= 1024;
        unit++;
    }
    if (unit < 0)
        (void)snprintf(text, 32, "%" PRIu64, bytes);
    else
        (void)snprintf(text, 32, "%" PRIu64 ".%u%c", bytes, tenths, units[unit]);
    return text;
}

static const char *escaped(const char *text, char *out, size_t size)
{
    return str_escape(text, strlen(text), out, size);
}

/* ---- import, pull ---- */

static int report_imported(
        const struct image_args *args, const char *name, const struct image_imported *imported)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    AUTO(image_free) struct image *image = NULL;
    struct json json = { .out = &text };
    struct carrel_error err = { 0 };
    char size[32];

    if (image_read(args->state, name, &image, &err) < 0)
        return report_fail(args->is_json, &err);
    if (!args->is_json) {
        printf("%s %s: %zu layer%s (%zu shared), %s%s\n", name,
                imported->is_replaced ? "replaced" : "imported", imported->n_layers,
                imported->n_layers == 1 ? "" : "s", imported->n_shared,
                about(image->bytes, size), image->bytes < 1024 ? " bytes" : "");
        if (imported->total.skipped > 0)
            printf("left out: %" PRIu64 " devices, FIFOs or sockets\n",
                    imported->total.skipped);
        return report_finish(0);
    }
    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    image_write_json(image, &json, "image");
    json_bool(&json, "replaced", imported->is_replaced);
    json_u64(&json, "shared_layers", imported->n_shared);
    json_u64(&json, "unpacked_entries", imported->total.entries);
    json_u64(&json, "unpacked_bytes", imported->total.bytes);
    json_u64(&json, "left_out", imported->total.skipped);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int verb_import(const struct image_args *args)
{
    const struct image_import import = {
        .source = args->words[0],
        .name = args->words[1],
        .tag = args->tag,
    };
    struct carrel_error err = { 0 };
    struct image_imported imported = { 0 };

    int r = state_make(args->state, &err);
    if (r == 0)
        r = image_import(args->state, &import, &imported, &err);
    if (r < 0)
        return report_fail(args->is_json, &err);
    return report_imported(args, import.name, &imported);
}

static int verb_pull(const struct image_args *args)
{
    const struct pull pull = {
        .ref = args->words[0],
        .name = args->words[1],
        .is_insecure = args->is_insecure,
    };
    struct carrel_error err = { 0 };
    struct image_imported imported = { 0 };

    int r = state_make(args->state, &err);
    if (r == 0)
        r = pull_image(args->state, &pull, &imported, &err);
    if (r < 0)
        return report_fail(args->is_json, &err);
    return report_imported(args, pull_name(&pull), &imported);
}

/* ---- list, inspect, rm ---- */

static int add_line(const struct image *image, void *arg)
{
    struct buf *text = arg;
    char created[32];
    char size[32];
    char source[200];

    if (text->len == 0)
        buf_addf(text, "%-30s  %-9s  %6s  %8s  %-19s  %s\n", "NAME", "KIND", "LAYERS", "SIZE",
                "CREATED (UTC)", "SOURCE");
    buf_addf(text, "%-30s  %-9s  %6zu  %8s  %-19s  %s\n", image->name, image->kind,
            image->n_layers, about(image->bytes, size), time_text(image->created, created),
            escaped(image->source, source, sizeof(source)));
    return 0;
}

static int add_object(const struct image *image, void *arg)
{
    image_write_json(image, arg, NULL);
    return 0;
}

static int list_text(const struct image_args *args)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct carrel_error err = { 0 };

    if (image_list(args->state, add_line, &text, &err) < 0)
        return report_fail(false, &err);
    if (text.len == 0)
        (void)fputs("no images yet\n", stderr);
    return report_print_text(&text, 0);
}

static int verb_list(const struct image_args *args)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };
    struct carrel_error err = { 0 };

    if (!args->is_json)
        return list_text(args);
    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    json_array(&json, "images");
    if (image_list(args->state, add_object, &json, &err) < 0)
        return report_fail(true, &err);
    json_end_array(&json);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static void print_words(const char *title, const char *const *words)
{
    char shown[400];

    for (; *words; words++, title = "")
        printf("%-11s %s\n", title, escaped(*words, shown, sizeof(shown)));
}

static void print_text(const char *title, const char *text)
{
    char shown[400];

    if (text[0])
        printf("%-11s %s\n", title, escaped(text, shown, sizeof(shown)));
}

static int verb_inspect(const struct image_args *args)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    AUTO(image_free) struct image *image = NULL;
    struct json json = { .out = &text };
    struct carrel_error err = { 0 };
    char line[32];

    if (image_read(args->state, args->words[0], &image, &err) < 0)
        return report_fail(args->is_json, &err);
    if (args->is_json) {
        image_write_json(image, &json, NULL);
        return report_print_json(&text, 0);
    }
    print_text("name", image->name);
    print_text("kind", image->kind);
    print_text("source", image->source);
    print_text("digest", image->digest);
    print_text("created", time_text(image->created, line));
    printf("%-11s %" PRIu64 " bytes\n", "size", image->bytes);
    print_words("layers", image->layers);
    print_words("entrypoint", image->settings.entrypoint);
    print_words("cmd", image->settings.cmd);
    print_text("workdir", image->settings.workdir);
    print_text("user", image->settings.user);
    print_words("env", image->settings.env);
    return report_finish(0);
}

/* One that cannot be removed does not keep the others from it. */
static int verb_rm(const struct image_args *args)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };
    struct carrel_error first = { 0 };

    json_object(&json, NULL);
    json_array(&json, "removed");
    for (size_t i = 0; i < args->n_words; i++) {
        struct carrel_error err = { 0 };
        if (image_remove(args->state, args->words[i], &err) < 0) {
            (void)report_error(STATUS_FAILED, &err);
            first = first.code < 0 ? first : err;
            continue;
        }
        json_str(&json, NULL, args->words[i]);
        if (!args->is_json)
            printf("removed %s\n", args->words[i]);
    }
    json_end_array(&json);
    json_bool(&json, "ok", first.code == 0);
    if (first.code < 0)
        json_str(&json, "error", first.message);
    json_end_object(&json);
    const int status = first.code < 0 ? STATUS_FAILED : 0;
    return args->is_json ? report_print_json(&text, status) : report_finish(status);
}

/* ---- the table ---- */

enum option { TAG, INSECURE, JSON, HELP, N_OPTIONS };
#define BIT(option) (1U << (option))
#define FLAG(name, help, member) OPTION_FLAG(name, help, struct image_args, member)

static const struct option_row all_rows[N_OPTIONS] = {
    [TAG] = { "tag", "TAG", "import: which image of a source that has several",
            .take = take_tag },
    [INSECURE] = FLAG("insecure", "pull: trust a registry without TLS", is_insecure),
    [JSON] = FLAG("json", "print JSON, and nothing else", is_json),
    [HELP] = FLAG("help", "this text", wants_help),
};

static const struct verb {
    const char *name;
    const char *words;
    const char *help;
    const char *more;
    size_t min, max;
    unsigned options; /* --json and --help are in every set */
    int (*run)(const struct image_args *args);
} verbs[] = {
    { "import", "SOURCE NAME", "make an image from files",
            "SOURCE is a directory with a root filesystem, a tar of one (also packed with "
            "gzip,\n"
            "zstd or xz; - is standard input), an OCI layout (a directory or a tar), or what\n"
            "'docker save' wrote. An image of that name is replaced.",
            2, 2, BIT(TAG), verb_import },
    { "pull", "REFERENCE [NAME]", "make an image from one of a registry",
            "skopeo fetches it, with the credentials that it finds. Without NAME the image is\n"
            "called as the reference.",
            1, 2, BIT(INSECURE), verb_pull },
    { "list", "", "all images", "Sizes are those of the files in all layers.", 0, 0, 0,
            verb_list },
    { "inspect", "NAME", "what there is to know of one image",
            "Its layers, topmost first, and what it says about programs that run in it.", 1, 1,
            0, verb_inspect },
    { "rm", "NAME...", "remove images",
            "Layers that no other image has go too, as soon as no sandbox uses them.", 1,
            SIZE_MAX, 0, verb_rm },
};

static size_t select_rows(unsigned options, struct option_row rows[static N_OPTIONS])
{
    size_t n = 0;

    for (size_t i = 0; i < N_OPTIONS; i++)
        if (options & BIT(i))
            rows[n++] = all_rows[i];
    return n;
}

static void print_help(void)
{
    (void)puts("Usage: carrel image SUBCOMMAND [options] ...\n\n"
               "Root filesystems that sandboxes are made from: 'carrel run --image NAME'.\n\n"
               "Subcommands:");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        printf("  %-8s %s\n", verbs[i].name, verbs[i].help);
    (void)puts("\nOptions, each of some subcommands ('carrel image SUBCOMMAND --help'):");
    options_print(all_rows, N_OPTIONS);
}

static void print_verb_help(const struct verb *verb)
{
    struct option_row rows[N_OPTIONS];

    printf("Usage: carrel image %s [options]%s%s\n\n%c%s.\n%s\n\nOptions:\n", verb->name,
            verb->words[0] ? " " : "", verb->words, verb->help[0] - 'a' + 'A', verb->help + 1,
            verb->more);
    options_print(rows, select_rows(verb->options | BIT(JSON) | BIT(HELP), rows));
}

static int run_verb(size_t index, int argc, char **argv)
{
    const struct verb *verb = &verbs[index];
    const struct subcommand_words takes = { verb->words, verb->min, verb->max };
    struct image_args args = { 0 };
    struct option_row rows[N_OPTIONS];
    struct carrel_error err = { 0 };
    char state[PATH_MAX];

    size_t n = select_rows(verb->options | BIT(JSON) | BIT(HELP), rows);
    AUTO(free) char **words = calloc((size_t)argc + 2, sizeof(*words));
    int r = words ? options_parse_mixed(rows, n, argc, argv, &args, words, &err)
                  : err_set_errno(&err, -ENOMEM, "arguments");
    args.words = words;
    args.n_words = r < 0 ? 0 : (size_t)r;
    if (r >= 0 && args.wants_help) {
        print_verb_help(verb);
        return report_finish(0);
    }
    if (r >= 0)
        r = subcommand_check_words("image", verb->name, takes, words, args.n_words, &err);
    if (r >= 0)
        r = state_path(state, sizeof(state), &err);
    if (r < 0)
        return report_fail(args.is_json, &err);
    args.state = state;
    return verb->run(&args);
}

static const char *name_of(size_t index)
{
    return verbs[index].name;
}

int cmd_image(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "image",
        .first = "list",
        .n = ARRAY_LEN(verbs),
        .name = name_of,
        .print_help = print_help,
        .run = run_verb,
    };

    return subcommands_run(&set, argc, argv);
}
