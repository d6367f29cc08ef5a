/* capture.c - a head, a ring for the tail, and a file; see capture.h. */
#include "core/result/capture.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "core/result/result.h"
#include "core/state/state.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t head_size(const struct capture *c)
{
    return c->budget / 2;
}

static uint64_t tail_size(const struct capture *c)
{
    return c->budget - head_size(c);
}

int capture_init(struct capture *c, uint64_t budget, const char *path, uint64_t file_max)
{
    *c = (struct capture){
        .budget = budget,
        .file_max = file_max ? file_max : CAPTURE_FILE_MAX,
        .path = path,
        .file = -1,
    };
    c->bytes = malloc(budget ? budget : 1);
    return c->bytes ? 0 : -ENOMEM;
}

void capture_finish(struct capture *c)
{
    free(c->bytes);
    fd_close(c->file);
}

void capture_skip(struct capture *c, uint64_t bytes)
{
    c->unseen += bytes;
}

uint64_t capture_bytes(const struct capture *c)
{
    return c->total + c->unseen;
}

/* What we saw does not fit, and is cut by us. */
static bool is_over(const struct capture *c)
{
    return c->total > c->budget;
}

bool capture_is_truncated(const struct capture *c)
{
    return is_over(c) || c->unseen > 0;
}

/* Keeps the last tail_size() bytes of what comes after the head, at their place in the ring. */
static void keep_tail(struct capture *c, uint64_t at, const char *data, size_t len)
{
    char *ring = c->bytes + head_size(c);
    uint64_t size = tail_size(c);

    if (size == 0)
        return;
    if (len > size) {
        data += len - size;
        at += len - size;
        len = size;
    }
    uint64_t start = (at - head_size(c)) % size;
    uint64_t first = size - start < len ? size - start : len;
    memcpy(ring + start, data, first);
    memcpy(ring, data + first, len - first);
}

static void keep_end(struct capture *c, const char *data, size_t len)
{
    if (len > CAPTURE_END) {
        data += len - CAPTURE_END;
        len = CAPTURE_END;
    }
    size_t old = c->end_len < CAPTURE_END - len ? c->end_len : CAPTURE_END - len;
    memmove(c->end, c->end + c->end_len - old, old);
    memcpy(c->end + old, data, len);
    c->end_len = old + len;
}

/* Makes the directories above `path`; they hold what a program wrote, so they are ours alone.
 */
static int make_parents(const char *path)
{
    char dir[PATH_MAX];
    int r = 0;

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - path);
        if (len >= sizeof(dir))
            return -ENAMETOOLONG;
        memcpy(dir, path, len);
        dir[len] = '\0';
        if (mkdir(dir, 0700) < 0 && errno != EEXIST && r == 0)
            r = -errno;
    }
    return r;
}

static void write_file(struct capture *c, uint64_t at, const char *data, size_t len)
{
    if (c->file < 0 || c->file_error < 0 || at >= c->file_max)
        return;
    if (len > c->file_max - at)
        len = c->file_max - at;
    c->file_error = fd_write_all(c->file, data, len);
}

