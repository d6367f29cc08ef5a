/* snapshot.c - names for stacks of layers, as files. */
#include "layer/snapshot.h"
#include "base/buf.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/str.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX ".json"
#define FILE_MAX (64U << 10)

void snapshot_finish(struct snapshot snapshot)
{
    free(snapshot.image);
    free(snapshot.workspace);
    free(snapshot.from);
}

bool snapshot_is_name(const char *text)
{
    size_t len = strlen(text);

    if (len == 0 || len > SNAPSHOT_NAME_MAX || !isalnum((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
            return false;
    return true;
}

static int check_name(const char *name, struct carrel_error *err)
{
    char shown[128];

    if (snapshot_is_name(name))
        return 0;
    return err_set(err, -EINVAL,
            "'%s' cannot name a snapshot: expected up to %d letters, digits, '.', '_' and '-', "
            "a letter or digit first",
            str_escape(name, strlen(name), shown, sizeof(shown)), SNAPSHOT_NAME_MAX);
}

static int path_of(const char *state, const char *name, char path[static PATH_MAX],
        struct carrel_error *err)
{
    int n = snprintf(path, PATH_MAX, "%s/snapshots%s%s%s", state, name ? "/" : "",
            name ? name : "", name ? SUFFIX : "");

    return n >= PATH_MAX ? err_set_errno(err, -ENAMETOOLONG, "'%s'", state) : 0;
}

static void to_json(const struct snapshot *snapshot, struct buf *text)
{
    struct json json = { .out = text };
    char workspace_layers[LAYER_LIST_SIZE];

    layer_list_write(&snapshot->workspace_layers, workspace_layers);
    json_object(&json, NULL);
    json_str(&json, "name", snapshot->name);
    json_array(&json, "layers");
    for (size_t i = 0; i < snapshot->layers.n; i++)
        json_str(&json, NULL, snapshot->layers.ids[i]);
    json_end_array(&json);
    json_str(&json, "image", snapshot->image);
    json_str(&json, "workspace", snapshot->workspace);
    json_str(&json, "workspace_layers", snapshot->workspace ? workspace_layers : NULL);
    json_str(&json, "from", snapshot->from);
    json_i64(&json, "created_s",
            snapshot->created_s ? snapshot->created_s : (int64_t)time(NULL));
    json_end_object(&json);
    buf_add_str(text, "\n");
}

static int check_layers(const struct snapshot *snapshot, struct carrel_error *err)
{
    if (snapshot->layers.n > LAYER_MAX_CHAIN)
        return err_set(err, -E2BIG, "snapshot '%s' has more than %d layers", snapshot->name,
                LAYER_MAX_CHAIN);
    for (size_t i = 0; i < snapshot->layers.n; i++)
        if (!layer_is_id(snapshot->layers.ids[i]))
            return err_set(err, -EINVAL, "snapshot '%s' names something that is no layer",
                    snapshot->name);
    return 0;
}

/* The file appears whole and replaces no other: a link fails where one exists. */
static int publish(const struct store_draft *draft, int dir, const char *name,
        const struct buf *text, struct carrel_error *err)
{
    char file[SNAPSHOT_NAME_MAX + sizeof(SUFFIX)];

    (void)snprintf(file, sizeof(file), "%s" SUFFIX, name);
    AUTO(fd_close)
    int fd = openat(
            draft->dir, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_all(fd, text->data, text->len);
    if (r == 0 &&
            (fsync(fd) < 0 || linkat(draft->dir, file, dir, file, 0) < 0 || fsync(dir) < 0))
        r = -errno;
    if (r == -EEXIST)
        return err_set(err, r,
                "there is a snapshot '%s' already; carrel snapshot rm %s removes it", name,
                name);
    return r < 0 ? err_set_errno(err, r, "write the snapshot '%s'", name) : 0;
}

int snapshot_write(const char *state, const struct snapshot *snapshot, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(FILE_MAX);
    char path[PATH_MAX];

    int r = check_name(snapshot->name, err);
    if (r == 0)
        r = check_layers(snapshot, err);
    if (r == 0)
        r = path_of(state, NULL, path, err);
    if (r < 0)
        return r;
    to_json(snapshot, &text);
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "snapshot '%s'", snapshot->name);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '%s'", path);
    AUTO(fd_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    AUTO(store_finish) struct store store = STORE_INIT;
    struct store_draft draft = STORE_DRAFT_INIT;
    r = layer_store(state, &store, err);
    if (r == 0)
        r = store_draft(&store, &draft, err);
    if (r == 0)
        r = publish(&draft, dir, snapshot->name, &text, err);
    store_drop(&store, &draft);
    return r;
}

/* A string member that may be null: text of ours, or NULL. */
static int read_text(struct json_value object, const char *key, char **out)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(FILE_MAX);
    struct json_value value = json_read_member(object, key);

    if (json_read_kind(value) == JSON_NULL)
        return 0;
    int r = json_read_string(value, &text);
    if (r < 0)
        return r;
    buf_add(&text, "", 0);
    *out = text.is_short ? NULL : strdup(text.data);
    return *out ? 0 : -ENOMEM;
}

static int read_layers(struct json_value list, struct snapshot *snapshot)
{
    struct json_value value;
    size_t at = 0;

    if (json_read_kind(list) != JSON_ARRAY)
        return -EINVAL;
    while (json_read_next(list, &at, NULL, &value)) {
        AUTO(buf_finish) struct buf text = BUF_INIT(64);
        if (snapshot->layers.n == LAYER_MAX_CHAIN || json_read_string(value, &text) < 0)
            return -EINVAL;
        buf_add(&text, "", 0);
        if (text.is_short || !layer_is_id(text.data))
            return -EINVAL;
        memcpy(snapshot->layers.ids[snapshot->layers.n++], text.data, text.len + 1);
    }
    return 0;
}

static int read_workspace_layers(struct json_value object, struct layer_list *out)
{
    AUTO(free) char *text = NULL;
    int r = read_text(object, "workspace_layers", &text);

    return r < 0 ? r : layer_list_parse(text, out);
}

static int parse(const struct buf *text, const char *name, struct snapshot *out,
        struct carrel_error *err)
{
    AUTO(snapshot_finish) struct snapshot snapshot = { .image = NULL };
    struct json_value top;
    uint64_t created = 0;

    int r = json_read_check(text->data ? text->data : "", text->len, &top, err);
    if (r < 0)
        return err_wrap(err, r, "snapshot '%s'", name);
    (void)snprintf(snapshot.name, sizeof(snapshot.name), "%s", name);
    r = read_layers(json_read_member(top, "layers"), &snapshot);
    if (r == 0)
        r = read_text(top, "image", &snapshot.image);
    if (r == 0)
        r = read_text(top, "workspace", &snapshot.workspace);
    if (r == 0)
        r = read_workspace_layers(top, &snapshot.workspace_layers);
    if (r == 0)
        r = read_text(top, "from", &snapshot.from);
    if (r == 0)
        r = json_read_u64(json_read_member(top, "created_s"), &created);
    if (r == 0 && created > INT64_MAX)
        r = -ERANGE;
    if (r < 0)
        return err_set(
                err, r == -ENOMEM ? r : -EINVAL, "the file of snapshot '%s' is damaged", name);
    snapshot.created_s = (int64_t)created;
    *out = snapshot;
    snapshot = (struct snapshot){ .image = NULL };
    return 0;
}

/* 1: there; 0: not. */
static int find(
        const char *state, const char *name, struct snapshot *out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(FILE_MAX);
    char path[PATH_MAX];
    struct stat st;

    int r = path_of(state, name, path, err);
    if (r == 0)
        r = fd_add_file(AT_FDCWD, path, &text, err);
    if (r < 0)
        return r;
    if (text.len == 0 && lstat(path, &st) < 0 && errno == ENOENT)
        return 0;
    r = parse(&text, name, out, err);
    return r < 0 ? r : 1;
}

static int list_names(const char *state, struct store_names *names, struct carrel_error *err)
{
    char path[PATH_MAX];

    int r = path_of(state, NULL, path, err);
    if (r < 0)
        return r;
    AUTO(dir_close) DIR *dir = dir_open(AT_FDCWD, path);
    if (!dir)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "'%s'", path);
    for (const char *file; r == 0 && (file = dir_next(dir));) {
        char name[NAME_MAX + 1];
        size_t len = strlen(file);
        if (len <= strlen(SUFFIX) || strcmp(file + len - strlen(SUFFIX), SUFFIX) != 0)
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)(len - strlen(SUFFIX)), file);
        r = snapshot_is_name(name) ? store_names_add(names, name) : 0;
    }
    store_names_sort(names);
    return r < 0 ? err_set_errno(err, r, "snapshots") : 0;
}

