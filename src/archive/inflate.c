/* inflate.c - libarchive's filters, without a format. */
#include "archive/inflate.h"
#include "archive/stream.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include <archive_entry.h>
#include <errno.h>

DEFINE_AUTO(struct archive *, stream_free)

static int copy(struct archive *archive, int out, struct carrel_error *err)
{
    const void *data;
    size_t len;
    int64_t at;
    int status;

    while ((status = archive_read_data_block(archive, &data, &len, &at)) == ARCHIVE_OK) {
        int r = fd_write_all(out, data, len);
        if (r < 0)
            return err_set_errno(err, r, "pass the unpacked bytes on");
    }
    return status == ARCHIVE_EOF ? 0 : stream_error(archive, err);
}

int inflate_stream(int in, int out, struct carrel_error *err)
{
    AUTO(free) struct stream *stream = malloc(sizeof(*stream));
    AUTO(stream_free) struct archive *archive = archive_read_new();
    struct archive_entry *entry;

    if (!stream || !archive)
        return err_set_errno(err, -ENOMEM, "unpack");
    if (archive_read_support_format_raw(archive) != ARCHIVE_OK ||
            archive_read_support_filter_gzip(archive) != ARCHIVE_OK ||
            archive_read_support_filter_zstd(archive) != ARCHIVE_OK ||
            archive_read_support_filter_xz(archive) != ARCHIVE_OK)
        return stream_error(archive, err);
    stream->fd = in;
    int r = stream_open(archive, stream, err);
    if (r < 0)
        return r;
    int status = archive_read_next_header(archive, &entry);
    if (status == ARCHIVE_EOF)
        return err_set(err, -EBADMSG, "it is empty");
    if (status != ARCHIVE_OK)
        return stream_error(archive, err);
    return copy(archive, out, err);
}
