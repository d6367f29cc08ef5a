/* image.c - carrel image: root filesystems for sandboxes. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/options.h"
#include "cli/args/subcommands.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <carrel/image.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define JSON_MAX (SIZE_MAX / 4)

DEFINE_AUTO(struct carrel_image *, carrel_image_free)

struct image_args {
    struct subcommand_args common;
    const char *tag;
    bool is_insecure;
};

static const struct image_args *args_of(const struct subcommand_args *args)
{
    return container_of(args, const struct image_args, common);
}

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

/* Adds the JSON of an image. */
static int add_object(struct json *json, const char *key, const struct carrel_image_info *info,
        struct carrel_error *err)
{
    AUTO(carrel_free) char *text = NULL;

    int r = carrel_image_json(info, &text, err);
    if (r == 0)
        json_raw(json, key, text, strlen(text));
    return r;
}

/* ---- import, pull ---- */

static void print_imported(
        const struct carrel_image_info *info, const struct carrel_image_imported *imported)
{
    char size[32];

    printf("%s %s: %zu layer%s (%" PRIu64 " shared), %s%s\n", info->name,
            imported->is_replaced ? "replaced" : "imported", info->n_layers,
            info->n_layers == 1 ? "" : "s", imported->n_shared, about(info->bytes, size),
            info->bytes < 1024 ? " bytes" : "");
    if (imported->left_out > 0)
        printf("left out: %" PRIu64 " devices, FIFOs or sockets\n", imported->left_out);
}

static int report_imported(bool is_json, const struct carrel_image *image)
{
    const struct carrel_image_imported *imported = carrel_image_imported(image);
    const struct carrel_image_info *info = carrel_image_info(image);
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };
    struct carrel_error err = { 0 };

    if (!is_json) {
        print_imported(info, imported);
        return report_finish(0);
    }
    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    if (add_object(&json, "image", info, &err) < 0)
        return report_fail(true, &err);
    json_bool(&json, "replaced", imported->is_replaced);
    json_u64(&json, "shared_layers", imported->n_shared);
    json_u64(&json, "unpacked_entries", imported->entries);
    json_u64(&json, "unpacked_bytes", imported->bytes);
    json_u64(&json, "left_out", imported->left_out);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int verb_import(const struct subcommand_args *args)
{
    struct carrel_image_import_options options = CARREL_IMAGE_IMPORT_OPTIONS_INIT;
    AUTO(carrel_image_free) struct carrel_image *image = NULL;
    struct carrel_error err = { 0 };

    options.source = args->words[0];
    if (strcmp(options.source, "-") == 0)
        options.source_fd = STDIN_FILENO;
    options.name = args->words[1];
    options.tag = args_of(args)->tag;
    if (carrel_image_import(&options, &image, &err) < 0)
        return report_fail(args->is_json, &err);
    return report_imported(args->is_json, image);
}

static int verb_pull(const struct subcommand_args *args)
{
    struct carrel_image_pull_options options = CARREL_IMAGE_PULL_OPTIONS_INIT;
    AUTO(carrel_image_free) struct carrel_image *image = NULL;
    struct carrel_error err = { 0 };

    options.reference = args->words[0];
    options.name = args->words[1];
    options.is_insecure = args_of(args)->is_insecure;
    if (carrel_image_pull(&options, &image, &err) < 0)
        return report_fail(args->is_json, &err);
    return report_imported(args->is_json, image);
}

/* ---- list, inspect, rm ---- */

static int list_line(const struct carrel_image_info *info, void *arg)
{
    struct buf *text = arg;
    char created[32];
    char size[32];
    char source[200];

    if (text->len == 0)
        buf_addf(text, "%-30s  %-9s  %6s  %8s  %-19s  %s\n", "NAME", "KIND", "LAYERS", "SIZE",
                "CREATED (UTC)", "SOURCE");
    buf_addf(text, "%-30s  %-9s  %6zu  %8s  %-19s  %s\n", info->name, info->kind,
            info->n_layers, about(info->bytes, size), time_text(info->created, created),
            escaped(info->source, source, sizeof(source)));
    return 0;
}

struct listing {
    struct json json;
    struct carrel_error err;
};

static int list_object(const struct carrel_image_info *info, void *arg)
{
    struct listing *listing = arg;

    return add_object(&listing->json, NULL, info, &listing->err);
}

