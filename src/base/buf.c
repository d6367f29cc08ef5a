/* buf.c - growing text. */
#include "base/buf.h"
#include "base/err.h"
#include <carrel/public.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

void buf_finish(struct buf buf)
{
    free(buf.data);
}

static bool reserve(struct buf *buf, size_t extra)
{
    if (buf->is_short || extra > buf->max || buf->len > buf->max - extra)
        goto no_room;
    if (buf->len + extra < buf->room)
        return true;

    size_t room = buf->room ? buf->room : 256;
    while (room <= buf->len + extra) {
        if (room > SIZE_MAX / 2)
            goto no_room;
        room *= 2;
    }
    char *data = realloc(buf->data, room);
    if (!data)
        goto no_room;
    buf->data = data;
    buf->room = room;
    return true;

no_room:
    buf->is_short = true;
    return false;
}

void buf_add(struct buf *buf, const void *data, size_t len)
{
    if (!reserve(buf, len))
        return;
    if (len > 0)
        memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void buf_add_str(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_addf(struct buf *buf, const char *fmt, ...)
{
    va_list ap;
    va_list again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (len < 0) {
        buf->is_short = true; /* dropped, and reported by is_short */
    } else if (reserve(buf, (size_t)len)) {
        (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, again);
        buf->len += (size_t)len;
    }
    va_end(again);
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->is_short = false;
    if (buf->data)
        buf->data[0] = '\0';
}

int buf_take(struct buf *buf, char **out, struct carrel_error *err)
{
    buf_add(buf, "", 0); /* so that there is a text */
    if (buf->is_short || !buf->data)
        return err_set_errno(err, -ENOMEM, "the answer");
    *out = ptr_steal(&buf->data);
    *buf = BUF_INIT(buf->max);
    return 0;
}

void carrel_free(char *text)
{
    free(text);
}

void names_finish(struct names names)
{
    buf_finish(names.text);
    free(names.list);
}

int names_split(struct names *names, struct carrel_error *err)
{
    size_t n = 0;

    for (size_t i = 0; i < names->text.len; i++)
        n += names->text.data[i] == '\0';
    names->list = calloc(n + 1, sizeof(*names->list));
    if (!names->list)
        return err_set_errno(err, -ENOMEM, "names");
    const char *at = names->text.data;
    for (; names->n < n; names->n++) {
        names->list[names->n] = at;
        at += strlen(at) + 1;
    }
    return 0;
}
