/* manifest.c - indexes and manifests. */
#include "image/manifest.h"
#include "base/err.h"
#include "base/json_read.h"
#include "base/str.h"
#include "image/record.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "sha256:"

#if defined(__x86_64__)
#define THIS_ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define THIS_ARCHITECTURE "arm64"
#else
#error "what OCI calls this machine is not known"
#endif

bool manifest_is_digest(const char *text)
{
    return strncmp(text, PREFIX, strlen(PREFIX)) == 0 &&
           image_store_is_layer_id(text + strlen(PREFIX));
}

static int no_memory(struct carrel_error *err)
{
    return err_set_errno(err, -ENOMEM, "read a manifest");
}

/* A descriptor ("digest": "sha256:...") as a file of a layout. */
static int read_blob(struct arena *arena, struct json_value descriptor,
        struct manifest_blob *out, struct carrel_error *err)
{
    static const char dir[] = "blobs/sha256/";
    const char *digest = NULL;
    char shown[100];

    int r = image_record_string(arena, json_read_member(descriptor, "digest"), &digest);
    if (r < 0)
        return err_set(err, r, "something in it has no digest");
    if (!manifest_is_digest(digest))
        return err_set(err, -EINVAL, "'%s' is no digest that carrel knows; expected sha256:...",
                str_escape(digest, strlen(digest), shown, sizeof(shown)));
    char *path = arena_alloc(arena, sizeof(dir) + STORE_ID_LEN);
    if (!path)
        return no_memory(err);
    out->sha256 = digest + strlen(PREFIX);
    memcpy(path, dir, sizeof(dir) - 1);
    memcpy(path + sizeof(dir) - 1, out->sha256, STORE_ID_LEN + 1);
    out->path = path;
    return 0;
}

static bool has_tag(struct json_value entry, const char *tag)
{
    struct json_value notes = json_read_member(entry, "annotations");

    return json_read_equals(
                   json_read_member(notes, "org.opencontainers.image.ref.name"), tag) ||
           json_read_equals(json_read_member(notes, "io.containerd.image.name"), tag);
}

static bool is_for_this_machine(struct json_value entry)
{
    struct json_value platform = json_read_member(entry, "platform");

    return json_read_equals(json_read_member(platform, "os"), "linux") &&
           json_read_equals(json_read_member(platform, "architecture"), THIS_ARCHITECTURE);
}

/* Signatures and the like are entries beside the images they are about. */
static bool is_about_another(struct json_value entry)
{
    struct json_value notes = json_read_member(entry, "annotations");
    struct json_value platform = json_read_member(entry, "platform");

    return json_read_member(notes, "vnd.docker.reference.type").text != NULL ||
           json_read_equals(json_read_member(platform, "os"), "unknown");
}

static bool is_index(struct json_value entry)
{
    struct json_value type = json_read_member(entry, "mediaType");

    return json_read_equals(type, "application/vnd.oci.image.index.v1+json") ||
           json_read_equals(type, "application/vnd.docker.distribution.manifest.list.v2+json");
}

/* The tags there are, for the message: at most what fits. */
static void list_tags(struct json_value entries, char *text, size_t size)
{
    struct arena arena = { 0 };
    struct json_value entry;
    size_t len = 0;

    text[0] = '\0';
    for (size_t at = 0; json_read_next(entries, &at, NULL, &entry);) {
        struct json_value notes = json_read_member(entry, "annotations");
        struct json_value name = json_read_member(notes, "org.opencontainers.image.ref.name");
        const char *tag;
        if (image_record_string(&arena, name, &tag) < 0 || len + 80 > size)
            continue;
        len += (size_t)snprintf(text + len, size - len, "%s'%.60s'", len ? ", " : "", tag);
    }
    arena_finish(arena);
}

static int refuse_choice(
        struct json_value entries, const char *tag, size_t n, struct carrel_error *err)
{
    char tags[300];
    char shown[64] = "";

    list_tags(entries, tags, sizeof(tags));
    if (tag)
        (void)str_escape(tag, strlen(tag), shown, sizeof(shown));
    if (n == 0 && tag)
        return err_set(err, -EINVAL, "it has no image '%s'%s%s", shown,
                tags[0] ? "; there is: " : "", tags);
    if (n == 0)
        return err_set(err, -EINVAL, "it has no image for linux/" THIS_ARCHITECTURE);
    return err_set(err, -EINVAL, "it has several images; say which with --tag%s%s",
            tags[0] ? ": " : "", tags);
}

int manifest_choose(struct arena *arena, const char *text, size_t len, const char *tag,
        struct manifest_choice *out, struct carrel_error *err)
{
    struct json_value top;
    struct json_value entry;
    struct json_value any = { 0 };
    struct json_value ours = { 0 };
    size_t n_any = 0;
    size_t n_ours = 0;

