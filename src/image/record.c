/* record.c - an image as JSON. */
#include "image/record.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What others see is the first member. */
struct record {
    struct image image;
    struct arena arena;
};

static const char *const no_words[] = { NULL };

struct image *image_record_new(void)
{
    struct record *record = calloc(1, sizeof(*record));
    if (!record)
        return NULL;
    struct image *image = &record->image;
    image->name = image->source = image->kind = image->digest = "";
    image->layers = no_words;
    image->settings = (struct image_settings){
        .env = no_words, .entrypoint = no_words, .cmd = no_words, .workdir = "", .user = ""
    };
    return image;
}

struct arena *image_record_arena(struct image *image)
{
    return &container_of(image, struct record, image)->arena;
}

void image_free(struct image *image)
{
    if (!image)
        return;
    struct record *record = container_of(image, struct record, image);
    for (size_t i = 0; image->locks && i < image->n_layers; i++)
        fd_close(image->locks[i]);
    arena_finish(record->arena);
    free(record);
}

int image_record_string(struct arena *arena, struct json_value value, const char **out)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(RECORD_MAX_BYTES);

    int r = json_read_string(value, &text);
    if (r < 0)
        return r;
    if (text.is_short)
        return -ENOMEM;
    if (text.len > 0 && memchr(text.data, '\0', text.len))
        return -EINVAL;
    *out = arena_copy(arena, text.data ? text.data : "", text.len);
    return *out ? 0 : -ENOMEM;
}

int image_record_list(struct arena *arena, struct json_value value, const char *const **out)
{
    struct json_value part;
    size_t n = 0;

    if (json_read_kind(value) == JSON_NULL) {
        *out = no_words;
        return 0;
    }
    if (json_read_kind(value) != JSON_ARRAY)
        return -EINVAL;
    for (size_t at = 0; json_read_next(value, &at, NULL, &part);)
        n++;
    const char **list = arena_alloc(arena, (n + 1) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    n = 0;
    for (size_t at = 0; json_read_next(value, &at, NULL, &part); n++) {
        int r = image_record_string(arena, part, &list[n]);
        if (r < 0)
            return r;
    }
    *out = list;
    return 0;
}

static void write_list(struct json *json, const char *key, const char *const *list)
{
    json_array(json, key);
    for (; *list; list++)
        json_str(json, NULL, *list);
    json_end_array(json);
}

static void write_origin(const struct image *image, struct json *json)
{
    json_str(json, "name", image->name);
    json_str(json, "kind", image->kind);
    json_str(json, "source", image->source);
    json_str(json, "digest", image->digest);
}

static void write_content(const struct image *image, struct json *json)
{
    const struct image_settings *settings = &image->settings;

    json_u64(json, "bytes", image->bytes);
    write_list(json, "layers", image->layers);
    write_list(json, "env", settings->env);
    write_list(json, "entrypoint", settings->entrypoint);
    write_list(json, "cmd", settings->cmd);
    json_str(json, "workdir", settings->workdir);
    json_str(json, "user", settings->user);
}

void image_write_json(const struct image *image, struct json *json, const char *key)
{
    const struct timespec when = { .tv_sec = (time_t)image->created };
    char created[CLOCK_STAMP];

    clock_stamp(&when, created);
    json_object(json, key);
    write_origin(image, json);
    json_str(json, "created", created);
    write_content(image, json);
    json_end_object(json);
}

void image_record_write(const struct image *image, struct json *json)
{
    json_object(json, NULL);
    write_origin(image, json);
    json_u64(json, "created", image->created);
    write_content(image, json);
    json_end_object(json);
}

static int parse_layers(struct image *image, struct json_value top)
{
    struct arena *arena = image_record_arena(image);

    int r = image_record_list(arena, json_read_member(top, "layers"), &image->layers);
    if (r < 0)
        return r;
    for (image->n_layers = 0; image->layers[image->n_layers]; image->n_layers++)
        if (!image_store_is_layer_id(image->layers[image->n_layers]))
            return -EINVAL;
    return image->n_layers > 0 && image->n_layers <= IMAGE_MAX_LAYERS ? 0 : -EINVAL;
}

static void pin(struct image *image)
{
    struct sha256 sha;
    char hex[SHA256_HEX];

    sha256_init(&sha);
    for (size_t i = 0; i < image->n_layers; i++)
        sha256_add(&sha, image->layers[i], STORE_ID_LEN);
    sha256_finish_hex(&sha, hex);
    (void)snprintf(
            image->pin, sizeof(image->pin), "%.*s@%.16s", IMAGE_NAME_MAX, image->name, hex);
}

int image_record_parse(
        const char *text, size_t len, struct image *image, struct carrel_error *err)
{
    struct arena *arena = image_record_arena(image);
    struct image_settings *settings = &image->settings;
    struct json_value top;
    const struct {
        const char *key;
        const char **out;
    } strings[] = {
        { "name", &image->name },
        { "kind", &image->kind },
        { "source", &image->source },
        { "digest", &image->digest },
        { "workdir", &settings->workdir },
        { "user", &settings->user },
    };
    const struct {
        const char *key;
        const char *const **out;
    } lists[] = {
        { "env", &settings->env },
        { "entrypoint", &settings->entrypoint },
        { "cmd", &settings->cmd },
    };

    int r = json_read_check(text, len, &top, err);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(strings); i++)
        r = image_record_string(arena, json_read_member(top, strings[i].key), strings[i].out);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(lists); i++)
        r = image_record_list(arena, json_read_member(top, lists[i].key), lists[i].out);
    if (r == 0)
        r = json_read_u64(json_read_member(top, "created"), &image->created);
    if (r == 0)
        r = json_read_u64(json_read_member(top, "bytes"), &image->bytes);
    if (r == 0)
        r = parse_layers(image, top);
    if (r < 0)
        return err_set(err, r, "it is not the record of an image");
    pin(image);
    return 0;
}

int image_record_read(const struct image_store *store, const char *name, struct image **out,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(RECORD_MAX_BYTES);
    AUTO(image_free) struct image *image = image_record_new();
    char file[STORE_FILE_MAX];

    if (!image)
        return err_set_errno(err, -ENOMEM, "read an image");
    image_store_file_name(name, file);
    int r = fd_add_file(store->top, file, &text, err);
    /* A missing file adds nothing, too. It may have been made since it was read. */
    if (r == 0 && text.len == 0 && faccessat(store->top, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
            errno == ENOENT)
        return err_set(err, -ENOENT, "there is no image '%s'", name);
    if (r == 0 && text.len == 0) /* made meanwhile: files appear whole */
        r = fd_add_file(store->top, file, &text, err);
    if (r == 0 && text.len == 0)
        return err_set(err, -ENOENT, "there is no image '%s'", name);
    if (r == 0)
        r = image_record_parse(text.data ? text.data : "", text.len, image, err);
    if (r < 0)
        return err_wrap(err, r, "image '%s'", name);
    *out = ptr_steal(&image);
    return 0;
}

int image_record_save(
        const struct image_store *store, const struct image *image, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(RECORD_MAX_BYTES);
    AUTO(free) char *path = NULL;
    struct json json = { .out = &text };
    char file[STORE_FILE_MAX];

    image_record_write(image, &json);
    buf_add_str(&text, "\n");
    if (text.is_short)
        return err_set(err, -EFBIG, "the image says more about itself than carrel keeps");
    image_store_file_name(image->name, file);
    if (asprintf(&path, "%s/%s", store->path, file) < 0) {
        path = NULL;
        return err_set_errno(err, -ENOMEM, "write an image");
    }
    return fd_replace_file(path, text.data, text.len, 0600, err);
}
