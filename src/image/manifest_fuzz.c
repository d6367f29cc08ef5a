/*
 * manifest_fuzz.c - manifests, indexes, configs and records of any bytes are refused, or give
 * nothing that could be used as a name elsewhere. The first byte says which of them it is.
 */
#include "base/buf.h"
#include "base/json.h"
#include "fuzz.h"
#include "image/manifest.h"
#include "image/record.h"
#include <stdlib.h>
#include <string.h>

static void check_blob(const struct manifest_blob *blob)
{
    char clean[TAR_PATH_MAX + 1];

    if (tar_clean_path(blob->path, TAR_LIMITS.depth, clean, NULL) < 0 ||
            strcmp(clean, blob->path) != 0)
        abort();
    if (blob->sha256[0] && !image_store_is_layer_id(blob->sha256))
        abort();
}

static void check_manifest(const struct manifest *manifest)
{
    check_blob(&manifest->config);
    if (manifest->n_layers > MANIFEST_MAX_LAYERS)
        abort();
    for (size_t i = 0; i < manifest->n_layers; i++)
        check_blob(&manifest->layers[i]);
}

static void check_config(struct arena *arena, const char *text, size_t len)
{
    const char *diff_ids[3] = { NULL };
    struct image_settings settings;

    if (manifest_read_config(arena, text, len, 2, &settings, diff_ids, NULL) < 0)
        return;
    if (!image_store_is_layer_id(diff_ids[0]) || !image_store_is_layer_id(diff_ids[1]) ||
            diff_ids[2])
        abort();
    if (settings.workdir[0] && settings.workdir[0] != '/')
        abort();
    for (const char *const *entry = settings.env; *entry; entry++)
        if (!strchr(*entry, '='))
            abort();
}

/* A record that is read can be written, and says the same then. */
static void check_record(const char *text, size_t len)
{
    AUTO(image_free) struct image *image = image_record_new();
    AUTO(image_free) struct image *back = image_record_new();
    AUTO(buf_finish) struct buf once = BUF_INIT(8 * RECORD_MAX_BYTES);
    AUTO(buf_finish) struct buf twice = BUF_INIT(8 * RECORD_MAX_BYTES);

    if (!image || !back || image_record_parse(text, len, image, NULL) < 0)
        return;
    image_record_write(image, &(struct json){ .out = &once });
    if (once.is_short || image_record_parse(once.data, once.len, back, NULL) < 0)
        abort();
    image_record_write(back, &(struct json){ .out = &twice });
    if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    AUTO(free) struct manifest *manifest = calloc(1, sizeof(*manifest));
    struct manifest_choice choice;

    if (size == 0 || !manifest)
        return 0;
    const char *text = (const char *)data + 1;
    size_t len = size - 1;
    switch (data[0] % 5) {
    case 0:
        if (manifest_choose(&arena, text, len, NULL, &choice, NULL) == 0)
            check_blob(&choice.blob);
        break;
    case 1:
        if (manifest_read(&arena, text, len, manifest, NULL) == 0)
            check_manifest(manifest);
        break;
    case 2:
        if (manifest_is_docker(text, len) &&
                manifest_read_docker(&arena, text, len, NULL, manifest, NULL) == 0)
            check_manifest(manifest);
        break;
    case 3:
        check_config(&arena, text, len);
        break;
    default:
        check_record(text, len);
        break;
    }
    return 0;
}
