/* image.c - the images of this user. */
#include "image/image.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/options.h"
#include "core/image/pull.h"
#include "core/state/state.h"
#include <carrel/image.h>
#include <errno.h>
#include <limits.h>

#define JSON_MAX (16U << 20)

struct carrel_image {
    struct image *image; /* `info` points into it */
    struct carrel_image_info info;
    struct carrel_image_imported imported; /* size 0: it was not */
};

void carrel_image_free(struct carrel_image *image)
{
    if (!image)
        return;
    image_free(image->image);
    free(image);
}
DEFINE_AUTO(struct carrel_image *, carrel_image_free)

static struct carrel_image_info info_of(const struct image *image)
{
    return (struct carrel_image_info){
        .size = sizeof(struct carrel_image_info),
        .name = image->name,
        .source = image->source,
        .kind = image->kind,
        .digest = image->digest,
        .created = image->created,
        .bytes = image->bytes,
        .layers = image->layers,
        .n_layers = image->n_layers,
        .env = image->settings.env,
        .entrypoint = image->settings.entrypoint,
        .cmd = image->settings.cmd,
        .workdir = image->settings.workdir,
        .user = image->settings.user,
    };
}

static struct image image_of(const struct carrel_image_info *info)
{
    return (struct image){
        .name = info->name,
        .source = info->source,
        .kind = info->kind,
        .digest = info->digest,
        .created = info->created,
        .bytes = info->bytes,
        .layers = info->layers,
        .n_layers = info->n_layers,
        .settings = { .env = info->env,
                .entrypoint = info->entrypoint,
                .cmd = info->cmd,
                .workdir = info->workdir,
                .user = info->user },
    };
}

/* The name is the caller's: that there is no such image is the caller's mistake. */
static int unknown(int r, struct carrel_error *err)
{
    return r == -ENOENT || r == -ESTALE ? err_from(err, r, CARREL_FROM_CALLER) : r;
}

/* ---- what there is ---- */

struct walk {
    int (*visit)(const struct carrel_image_info *info, void *context);
    void *context;
};

static int visit_one(const struct image *image, void *arg)
{
    const struct walk *walk = arg;
    const struct carrel_image_info info = info_of(image);

    return walk->visit(&info, walk->context);
}

int carrel_image_each(int (*visit)(const struct carrel_image_info *info, void *context),
        void *context, struct carrel_error *err)
{
    struct walk walk = { .visit = visit, .context = context };
    char state[PATH_MAX];

    err = ERR_OR_IGNORED(err);
    int r = state_path(state, sizeof(state), err);
    return r < 0 ? r : image_list(state, visit_one, &walk, err);
}

int carrel_image_json(
        const struct carrel_image_info *info, char **out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };

    err = ERR_OR_IGNORED(err);
    if (info->size != sizeof(*info))
        return err_set(err, -EINVAL, "expected what this library said of an image");
    const struct image image = image_of(info);
    image_write_json(&image, &json, NULL);
    return buf_take(&text, out, err);
}

static int open_in(const char *state, const char *name, struct carrel_image **out,
        struct carrel_error *err)
{
    AUTO(carrel_image_free) struct carrel_image *image = calloc(1, sizeof(*image));

    if (!image)
        return err_set_errno(err, -ENOMEM, "image");
    int r = image_read(state, name, &image->image, err);
    if (r < 0)
        return unknown(r, err);
    image->info = info_of(image->image);
    *out = ptr_steal(&image);
    return 0;
}

int carrel_image_open(const char *name, struct carrel_image **out, struct carrel_error *err)
{
    char state[PATH_MAX];

    err = ERR_OR_IGNORED(err);
    int r = state_path(state, sizeof(state), err);
    return r < 0 ? r : open_in(state, name, out, err);
}

const struct carrel_image_info *carrel_image_info(const struct carrel_image *image)
{
    return &image->info;
}

const struct carrel_image_imported *carrel_image_imported(const struct carrel_image *image)
{
    return image->imported.size > 0 ? &image->imported : NULL;
}

/* ---- making and removing ---- */

static int make_state(char state[static PATH_MAX], struct carrel_error *err)
{
    int r = state_path(state, PATH_MAX, err);

    return r < 0 ? r : state_make(state, err);
}

static int open_imported(const char *state, const char *name,
        const struct image_imported *imported, struct carrel_image **out,
        struct carrel_error *err)
{
    int r = open_in(state, name, out, err);

    if (r == 0)
        (*out)->imported = (struct carrel_image_imported){
            .size = sizeof(struct carrel_image_imported),
            .is_replaced = imported->is_replaced,
            .n_shared = imported->n_shared,
            .entries = imported->total.entries,
            .bytes = imported->total.bytes,
            .left_out = imported->total.skipped,
        };
    return r;
}

int carrel_image_import(const struct carrel_image_import_options *options,
        struct carrel_image **out, struct carrel_error *err)
{
    struct carrel_image_import_options own = CARREL_IMAGE_IMPORT_OPTIONS_INIT;
    struct image_imported imported = { 0 };
    char state[PATH_MAX];

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_IMAGE_IMPORT_OPTIONS_INIT, err);
    if (r < 0)
        return r;
    const bool has_fd = own.source_fd >= 0;
    const struct image_import import = {
        .source = has_fd && !own.source ? "-" : own.source,
        .has_fd = has_fd,
        .fd = own.source_fd,
        .name = own.name,
        .tag = own.tag,
    };
    if (!import.source || !import.name)
        return err_set(err, -EINVAL, "an import needs a source and a name");
    r = make_state(state, err);
    if (r == 0)
        r = image_import(state, &import, &imported, err);
    return r < 0 ? r : open_imported(state, import.name, &imported, out, err);
}

int carrel_image_pull(const struct carrel_image_pull_options *options,
        struct carrel_image **out, struct carrel_error *err)
{
    struct carrel_image_pull_options own = CARREL_IMAGE_PULL_OPTIONS_INIT;
    struct image_imported imported = { 0 };
    char state[PATH_MAX];

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_IMAGE_PULL_OPTIONS_INIT, err);
    if (r < 0)
        return r;
    const struct pull pull = {
        .ref = own.reference,
        .name = own.name,
        .is_insecure = own.is_insecure,
    };
    if (!pull.ref)
        return err_set(err, -EINVAL, "a pull needs a reference");
    r = make_state(state, err);
    if (r == 0)
        r = pull_image(state, &pull, &imported, err);
    return r < 0 ? r : open_imported(state, pull_name(&pull), &imported, out, err);
}

int carrel_image_remove(const char *name, struct carrel_error *err)
{
    char state[PATH_MAX];

    err = ERR_OR_IGNORED(err);
    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = unknown(image_remove(state, name, err), err);
    return r;
}
