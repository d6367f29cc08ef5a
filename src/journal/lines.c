/* lines.c - lines through one buffer. */
#include "journal/lines.h"
#include "journal/journal.h"
#include <errno.h>
#include <unistd.h>

#define ROOM ((size_t)JOURNAL_RECORD_MAX + (64U << 10))

struct journal_lines journal_lines_of(int fd)
{
    return (struct journal_lines){ .fd = fd, .limit = UINT64_MAX };
}

void journal_lines_finish(struct journal_lines lines)
{
    free(lines.data);
}

/* Returns how many bytes were read; 0: there are no more. */
static ssize_t fill(struct journal_lines *lines)
{
    if (!lines->data)
        lines->data = malloc(ROOM);
    if (!lines->data)
        return -ENOMEM;
    if (lines->begin > 0) {
        memmove(lines->data, lines->data + lines->begin, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
    }
    size_t want = ROOM - lines->end;
    if (want > lines->limit - lines->at)
        want = (size_t)(lines->limit - lines->at);
    ssize_t n;
    do
        n = pread(lines->fd, lines->data + lines->end, want, (off_t)lines->at);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    lines->end += (size_t)n;
    lines->at += (uint64_t)n;
    return n;
}

int journal_lines_next(struct journal_lines *lines, const char **line, size_t *len)
{
    size_t seen = 0; /* without a newline */

    for (;;) {
        size_t held = lines->end - lines->begin;
        const char *from = held ? lines->data + lines->begin : NULL;
        const char *newline = held > seen ? memchr(from + seen, '\n', held - seen) : NULL;
        if (newline) {
            *line = from;
            *len = (size_t)(newline - from);
            lines->begin += *len + 1;
            return 1;
        }
        if (held > JOURNAL_RECORD_MAX)
            return -EMSGSIZE;
        seen = held;
        ssize_t n = fill(lines);
        if (n <= 0)
            return (int)n;
    }
}
