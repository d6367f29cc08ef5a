/* file_access.c - file access for the process that created the sandbox. */
#include "core/files/file_access.h"
#include "base/err.h"
#include "runtime/runtime.h"
#include <errno.h>

static int ask(struct file_access *access, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    return sandbox_file(access->box, request, answer, err);
}

struct file_access file_access_of(struct sandbox *box)
{
    static const struct file_access_ops ops = { .ask = ask };
    struct file_access access = FILE_ACCESS_INIT;

    access.ops = &ops;
    access.box = box;
    return access;
}

int file_access_ask(struct file_access *access, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct file_request as_user = *request;

    if (!access->has_user)
        return access->ops->ask(access, request, answer, err);
    as_user.has_user = true;
    as_user.uid = access->uid;
    as_user.gid = access->gid;
    return access->ops->ask(access, &as_user, answer, err);
}

const char *file_access_far(const struct file_access *access)
{
    if (!access || !access->box || access->box->can & CAN_DESCRIPTORS)
        return NULL;
    return access->box->ops->is_proxy ? "of the sandbox" : access->box->ops->name;
}

int file_access_refuse(
        const struct file_access *access, const char *what, struct carrel_error *err)
{
    return err_set(err, -ENOTSUP, "runtime %s: cannot %s: it has no descriptors of files",
            file_access_far(access), what);
}

int file_access_outcome(struct file_access *access, int r, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;
    struct carrel_error own = { 0 };

    request.op = FILE_STAT; /* always allowed */
    request.path = "/";
    int alive = file_access_ask(access, &request, &answer, &own);
    if (alive == 0)
        return r;
    if (err)
        *err = own;
    return alive;
}

void file_access_close(struct file_access *access)
{
    if (access->ops && access->ops->close)
        access->ops->close(access);
    *access = FILE_ACCESS_INIT;
}
