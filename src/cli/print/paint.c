/* paint.c - which line of git's gets which colour. */
#include "cli/print/paint.h"
#include "base/auto.h"
#include "base/buf.h"
#include "cli/print/harmless.h"
#include <stdint.h>
#include <string.h>

#define BOLD "\x1b[1m"
#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define YELLOW "\x1b[33m"
#define CYAN "\x1b[36m"

/* Lines of the present hunk that are still to come. A file may have lines that look like
 * headers; only the count tells them apart. */
struct hunk {
    uint64_t before, after;
};

static void put(struct buf *out, const char *color, const char *text, size_t len)
{
    if (len == 0)
        return;
    if (color)
        buf_add_str(out, color);
    harmless_add(out, text, len);
    if (color)
        buf_add_str(out, "\x1b[m");
}

static bool begins(const char *line, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* The second number of "12,3"; without one it is 1. */
static uint64_t count_lines(const char **at)
{
    char *end;

    (void)strtoull(*at, &end, 10);
    uint64_t n = *end == ',' ? strtoull(end + 1, &end, 10) : 1;
    *at = end;
    return n;
}

/* "@@ -12,3 +12,4 @@" */
static void enter_hunk(struct hunk *hunk, const char *line, size_t len)
{
    char head[64] = "";

    memcpy(head, line, len < sizeof(head) ? len : sizeof(head) - 1);
    const char *at = head + strlen("@@ -");
    hunk->before = count_lines(&at);
    if (at[0] == ' ' && at[1] == '+') {
        at += 2;
        hunk->after = count_lines(&at);
    }
}

static void take(uint64_t *left)
{
    if (*left > 0)
        (*left)--;
}

static const char *color_of(struct hunk *hunk, const char *line, size_t len)
{
    const char first = len > 0 ? line[0] : ' ';

    if (first == '\\') /* no newline at the end of the file */
        return NULL;
    if (hunk->before == 0 && hunk->after == 0) {
        if (!begins(line, len, "@@ -"))
            return BOLD;
        enter_hunk(hunk, line, len);
        return CYAN;
    }
    if (first != '+')
        take(&hunk->before);
    if (first != '-')
        take(&hunk->after);
    return first == '+' ? GREEN : first == '-' ? RED : NULL;
}

/* " path | 12 ++--": what it ends in. Messages are indented further. */
static void put_stat(struct buf *out, const char *line, size_t len)
{
    size_t minus = len;

    while (minus > 0 && line[minus - 1] == '-')
        minus--;
    size_t plus = minus;
    while (plus > 0 && line[plus - 1] == '+')
        plus--;
    if (begins(line, len, "    "))
        plus = minus = len;
    put(out, begins(line, len, "commit ") ? YELLOW : NULL, line, plus);
    put(out, GREEN, line + plus, minus - plus);
    put(out, RED, line + minus, len - minus);
}

void paint_add(struct buf *out, enum paint paint, const char *text, size_t len)
{
    struct hunk hunk = { 0 };

    if (paint == PAINT_NOTHING)
        harmless_add(out, text, len);
    while (paint != PAINT_NOTHING && len > 0) {
        const char *end = memchr(text, '\n', len);
        const size_t n = end ? (size_t)(end - text) : len;
        if (paint == PAINT_STAT)
            put_stat(out, text, n);
        else
            put(out, color_of(&hunk, text, n), text, n);
        if (end)
            buf_add_str(out, "\n");
        text += n + (end != NULL);
        len -= n + (end != NULL);
    }
}
