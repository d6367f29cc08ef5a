/* files_export.c - writes a tree of a sandbox as a tar. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/files/files_far.h"
#include "core/files/files_tar.h"
#include "files/pack.h"
#include <errno.h>

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

int files_export(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    AUTO(free) struct pack *pack = calloc(1, sizeof(*pack));
    AUTO(free) struct walk *walk = calloc(1, sizeof(*walk));

    if (file_access_far(access))
        return far_export(access, path, out, limits, count, err);
    if (!pack || !walk)
        return err_set_errno(err, -ENOMEM, "export");
    request.op = FILE_OPEN;
    request.path = path;
    int r = file_access_ask(access, &request, &answer, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int fd = answer.fd;
    r = tar_writer_open(out, &writer, err);
    if (r < 0)
        return r;
    pack_init(pack, writer, PACK_OTHERS_NOT);
    *walk = walk_begin(&pack->base, count, limits);
    walk->keeps_links_in = true;
    r = file_access_outcome(access, pack_opened(pack, fd, last_name(path), walk, err), err);
    return r < 0 ? r : tar_writer_finish(writer, err);
}