static int unknown(const char *state, const char *name, struct carrel_error *err)
{
    AUTO(store_names_finish) struct store_names names = { 0 };
    AUTO(buf_finish) struct buf text = BUF_INIT(300);

    if (list_names(state, &names, NULL) == 0)
        for (size_t i = 0; i < names.n && text.len < 200; i++)
            buf_addf(&text, "%s%s", i ? " " : "", names.list[i]);
    if (names.n == 0)
        return err_set(err, -ENOENT, "there is no snapshot '%s'; there is none at all", name);
    return err_set(err, -ENOENT, "there is no snapshot '%s'; there are: %s", name, text.data);
}

int snapshot_read(
        const char *state, const char *name, struct snapshot *out, struct carrel_error *err)
{
    int r = check_name(name, err);

    if (r == 0)
        r = find(state, name, out, err);
    if (r < 0)
        return r;
    return r == 0 ? unknown(state, name, err) : 0;
}

int snapshot_each(const char *state,
        int (*each)(const struct snapshot *snapshot, void *context), void *context,
        struct carrel_error *err)
{
    AUTO(store_names_finish) struct store_names names = { 0 };
    int r = list_names(state, &names, err);

    for (size_t i = 0; r >= 0 && i < names.n; i++) {
        AUTO(snapshot_finish) struct snapshot snapshot = { .image = NULL };
        r = find(state, names.list[i], &snapshot, err);
        if (r > 0)
            r = each(&snapshot, context);
    }
    return r < 0 ? r : 0;
}

int snapshot_remove(const char *state, const char *name, struct carrel_error *err)
{
    char path[PATH_MAX];

    int r = check_name(name, err);
    if (r == 0)
        r = path_of(state, name, path, err);
    if (r < 0)
        return r;
    if (unlink(path) < 0)
        return errno == ENOENT ? unknown(state, name, err)
                               : err_set_errno(err, -errno, "remove '%s'", path);
    return 0;
}
