/*
 * serve_files.c - init resolves paths of the sandbox for the host.
 *
 * The path is the program's, so the program's permissions count, links stay inside this root,
 * and /proc's magic links, which could lead to init's own descriptors, are refused.
 */
#include "runtime/serving/serve_files.h"
#include "base/err.h"
#include "base/payload.h"
#include "runtime/file_act.h"
#include "runtime/serving/act_as.h"
#include "runtime/serving/rights.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The directory and the watch are descriptors, in this order. */
static int unpack(const struct wire_message *message, const struct payload *payload,
        const int *fds, int n_fds, struct file_request *request)
{
    const bool has_dir = message->flags & WIRE_DIR;
    const bool has_watch = message->file.op == FILE_WATCH;

    if (n_fds != has_dir + has_watch)
        return -EPROTO;
    *request = (struct file_request){
        .op = (enum file_op)message->file.op,
        .dir = has_dir ? fds[0] : -1,
        .path = payload->text,
        .other = payload->argv[0] ? payload->argv[0] : "",
        .flags = message->value,
        .mode = message->mode,
        .times = { message->file.times[0], message->file.times[1] },
        .watch = has_watch ? fds[has_dir] : -1,
        .events = message->file.events,
        .has_user = message->flags & WIRE_USER,
        .uid = message->file.uid,
        .gid = message->file.gid,
    };
    return 0;
}

static int perform(const struct rights *rights, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    const int base = request->dir >= 0 ? request->dir : AT_FDCWD;
    const struct file_where where[2] = { { base, request->path }, { base, request->other } };

    int r = act_as(rights, request->has_user ? request->uid : rights->uid,
            request->has_user ? request->gid : rights->gid, err);
    if (r < 0)
        return r;
    if (request->dir >= 0)
        r = file_act(request, where, file_resolve_beneath(), answer, err);
    else if (chdir(rights->workspace) < 0)
        r = err_set_errno(err, -errno, "go to %s", rights->workspace);
    else
        r = file_act(request, where, 0, answer, err);
    act_as_self(rights);
    (void)chdir("/"); /* always exists */
    return r;
}

int serve_file_request(const struct rights *rights, struct wire_message *message,
        const int *fds, int n_fds, struct wire_file *out, int *fd, struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;
    struct file_request request;
    struct payload payload = { 0 };

    int r = wire_payload(message, &fds, &n_fds, &payload);
    if (r == 0)
        r = unpack(message, &payload, fds, n_fds, &request);
    if (r < 0)
        r = err_set_errno(err, r, "read the file request");
    if (r == 0)
        r = file_check(&request, err);
    if (r == 0)
        r = perform(rights, &request, &answer, err);
    payload_unmap(&payload);
    if (r < 0)
        return r;
    out->watch = answer.watch;
    out->stat = answer.stat;
    *fd = answer.fd;
    return 0;
}
