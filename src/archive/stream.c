/* stream.c - reading through libarchive. */
#include "archive/stream.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static la_ssize_t read_more(struct archive *archive, void *arg, const void **data)
{
    struct stream *stream = arg;
    ssize_t n;

    do
        n = read(stream->fd, stream->data, sizeof(stream->data));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        archive_set_error(archive, errno, "%s", strerror(errno));
    *data = stream->data;
    return n;
}

int stream_open(struct archive *archive, struct stream *stream, struct carrel_error *err)
{
    if (archive_read_open(archive, stream, NULL, read_more, NULL) != ARCHIVE_OK)
        return stream_error(archive, err);
    return 0;
}

int stream_error(struct archive *archive, struct carrel_error *err)
{
    const char *text = archive_error_string(archive);
    int code = archive_errno(archive);
    char shown[200];

    if (code <= 0 || code == EILSEQ) /* libarchive's own codes, and "this is not the format" */
        code = EBADMSG;
    if (!text)
        return err_set(err, -code, "unknown archive format");
    return err_set(err, -code, "%s", str_escape(text, strlen(text), shown, sizeof(shown)));
}

void stream_free(struct archive *archive)
{
    if (archive)
        (void)archive_read_free(archive); /* frees memory only: its result is of no use */
}