static int list_json(void)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct listing listing = { .json = { .out = &text } };
    struct json *json = &listing.json;
    struct carrel_error err = { 0 };

    json_object(json, NULL);
    json_bool(json, "ok", true);
    json_array(json, "images");
    if (carrel_image_each(list_object, &listing, &err) < 0)
        return report_fail(true, listing.err.code < 0 ? &listing.err : &err);
    json_end_array(json);
    json_end_object(json);
    return report_print_json(&text, 0);
}

static int verb_list(const struct subcommand_args *args)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct carrel_error err = { 0 };

    if (args->is_json)
        return list_json();
    if (carrel_image_each(list_line, &text, &err) < 0)
        return report_fail(false, &err);
    if (text.len == 0)
        (void)fputs("no images yet\n", stderr);
    return report_print_text(&text, 0);
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

static int print_json(const struct carrel_image_info *info)
{
    AUTO(carrel_free) char *text = NULL;
    struct carrel_error err = { 0 };

    if (carrel_image_json(info, &text, &err) < 0)
        return report_fail(true, &err);
    (void)puts(text);
    return report_finish(0);
}

static int verb_inspect(const struct subcommand_args *args)
{
    AUTO(carrel_image_free) struct carrel_image *image = NULL;
    struct carrel_error err = { 0 };
    char line[32];

    if (carrel_image_open(args->words[0], &image, &err) < 0)
        return report_fail(args->is_json, &err);
    const struct carrel_image_info *info = carrel_image_info(image);
    if (args->is_json)
        return print_json(info);
    print_text("name", info->name);
    print_text("kind", info->kind);
    print_text("source", info->source);
    print_text("digest", info->digest);
    print_text("created", time_text(info->created, line));
    printf("%-11s %" PRIu64 " bytes\n", "size", info->bytes);
    print_words("layers", info->layers);
    print_words("entrypoint", info->entrypoint);
    print_words("cmd", info->cmd);
    print_text("workdir", info->workdir);
    print_text("user", info->user);
    print_words("env", info->env);
    return report_finish(0);
}

/* An image that cannot be removed does not stop the removal of the others. */
static int verb_rm(const struct subcommand_args *args)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };
    struct carrel_error first = { 0 };

    json_object(&json, NULL);
    json_array(&json, "removed");
    for (size_t i = 0; i < args->n_words; i++) {
        struct carrel_error err = { 0 };
        if (carrel_image_remove(args->words[i], &err) < 0) {
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

enum { TAG, INSECURE };

static const struct option_row rows[] = {
    [TAG] = { "tag", "TAG", "import: the image to take from a source with several",
            .take = take_tag },
    [INSECURE] = OPTION_FLAG(
            "insecure", "pull: allow a registry without TLS", struct image_args, is_insecure),
};

static const struct subcommand verbs[] = {
    { "list", "", "list the images", "SIZE is the sum over all layers.", 0, 0, 0, verb_list,
            NULL },
    { "import", "SOURCE NAME", "import an image from files",
            "SOURCE is a directory with a root filesystem; a tar archive of one, plain or\n"
            "compressed with gzip, zstd or xz (- is standard input); an OCI layout, as a\n"
            "directory or an archive; or the output of 'docker save'. An image with the same\n"
            "name is replaced.",
            2, 2, OPTION_BIT(TAG), verb_import, NULL },
    { "pull", "REFERENCE [NAME]", "import an image from a registry",
            "Uses skopeo and the credentials it finds. Without NAME the image is named after\n"
            "the reference.",
            1, 2, OPTION_BIT(INSECURE), verb_pull, NULL },
    { "inspect", "NAME", "print everything known about an image",
            "Layers (topmost first), entrypoint, command, variables, user and directory.", 1, 1,
            0, verb_inspect, NULL },
    { "rm", "NAME...", "remove images",
            "Layers that no other image uses are removed when no sandbox uses them any more.",
            1, SIZE_MAX, 0, verb_rm, NULL },
};

int cmd_image(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "image",
        .help = "Usage: carrel image SUBCOMMAND [options] ...\n\n"
                "Manages root filesystems for sandboxes: 'carrel run --image NAME'.",
        .list = verbs,
        .n = ARRAY_LEN(verbs),
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
    };
    struct image_args args = { 0 };

    return subcommands_run(&set, argc, argv, &args.common);
}
