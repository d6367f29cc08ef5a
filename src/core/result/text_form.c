/*
 * text_form.c - sharing a budget among the parts of a result.
 *
 * Each part has a share. What one does not use is given to others, standard output first.
 */
#include "core/result/text_form.h"
#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/result/result.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Below this a path in a marker would be most of what there is. */
#define PATH_FROM 1024U

struct part {
    const char *title;
    struct buf head;
    struct buf tail;    /* of a text that was cut before; else empty */
    bool is_cut;        /* something is missing between the two */
    bool has_tail_only; /* when it must be cut: the end is what counts */
    bool has_head_only;
    uint64_t total; /* bytes that there were in all */
    const char *file;
    size_t quota;
};

enum { PART_RESULT, PART_STDOUT, PART_STDERR, PARTS };

/* The text as it is, but control characters and invalid bytes become \xNN. */
static void add_safe(struct buf *out, const char *text, size_t len)
{
    char shown[32];

    while (len > 0) {
        size_t n = utf8_valid((const unsigned char *)text, len);
        if (n == 0)
            n = 1;
        if (*text == '\r' && len > 1 && text[1] == '\n')
            ; /* the end of a line is one character here */
        else if (*text == '\n' || *text == '\t' || *text == '\\')
            buf_add(out, text, 1);
        else
            buf_add_str(out, str_escape(text, n, shown, sizeof(shown)));
        text += n;
        len -= n;
    }
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Length of the character, or of the escape that stands for a byte. */
static size_t unit(const char *text, size_t len)
{
    if (len >= 4 && text[0] == '\\' && text[1] == 'x' && is_hex(text[2]) && is_hex(text[3]))
        return 4;
    size_t n = utf8_valid((const unsigned char *)text, len);
    return n ? n : 1;
}

/* The longest beginning of whole characters with at most `max` bytes. */
static size_t prefix(const struct buf *text, size_t max)
{
    size_t at = 0;

    while (at < text->len) {
        size_t n = unit(text->data + at, text->len - at);
        if (at + n > max)
            break;
        at += n;
    }
    return at;
}

/* Where the longest end of whole characters with at most `max` bytes begins. */
static size_t suffix(const struct buf *text, size_t max)
{
    size_t at = 0;

    while (at < text->len && text->len - at > max)
        at += unit(text->data + at, text->len - at);
    return at;
}

static size_t marker(const struct part *part, char *text, size_t size)
{
    bool has_file = part->file && part->quota >= PATH_FROM;
    int n = snprintf(text, size, "[... %" PRIu64 " bytes in all; cut%s%s ...]\n", part->total,
            has_file ? ", see " : "", has_file ? part->file : "");

    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

static bool ends_line(const char *text, size_t len)
{
    return len > 0 && text[len - 1] == '\n';
}

/* What the part would take if it had all it wants; line ends that are added count. */
static size_t need(const struct part *part)
{
    char mark[512];

    if (part->head.len + part->tail.len == 0 && !part->is_cut)
        return 0;
    size_t n = strlen(part->title) + part->head.len + part->tail.len + 1;
    return part->is_cut ? n + marker(part, mark, sizeof(mark)) + 1 : n;
}

static void add_lines(struct buf *out, const char *text, size_t len)
{
    buf_add(out, text, len);
    if (len > 0 && !ends_line(text, len))
        buf_add_str(out, "\n");
}

static void write_cut(const struct part *part, struct buf *out)
{
    char mark[512];
    size_t mark_len = marker(part, mark, sizeof(mark));
    size_t fixed = strlen(part->title) + mark_len + 2; /* and two line ends */
    const struct buf *tail = part->is_cut ? &part->tail : &part->head;

    if (part->quota < fixed) { /* too small to say what is missing: only that it is */
        if (part->quota >= strlen("[...]\n"))
            buf_add_str(out, "[...]\n");
        return;
    }
    size_t room = part->quota - fixed;
    size_t half = tail->len < room / 2 ? room - tail->len : room / 2;
    if (part->has_tail_only)
        half = 0;
    size_t head_len = prefix(&part->head, part->has_head_only ? room : half);
    size_t tail_at = suffix(tail, part->has_head_only ? 0 : room - head_len);
    buf_add_str(out, part->title);
    add_lines(out, part->head.data ? part->head.data : "", head_len);
    buf_add(out, mark, mark_len);
    add_lines(out, tail->data ? tail->data + tail_at : "", tail->len - tail_at);
}

static void write_part(const struct part *part, struct buf *out)
{
    size_t wants = need(part);

    if (wants == 0)
        return;
    if (part->is_cut || wants > part->quota) {
        write_cut(part, out);
        return;
    }
    buf_add_str(out, part->title);
    add_lines(out, part->head.data, part->head.len);
}

/* Shares in quarters: the result one, standard output two, standard error one. */
static void share(struct part parts[static PARTS], size_t room)
{
    static const unsigned quarters[PARTS] = { 1, 2, 1 };
    static const int order[PARTS] = { PART_STDOUT, PART_STDERR, PART_RESULT };
    size_t left = room;

    for (int i = 0; i < PARTS; i++) {
        size_t part = room / 4 * quarters[i];
        size_t wants = need(&parts[i]);
        parts[i].quota = wants < part ? wants : part;
        left -= parts[i].quota;
    }
    for (int i = 0; i < PARTS; i++) {
        struct part *part = &parts[order[i]];
        size_t wants = need(part);
        size_t more = wants > part->quota ? wants - part->quota : 0;
        if (more > left)
            more = left;
        part->quota += more;
        left -= more;
    }
}

static void fill_stream(struct part *part, const struct buf *text, struct capture_cut cut,
        uint64_t total, const char *file)
{
    const char *data = text->data ? text->data : "";

    part->is_cut = cut.is_cut;
    part->total = total;
    part->file = file;
    add_safe(&part->head, data, cut.is_cut ? cut.at : text->len);
    if (cut.is_cut)
        add_safe(&part->tail, data + cut.at + cut.len, text->len - cut.at - cut.len);
}

static void fill_result(struct part *part, const struct carrel_run_result *result)
{
    const struct guest_answer *guest = &result->guest;

    if (guest->value_error.len > 0) {
        part->title = "result_error: ";
        add_safe(&part->head, guest->value_error.data, guest->value_error.len);
    } else if (guest->value.len > 0 && strcmp(guest->value.data, "null") != 0) {
        add_safe(&part->head, guest->value.data, guest->value.len);
    }
    part->total = part->head.len;
}

static void write_status(const struct carrel_run_result *result, struct buf *out)
{
    char seconds[32];
    char message[4 * sizeof(result->message)];
    bool has_exited = result->has_status && WIFEXITED(result->wait_status);
    bool is_ok = result->reason == CARREL_EXITED && has_exited &&
                 WEXITSTATUS(result->wait_status) == 0;

    buf_addf(out, "status: %s",
            is_ok                             ? "ok"
            : result->reason == CARREL_EXITED ? "failed"
                                              : carrel_reason_name(result->reason));
    if (result->run[0]) {
        buf_add_str(out, " (");
        if (has_exited)
            buf_addf(out, "exit %d, ", WEXITSTATUS(result->wait_status));
        buf_addf(out, "%ss)", str_milli(result->duration_ms, seconds));
    }
    if (result->message[0])
        buf_addf(out, ": %s",
                str_escape(result->message, strlen(result->message), message, sizeof(message)));
    buf_add_str(out, "\n");
}

void text_form_write(const struct carrel_run_result *result, uint64_t budget, struct buf *out)
{
    struct part parts[PARTS] = {
        [PART_RESULT] = { .title = "result: ", .has_head_only = true },
        [PART_STDOUT] = { .title = "stdout:\n" },
        [PART_STDERR] = { .title = "stderr:\n", .has_tail_only = true },
    };
    AUTO(buf_finish) struct buf status = BUF_INIT(8192);

    write_status(result, &status);
    size_t used = prefix(&status, budget);
    buf_add(out, status.data, used);
    if (used < status.len)
        return;
    for (int i = 0; i < PARTS; i++)
        parts[i].head = parts[i].tail = BUF_INIT(SIZE_MAX / 4);
    fill_result(&parts[PART_RESULT], result);
    fill_stream(&parts[PART_STDOUT], &result->stdout_text, result->stdout_cut,
            result->stdout_bytes, result->stdout_file);
    fill_stream(&parts[PART_STDERR], &result->stderr_text, result->stderr_cut,
            result->stderr_bytes, result->stderr_file);
    share(parts, budget - used);
    for (int i = 0; i < PARTS; i++) {
        write_part(&parts[i], out);
        out->is_short = out->is_short || parts[i].head.is_short || parts[i].tail.is_short;
        buf_finish(parts[i].head);
        buf_finish(parts[i].tail);
    }
}

int carrel_run_result_text(
        const struct carrel_run_result *result, char **text, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(SIZE_MAX / 4);

    text_form_write(
            result, result->output_bytes ? result->output_bytes : TEXT_FORM_BYTES, &out);
    return buf_take(&out, text, ERR_OR_IGNORED(err));
}