    int r = json_read_check(text, len, &top, err);
    if (r < 0)
        return r;
    struct json_value entries = json_read_member(top, "manifests");
    if (json_read_kind(entries) != JSON_ARRAY)
        return err_set(err, -EINVAL, "it lists no manifests");
    for (size_t at = 0; json_read_next(entries, &at, NULL, &entry);) {
        if ((tag && !has_tag(entry, tag)) || is_about_another(entry))
            continue;
        any = entry;
        n_any++;
        if (is_for_this_machine(entry)) {
            ours = entry;
            n_ours++;
        }
    }
    if (n_any != 1 && n_ours != 1)
        return refuse_choice(entries, tag, n_any > 1 && n_ours == 0 && !tag ? 2 : n_any, err);
    entry = n_any == 1 ? any : ours;
    out->kind = is_index(entry) ? MANIFEST_INDEX : MANIFEST_IMAGE;
    return read_blob(arena, entry, &out->blob, err);
}

int manifest_read(struct arena *arena, const char *text, size_t len, struct manifest *out,
        struct carrel_error *err)
{
    struct json_value top;
    struct json_value layer;

    int r = json_read_check(text, len, &top, err);
    if (r < 0)
        return r;
    r = read_blob(arena, json_read_member(top, "config"), &out->config, err);
    if (r < 0)
        return err_wrap(err, r, "config");
    struct json_value layers = json_read_member(top, "layers");
    if (json_read_kind(layers) != JSON_ARRAY)
        return err_set(err, -EINVAL, "it lists no layers");
    out->n_layers = 0;
    for (size_t at = 0; json_read_next(layers, &at, NULL, &layer); out->n_layers++) {
        if (out->n_layers == MANIFEST_MAX_LAYERS)
            return err_set(err, -EFBIG, "it has more than %d layers", MANIFEST_MAX_LAYERS);
        r = read_blob(arena, layer, &out->layers[out->n_layers], err);
        if (r < 0)
            return err_wrap(err, r, "layer %zu", out->n_layers);
    }
    return 0;
}

bool manifest_is_docker(const char *text, size_t len)
{
    struct json_value top;
    struct json_value first;
    size_t at = 0;

    return json_read_check(text, len, &top, NULL) == 0 && json_read_kind(top) == JSON_ARRAY &&
           json_read_next(top, &at, NULL, &first) &&
           json_read_kind(json_read_member(first, "Config")) == JSON_STRING &&
           json_read_kind(json_read_member(first, "Layers")) == JSON_ARRAY;
}

static bool has_repo_tag(struct json_value image, const char *tag)
{
    struct json_value tags = json_read_member(image, "RepoTags");
    struct json_value name;

    for (size_t at = 0; json_read_next(tags, &at, NULL, &name);)
        if (json_read_equals(name, tag))
            return true;
    return false;
}

/* A path of a docker archive: "HEX.json" and "blobs/sha256/HEX" say what they must hash to. */
static int read_named(struct arena *arena, struct json_value value, struct manifest_blob *out,
        struct carrel_error *err)
{
    char clean[TAR_PATH_MAX + 1];
    const char *path = NULL;

    int r = image_record_string(arena, value, &path);
    if (r < 0)
        return err_set(err, r, "a file has no name");
    r = tar_clean_path(path, TAR_LIMITS.depth, clean, err);
    if (r < 0)
        return r;
    out->path = path = arena_copy(arena, clean, strlen(clean));
    out->sha256 = "";
    if (!path)
        return no_memory(err);
    const char *last = strrchr(path, '/');
    last = last ? last + 1 : path;
    size_t len = strspn(last, "0123456789abcdef");
    if (len == STORE_ID_LEN &&
            (strcmp(last + len, ".json") == 0 || strncmp(path, "blobs/sha256/", 13) == 0))
        out->sha256 = arena_copy(arena, last, len);
    return out->sha256 ? 0 : no_memory(err);
}

int manifest_read_docker(struct arena *arena, const char *text, size_t len, const char *tag,
        struct manifest *out, struct carrel_error *err)
{
    struct json_value top;
    struct json_value image;
    struct json_value chosen = { 0 };
    struct json_value layer;
    size_t n = 0;
    char shown[64];

    int r = json_read_check(text, len, &top, err);
    if (r < 0)
        return r;
    for (size_t at = 0; json_read_next(top, &at, NULL, &image);) {
        if (tag && !has_repo_tag(image, tag))
            continue;
        chosen = image;
        n++;
    }
    if (n == 0)
        return err_set(err, -EINVAL, "it has no image '%s'",
                tag ? str_escape(tag, strlen(tag), shown, sizeof(shown)) : "");
    if (n > 1)
        return err_set(err, -EINVAL, "it has several images; say which with --tag");
    r = read_named(arena, json_read_member(chosen, "Config"), &out->config, err);
    if (r < 0)
        return err_wrap(err, r, "config");
    struct json_value layers = json_read_member(chosen, "Layers");
    out->n_layers = 0;
    for (size_t at = 0; json_read_next(layers, &at, NULL, &layer); out->n_layers++) {
        if (out->n_layers == MANIFEST_MAX_LAYERS)
            return err_set(err, -EFBIG, "it has more than %d layers", MANIFEST_MAX_LAYERS);
        r = read_named(arena, layer, &out->layers[out->n_layers], err);
        if (r < 0)
            return err_wrap(err, r, "layer %zu", out->n_layers);
    }
    return 0;
}
