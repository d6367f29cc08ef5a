/*
 * import.c - a source becomes layers and a record.
 *
 * A tar is unpacked first and looked at then: what it holds says whether it is a root, an OCI
 * layout or what `docker save` wrote. The last two are directories from there on, as if
 * a tool had unpacked them for us.
 *
 * Nothing has a name before all of it is there and on the disk. An import that is killed before
 * the record is written leaves a draft, or unnamed layers: the sweep removes both.
 */
#include "archive/child.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "base/path.h"
#include "base/str.h"
#include "image/import_layer.h"
#include "image/layout.h"
#include "image/record.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct import {
    const struct image_import *what;
    struct image_store store;
    struct image *image;
    struct tar_limits limits;                     /* what is left of them */
    struct import_layer layers[IMAGE_MAX_LAYERS]; /* lowest first */
    size_t n_layers;
    struct import_layer wrapping; /* a tar that holds a layout; else empty */
    struct image_imported *out;
};

static void let_go(struct import *import)
{
    for (size_t i = 0; i < import->n_layers; i++)
        store_drop(&import->store.layers, &import->layers[i].draft);
    import->n_layers = 0;
    store_drop(&import->store.layers, &import->wrapping.draft);
}

static void import_finish(struct import *import)
{
    if (!import)
        return;
    let_go(import);
    image_store_finish(import->store);
    image_free(import->image);
    free(import);
}
DEFINE_AUTO(struct import *, import_finish)

static void spend(struct import *import, const struct unpacked *unpacked)
{
    struct unpacked *total = &import->out->total;
    uint64_t entries = unpacked->entries + unpacked->hidden + unpacked->skipped;

    total->entries += unpacked->entries;
    total->bytes += unpacked->bytes;
    total->hidden += unpacked->hidden;
    total->skipped += unpacked->skipped;
    /* Never zero: that would mean no limit of ours. */
    import->limits.entries -= entries < import->limits.entries ? entries
            : import->limits.entries - 1;
    import->limits.bytes -= unpacked->bytes < import->limits.bytes ? unpacked->bytes
            : import->limits.bytes - 1;
}

/* Unpacks a tar into a draft of a layer. `tree` (may be NULL) becomes a descriptor of it. */
static int make_layer(struct import *import, int fd, enum tar_packing packing,
        struct import_layer *out, int *tree_out, struct carrel_error *err)
{
    struct unpacked unpacked;
    struct import_layer layer;

    AUTO(fd_close)
    int tree = import_layer_begin(&import->store, &layer, err);
    if (tree < 0)
        return tree;
    int r = unpack_apart(fd, packing, tree, &import->limits, &unpacked, layer.id, err);
    if (r == 0) {
        spend(import, &unpacked);
        layer.bytes = unpacked.bytes;
        r = import_layer_done(&layer, err);
    }
    if (r < 0) {
        store_drop(&import->store.layers, &layer.draft);
        return r;
    }
    *out = layer;
    if (tree_out)
        *tree_out = fd_steal(&tree);
    return 0;
}

/* A directory that is a root: through a tar, so that all that is unpacked is checked alike. */
static int import_directory(struct import *import, int dir, struct carrel_error *err)
{
    AUTO(child_finish) struct child packer = CHILD_INIT;
    struct import_layer *layer = &import->layers[0];
    struct carrel_error why = { 0 };
    struct unpacked packed;

    import->image->kind = "directory";
    int r = child_start(JOB_PACK, dir, NULL, &packer, err);
    if (r < 0)
        return r;
    r = make_layer(import, packer.stream, TAR_PLAIN, layer, NULL, err);
    import->n_layers = r == 0;
    int packs = child_ask(&packer, &packed, &why);
    if (packs < 0 && packs != -EPIPE && packs != -ECONNRESET) {
        /* The failure of the packer is the cause of the other one. */
        if (err)
            *err = why;
        return packs;
    }
    if (r < 0)
        return r;
    import->out->total.skipped += packed.skipped;
    return 0;
}

static bool has_layer(const struct import *import, const char *id)
{
    for (size_t i = 0; i < import->n_layers; i++)
        if (strcmp(import->layers[i].id, id) == 0)
            return true;
    return false;
}

