/* recorder_file.c - what clients do to the files of a living sandbox. */
#include "core/record/recorder_file.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/record/recorder_line.h"
#include "runtime/files.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_TEXT_MAX (4U << 10)  /* of a path in a record; the hash covers all */
#define LIST_MAX (8U << 10)       /* of names in a record; an entry may go beyond it */
#define BELOW_MAX UINT64_C(65536) /* changes in a record */
#define NS_PER_MS UINT64_C(1000000)

/* NULL: it looks, and gives no access to any content. */
static const char *op_name(const struct file_request *request)
{
    static const char *const names[FILE_OP_COUNT] = {
        [FILE_MAKE_DIR] = "make_dir",
        [FILE_REMOVE] = "remove",
        [FILE_REMOVE_DIR] = "remove_dir",
        [FILE_REMOVE_TREE] = "remove_tree",
        [FILE_RENAME] = "rename",
        [FILE_LINK] = "link",
        [FILE_SYMLINK] = "symlink",
        [FILE_SET_MODE] = "set_mode",
        [FILE_SET_TIMES] = "set_times",
        [FILE_PACK] = "pack",
        [FILE_UNPACK] = "unpack",
    };

    if (request->op != FILE_OPEN)
        return names[request->op];
    if ((request->flags & O_ACCMODE) != O_RDONLY)
        return "open_write";
    return request->flags & O_DIRECTORY ? "open_dir" : "open_read";
}

static bool has_other(const struct file_request *request)
{
    return request->op == FILE_RENAME || request->op == FILE_LINK ||
           request->op == FILE_SYMLINK;
}

void recorder_below_finish(struct recorder_below below)
{
    buf_finish(below.list);
}

static void begin_list(struct recorder_below *below)
{
    const uint64_t due_ns = clock_ns() + RECORD_BELOW_MS * NS_PER_MS;

    recorder_below_finish(*below);
    *below = (struct recorder_below){
        .list = BUF_INIT(LIST_MAX + 8 * PATH_MAX * 6), /* as written, a byte may take six */
        .due_ns = due_ns,
    };
    below->json = (struct json){ .out = &below->list };
    json_array(&below->json, NULL);
    sha256_init(&below->sha);
}

/*
 * Where the directory is as the kernel knows it, which says more than its descriptor: for
 * readers only, as a program may rename it at any time.
 */
static size_t name_dir(int dir, char out[static PATH_MAX])
{
    char link[32];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    ssize_t n = readlink(link, out, PATH_MAX);
    return n < 0 ? 0 : (size_t)n;
}

static void add_below(
        struct recorder_below *below, const char *op, const struct file_request *request)
{
    char dir[PATH_MAX];
    const size_t len = name_dir(request->dir, dir);
    const struct {
        const char *text;
        size_t len;
    } words[] = {
        { op, strlen(op) },
        { dir, len },
        { request->path, strlen(request->path) },
        { request->other, has_other(request) ? strlen(request->other) : 0 },
    };
    const size_t n_words = has_other(request) ? 4 : 3;
    const bool is_listed = below->list.len < LIST_MAX;

    if (is_listed)
        json_array(&below->json, NULL);
    for (size_t i = 0; i < n_words; i++) {
        sha256_add(&below->sha, words[i].text, words[i].len);
        sha256_add(&below->sha, "", 1);
        if (is_listed)
            json_bytes(&below->json, NULL, words[i].text, words[i].len);
    }
    if (is_listed)
        json_end_array(&below->json);
    below->n_listed += is_listed;
    below->n++;
}

int recorder_below(
        struct recorder *recorder, struct recorder_below *below, struct carrel_error *err)
{
    char hex[SHA256_HEX];

    if (!below->due_ns)
        return 0;
    struct json *json = recorder_line_begin(recorder, "files_below");
    json_end_array(&below->json);
    sha256_finish_hex(&below->sha, hex);
    json_u64(json, "count", below->n);
    json_u64(json, "listed", below->n_listed);
    json_str(json, "sha256", hex);
    if (!below->list.is_short)
        json_raw(json, "changes", below->list.data, below->list.len);
    recorder_below_finish(*below);
    *below = (struct recorder_below){ 0 };
    return recorder_line_add(recorder, err);
}

static int collect(struct recorder *recorder, struct recorder_below *below, const char *op,
        const struct file_request *request, struct carrel_error *err)
{
    if (!below->due_ns)
        begin_list(below);
    add_below(below, op, request);
    return below->n < BELOW_MAX ? 0 : recorder_below(recorder, below, err);
}

static void write_user(struct json *json, const struct file_request *request)
{
    if (request->has_user)
        json_u64(json, "user", request->uid);
    else
        json_null(json, "user");
}

int recorder_file(struct recorder *recorder, struct recorder_below *below,
        const struct file_request *request, struct carrel_error *err)
{
    const char *op = op_name(request);

    if (!op || !recorder->journal)
        return 0;
    if (request->dir >= 0)
        return collect(recorder, below, op, request, err);
    int r = recorder_below(recorder, below, err); /* in the order of what happened */
    if (r < 0)
        return r;
    struct json *json = recorder_line_begin(recorder, "file");
    json_str(json, "op", op);
    journal_text(json, "path", request->path, strlen(request->path), PATH_TEXT_MAX);
    if (has_other(request))
        journal_text(json, "other", request->other, strlen(request->other), PATH_TEXT_MAX);
    write_user(json, request);
    return recorder_line_add(recorder, err);
}