/* The first byte over budget: all that came before is still in head and tail, in order. */
static void open_file(struct capture *c)
{
    uint64_t kept = c->total < c->budget ? c->total : c->budget;

    if (!c->path || c->file_error < 0)
        return;
    int made = make_parents(c->path);
    c->file = open(c->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (c->file < 0)
        c->file_error = errno == ENOENT && made < 0 ? made : -errno;
    write_file(c, 0, c->bytes, kept);
}

void capture_add(struct capture *c, const char *data, size_t len)
{
    uint64_t head = head_size(c);

    if (c->file < 0 && c->total + len > c->budget)
        open_file(c);
    write_file(c, c->total, data, len);
    keep_end(c, data, len);
    if (c->total < head) {
        size_t n = head - c->total < len ? head - c->total : len;
        memcpy(c->bytes + c->total, data, n);
        c->total += n;
        data += n;
        len -= n;
    }
    if (len > 0)
        keep_tail(c, c->total, data, len);
    c->total += len;
}

int capture_keep(struct capture *c)
{
    if (c->file < 0)
        open_file(c);
    return c->file_error;
}

/* Length without a character that is cut short at the end. Other bytes stay as they are. */
static uint64_t whole_characters(const char *text, uint64_t len)
{
    for (uint64_t back = 1; back <= 3 && back <= len; back++) {
        const unsigned char *at = (const unsigned char *)text + len - back;
        if ((*at & 0xc0) == 0x80)
            continue;
        bool is_lead = *at >= 0xc2 && *at <= 0xf4;
        return is_lead && utf8_valid(at, back) == 0 ? len - back : len;
    }
    return len;
}

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* `path`: the file with all, or NULL. */
static size_t make_marker(const struct capture *c, const char *path, char *marker, size_t size)
{
    int n = snprintf(marker, size,
            "\n[... %" PRIu64 " bytes in all; the middle is cut%s%s ...]\n", capture_bytes(c),
            path ? ", see " : "", path ? path : "");

    return n < 0 ? 0 : (size_t)n;
}

struct capture_cut capture_text(const struct capture *c, struct buf *out)
{
    const size_t before = out->len;
    struct capture_cut cut = { .is_cut = is_over(c) };
    const char *ring = c->bytes + head_size(c);
    uint64_t size = tail_size(c);
    char marker[PATH_MAX + 128];
    uint64_t head = head_size(c);

    if (!cut.is_cut) {
        buf_add(out, c->bytes, c->total);
        return cut;
    }
    bool has_file = c->file >= 0 && c->file_error == 0;
    uint64_t taken = make_marker(c, has_file ? c->path : NULL, marker, sizeof(marker));
    if (taken > size) /* too long with the path */
        taken = make_marker(c, NULL, marker, sizeof(marker));
    if (taken > size) { /* a budget too small for a marker: the head alone */
        buf_add(out, c->bytes, head);
        cut.at = out->len - before;
        return cut;
    }
    buf_add(out, c->bytes, whole_characters(c->bytes, head));
    cut.at = out->len - before;
    cut.len = taken;
    buf_add(out, marker, taken);

    uint64_t start = (c->total - head_size(c)) % size; /* oldest byte of the tail */
    uint64_t skip = taken;
    while (skip < size && skip < taken + 4 && is_continuation(ring[(start + skip) % size]))
        skip++;
    for (; skip < size; skip++)
        buf_add(out, &ring[(start + skip) % size], 1);
    return cut;
}

#define MOST_BEFORE 1000U /* times that a run was taken up again */

static void name_files(
        struct output *output, const struct carrel_run_result *result, bool is_old)
{
    char state[PATH_MAX];
    char key[STATE_KEY_MAX];
    struct stat st;

    state_run_key(result->task, result->run, key);
    if (state_path(state, sizeof(state), NULL) < 0 ||
            snprintf(output->dir, sizeof(output->dir), "%s/runs/%s", state, key) >=
                    (int)sizeof(output->dir)) {
        output->dir[0] = '\0';
        return;
    }
    for (unsigned i = 1; i < MOST_BEFORE; i++) {
        char suffix[16] = "";
        if (i > 1)
            (void)snprintf(suffix, sizeof(suffix), "-%u", i);
        (void)snprintf(output->out_path, PATH_MAX, "%s/stdout%s", output->dir, suffix);
        (void)snprintf(output->err_path, PATH_MAX, "%s/stderr%s", output->dir, suffix);
        if (!is_old || (lstat(output->out_path, &st) < 0 && lstat(output->err_path, &st) < 0))
            return;
    }
}

int output_open(struct output *output, const struct carrel_run_result *result, bool is_old,
        uint64_t file_max, struct carrel_error *err)
{
    name_files(output, result, is_old);
    bool has_dir = output->dir[0];
    int r = capture_init(
            &output->out, result->output_bytes, has_dir ? output->out_path : NULL, file_max);
    if (r == 0)
        r = capture_init(&output->err, result->output_bytes, has_dir ? output->err_path : NULL,
                file_max);
    return r < 0 ? err_set_errno(err, r, "output buffers") : 0;
}

void output_finish(struct output *output)
{
    capture_finish(&output->out);
    capture_finish(&output->err);
}

int output_keep(struct output *output, struct carrel_error *err)
{
    int r = capture_keep(&output->out);

    if (r == 0)
        r = capture_keep(&output->err);
    return r < 0 ? err_set_errno(err, r, "keep the run's output in '%s'", output->dir) : 0;
}

static char *file_of(const struct capture *capture)
{
    return capture->file >= 0 && capture->file_error == 0 ? strdup(capture->path) : NULL;
}

void output_take(const struct output *output, struct carrel_run_result *result)
{
    result->stdout_cut = capture_text(&output->out, &result->stdout_text);
    result->stderr_cut = capture_text(&output->err, &result->stderr_text);
    buf_add(&result->stderr_end, output->err.end, output->err.end_len);
    result->stdout_bytes = capture_bytes(&output->out);
    result->stderr_bytes = capture_bytes(&output->err);
    result->is_truncated =
            capture_is_truncated(&output->out) || capture_is_truncated(&output->err);
}

void output_name(const struct output *output, struct carrel_run_result *result)
{
    result->stdout_file = file_of(&output->out);
    result->stderr_file = file_of(&output->err);
}