static int import_blob(struct import *import, int dir, const struct layout *layout, size_t i,
        struct import_layer *out, struct carrel_error *err)
{
    int r = import_layer_find(&import->store, layout->diff_ids[i], out, err);
    if (r != 0) {
        import->out->n_shared += r > 0;
        return r < 0 ? r : 0;
    }
    AUTO(fd_close) int fd = layout_open(dir, layout->paths[i], layout->sha256[i], err);
    if (fd < 0)
        return fd;
    r = make_layer(import, fd, TAR_ANY, out, NULL, err);
    if (r < 0)
        return err_wrap(err, r, "layer %zu ('%.80s')", i, layout->paths[i]);
    if (strcmp(out->id, layout->diff_ids[i]) == 0)
        return 0;
    store_drop(&import->store.layers, &out->draft);
    return err_set(err, -EBADMSG,
            "layer %zu is not what the config says: sha256:%s, expected sha256:%s", i, out->id,
            layout->diff_ids[i]);
}

/*
 * A layer that comes several times (an empty one, mostly) counts where it is topmost: what it
 * shows and hides below is shown and hidden from there too. An overlay takes a directory once.
 */
static bool comes_again(const struct layout *layout, size_t i)
{
    for (size_t j = i + 1; j < layout->n_layers; j++)
        if (strcmp(layout->diff_ids[i], layout->diff_ids[j]) == 0)
            return true;
    return false;
}

static int import_layout(
        struct import *import, int dir, enum layout_kind kind, struct carrel_error *err)
{
    AUTO(free) struct layout *layout = calloc(1, sizeof(*layout));
    struct image *image = import->image;

    if (!layout)
        return err_set_errno(err, -ENOMEM, "import");
    int r = layout_read(dir, kind, import->what->tag, image_record_arena(image), layout, err);
    if (r < 0)
        return r;
    image->kind = kind == LAYOUT_OCI ? "oci" : "docker";
    image->digest = layout->digest;
    image->settings = layout->settings;
    for (size_t i = 0; i < layout->n_layers; i++) {
        if (comes_again(layout, i) || has_layer(import, layout->diff_ids[i]))
            continue;
        if (import->n_layers == IMAGE_MAX_LAYERS)
            return err_set(err, -EFBIG, "it has more than %d layers", IMAGE_MAX_LAYERS);
        r = import_blob(import, dir, layout, i, &import->layers[import->n_layers], err);
        if (r < 0)
            return r;
        import->n_layers++;
    }
    return 0;
}

static int import_tar(struct import *import, int fd, struct carrel_error *err)
{
    struct import_layer *layer = &import->layers[0];
    AUTO(fd_close) int tree = -1;

    int r = make_layer(import, fd, TAR_ANY, layer, &tree, err);
    if (r < 0)
        return r;
    enum layout_kind kind = layout_kind(tree);
    import->n_layers = 1;
    if (kind != LAYOUT_NONE) {
        import->wrapping = *layer;
        import->n_layers = 0;
        import->out->total = (struct unpacked){ 0 }; /* the wrapping is not the image */
        return import_layout(import, tree, kind, err);
    }
    if (import->out->total.entries == 0)
        return err_set(err, -EINVAL, "there is no file in it");
    import->image->kind = "tar";
    return 0;
}

/* A file or a directory; see base/named.h. */
static int open_named(const char *source, struct carrel_error *err)
{
    int fd = named_open(source, NAMED_FILE, err);

    if (fd != -EISDIR)
        return fd;
    AUTO(fd_close) int dir = named_open(source, NAMED_DIRECTORY, err);
    if (dir < 0)
        return dir;
    fd = named_reopen(dir, O_RDONLY | O_DIRECTORY);
    return fd < 0 ? err_set_errno(err, fd, "open '%s'", source) : fd;
}

static int import_source(struct import *import, struct carrel_error *err)
{
    const char *source = import->what->source;
    struct stat st;
    char shown[200];

    (void)str_escape(source, strlen(source), shown, sizeof(shown));
    AUTO(fd_close)
    int fd = import->what->has_fd ? fcntl(import->what->fd, F_DUPFD_CLOEXEC, 3)
                                  : open_named(source, err);
    if (fd < 0 && !import->what->has_fd)
        return err_from(err, fd, CARREL_FROM_CALLER);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int code = err_set_errno(err, -errno, "open '%s'", shown);
        return err_from(err, code, CARREL_FROM_CALLER);
    }
    int r;
    if (S_ISDIR(st.st_mode)) {
        enum layout_kind kind = layout_kind(fd);
        r = kind == LAYOUT_NONE ? import_directory(import, fd, err)
                                : import_layout(import, fd, kind, err);
    } else {
        r = import_tar(import, fd, err);
    }
    return r < 0 ? err_wrap(err, r, "'%s'", shown) : 0;
}

