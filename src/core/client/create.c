/*
 * create.c - a new living sandbox: a request, and a keeper that is started with it.
 *
 * The keeper checks the request and makes the sandbox, which it owns from the start; this
 * process waits for its report.
 */
#include "base/err.h"
#include "base/fd.h"
#include "core/client/client.h"
#include "core/keeper/launch.h"
#include "core/keeper/wire.h"
#include "core/request/request.h"
#include "core/run/session.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

/* Waits for the keeper's report; what it says of its progress before that is passed on. */
static int receive(int report, const struct carrel_workspace_options *workspace, char *note,
        char id[static REGISTRY_WORD_MAX + 1], int *receipt, struct carrel_error *err)
{
    struct keeper_ready ready;

    do {
        if (keeper_receive_ready(report, &ready, receipt) < 0)
            return err_set(err, -ECHILD,
                    "the keeper of the sandbox ended before the sandbox was ready");
        if (ready.is_progress && workspace && workspace->progress)
            workspace->progress(ready.done, ready.total, workspace->progress_context);
    } while (ready.is_progress);
    if (ready.error.code < 0) {
        *err = ready.error;
        return err->code;
    }
    (void)snprintf(id, REGISTRY_WORD_MAX + 1, "%s", ready.id);
    if (note)
        (void)snprintf(note, CLIENT_NOTE_MAX, "%s", ready.note);
    return 0;
}

int client_create(const struct carrel_sandbox_options *options, char *note,
        char id[static REGISTRY_WORD_MAX + 1], int *receipt, struct carrel_error *err)
{
    static const struct carrel_run_options defaults = CARREL_RUN_OPTIONS_INIT;
    const struct carrel_run_options *run = options->run ? options->run : &defaults;
    AUTO(buf_finish) struct buf request = BUF_INIT(REQUEST_MAX);
    int ends[2];

    if (options->size != sizeof(*options) || run->size != sizeof(*run))
        return err_set(err, -EINVAL,
                "the options have a different size in this library; start from "
                "CARREL_SANDBOX_OPTIONS_INIT and CARREL_RUN_OPTIONS_INIT");
    int r = request_write(run, options, NULL, &request, err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set_errno(err, -errno, "socketpair");
    AUTO(fd_close) int read_end = ends[0];
    const struct keeper_launch launch = {
        .request = &request,
        .report = ends[1],
    };
    r = keeper_launch(&launch, err);
    fd_close(ends[1]);
    if (r == 0)
        r = receive(read_end, run->workspace, note, id, receipt, err);
    return r;
}

int carrel_sandbox_create(const struct carrel_sandbox_options *options,
        struct carrel_sandbox **out, struct carrel_error *err)
{
    char id[REGISTRY_WORD_MAX + 1];
    AUTO(fd_close) int receipt = -1;

    err = ERR_OR_IGNORED(err);
    int r = client_create(options, NULL, id, &receipt, err);
    if (r == 0)
        r = carrel_sandbox_open(id, out, err);
    if (r == 0)
        client_received(fd_steal(&receipt));
    return r;
}
