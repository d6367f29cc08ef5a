/* manifest_config.c - the config of an image: what runs in it, and how. */
#include "base/err.h"
#include "base/json_read.h"
#include "base/str.h"
#include "image/manifest.h"
#include "image/record.h"
#include <errno.h>
#include <string.h>

#define MAX_WORDS 4096

/* A string that may be missing, which is the empty one. */
static int read_text(struct arena *arena, struct json_value object, const char *key,
        const char **out, struct carrel_error *err)
{
    struct json_value value = json_read_member(object, key);

    *out = "";
    if (json_read_kind(value) == JSON_NULL)
        return 0;
    int r = image_record_string(arena, value, out);
    return r < 0 ? err_set(err, r, "config: %s is no text", key) : 0;
}

static int read_words(struct arena *arena, struct json_value object, const char *key,
        const char *const **out, struct carrel_error *err)
{
    size_t n = 0;

    int r = image_record_list(arena, json_read_member(object, key), out);
    if (r < 0)
        return err_set(err, r, "config: %s is no list of words", key);
    while ((*out)[n])
        n++;
    return n > MAX_WORDS ? err_set(err, -EFBIG, "config: %s is too long", key) : 0;
}

static int check_env(const char *const *env, struct carrel_error *err)
{
    char shown[64];

    for (; *env; env++) {
        const char *equals = strchr(*env, '=');
        if (!equals || equals == *env)
            return err_set(err, -EINVAL, "config: '%s' is not NAME=VALUE",
                    str_escape(*env, strlen(*env), shown, sizeof(shown)));
    }
    return 0;
}

static int read_diff_ids(struct arena *arena, struct json_value top, size_t n_layers,
        const char **diff_ids, struct carrel_error *err)
{
    struct json_value list = json_read_member(json_read_member(top, "rootfs"), "diff_ids");
    struct json_value value;
    size_t n = 0;

    if (json_read_kind(list) != JSON_ARRAY)
        return err_set(err, -EINVAL, "config: it names no layers; this is no image of a root");
    for (size_t at = 0; json_read_next(list, &at, NULL, &value); n++) {
        const char *digest = NULL;
        if (n == n_layers)
            break;
        int r = image_record_string(arena, value, &digest);
        if (r < 0 || !manifest_is_digest(digest))
            return err_set(err, r < 0 ? r : -EINVAL,
                    "config: a layer has no digest that carrel knows; expected sha256:...");
        diff_ids[n] = digest + strlen("sha256:");
    }
    size_t more = 0;
    for (size_t at = 0; json_read_next(list, &at, NULL, &value);)
        more++;
    if (more != n_layers)
        return err_set(
                err, -EINVAL, "config: it names %zu layers, the manifest %zu", more, n_layers);
    return 0;
}

int manifest_read_config(struct arena *arena, const char *text, size_t len, size_t n_layers,
        struct image_settings *settings, const char **diff_ids, struct carrel_error *err)
{
    struct image_settings out;
    struct json_value top;
    char shown[64];

    int r = json_read_check(text, len, &top, err);
    if (r < 0)
        return err_wrap(err, r, "config");
    struct json_value config = json_read_member(top, "config");
    r = read_words(arena, config, "Env", &out.env, err);
    if (r == 0)
        r = check_env(out.env, err);
    if (r == 0)
        r = read_words(arena, config, "Entrypoint", &out.entrypoint, err);
    if (r == 0)
        r = read_words(arena, config, "Cmd", &out.cmd, err);
    if (r == 0)
        r = read_text(arena, config, "WorkingDir", &out.workdir, err);
    if (r == 0)
        r = read_text(arena, config, "User", &out.user, err);
    if (r == 0)
        r = read_diff_ids(arena, top, n_layers, diff_ids, err);
    if (r < 0)
        return r;
    if (out.workdir[0] && out.workdir[0] != '/')
        return err_set(err, -EINVAL, "config: the working directory '%s' is not absolute",
                str_escape(out.workdir, strlen(out.workdir), shown, sizeof(shown)));
    *settings = out;
    return 0;
}