/* The layers' names, topmost first, as the record has them. */
static int fill_record(struct import *import, struct carrel_error *err)
{
    const struct image_import *what = import->what;
    struct image *image = import->image;
    struct arena *arena = image_record_arena(image);
    const char **layers = arena_alloc(arena, (import->n_layers + 1) * sizeof(*layers));
    char path[PATH_MAX];

    if (!layers)
        return err_set_errno(err, -ENOMEM, "import");
    for (size_t i = 0; i < import->n_layers; i++) {
        layers[import->n_layers - 1 - i] = import->layers[i].id;
        image->bytes += import->layers[i].bytes;
    }
    image->layers = layers;
    image->n_layers = import->n_layers;
    image->name = what->name;
    image->created = (uint64_t)time(NULL);
    image->source = what->called ? what->called : what->source;
    char *cwd = what->called || what->has_fd ? NULL : getcwd(NULL, 0);
    if (cwd && path_absolute(cwd, what->source, path, sizeof(path)))
        image->source = arena_copy(arena, path, strlen(path));
    free(cwd);
    return image->source ? 0 : err_set_errno(err, -ENOMEM, "import");
}

static int settle(struct import *import, struct carrel_error *err)
{
    struct image *old = NULL;

    /* After a power failure a name must not lead to files without their data. */
    if (syncfs(import->store.top) < 0)
        return err_set_errno(err, -errno, "write the layers to the disk");
    for (size_t i = 0; i < import->n_layers; i++) {
        int r = import_layer_settle(&import->store, &import->layers[i], err);
        if (r < 0)
            return r;
    }
    if (fsync(import->store.layers.top) < 0)
        return err_set_errno(err, -errno, "write the layers to the disk");
    import->out->is_replaced =
            image_record_read(&import->store, import->what->name, &old, NULL) == 0;
    image_free(old);
    int r = fill_record(import, err);
    return r < 0 ? r : image_record_save(&import->store, import->image, err);
}

/* Layers that were published before the record failed would take space until the next sweep. */
static int explain_full(
        struct import *import, const char *state, int r, struct carrel_error *err)
{
    if (r != -ENOSPC && r != -EDQUOT)
        return r;
    let_go(import);
    return err_wrap(err, r, "'%s' is full; %s", state,
            image_store_sweep(&import->store, NULL) < 0
                    ? "'carrel cleanup' removes what was written"
                    : "nothing was left there");
}

int image_import(const char *state, const struct image_import *what, struct image_imported *out,
        struct carrel_error *err)
{
    AUTO(import_finish) struct import *import = calloc(1, sizeof(*import));
    struct image_imported result = { 0 };
    char shown[64];

    if (!import)
        return err_set_errno(err, -ENOMEM, "import");
    import->store = (struct image_store)IMAGE_STORE_INIT;
    import->wrapping.draft = STORE_DRAFT_INIT;
    import->what = what;
    import->out = &result;
    import->limits = what->limits;
    if (!import->limits.entries)
        import->limits.entries = TAR_LIMITS.entries;
    if (!import->limits.bytes)
        import->limits.bytes = TAR_LIMITS.bytes;
    if (!image_is_name(what->name))
        return err_set(err, -EINVAL,
                "'%s' cannot be the name of an image; expected letters, digits and ._-:/@",
                str_escape(what->name, strlen(what->name), shown, sizeof(shown)));
    import->image = image_record_new();
    if (!import->image)
        return err_set_errno(err, -ENOMEM, "import");
    int r = image_store_make(state, &import->store, err);
    if (r == 0)
        r = import_source(import, err);
    if (r == 0)
        r = settle(import, err);
    if (r < 0)
        return explain_full(import, state, r, err);
    result.n_layers = import->n_layers;
    *out = result;
    if (result.is_replaced)                            /* layers that only the old one had */
        (void)image_store_sweep(&import->store, NULL); /* else the next sweep does */
    return 0;
}
