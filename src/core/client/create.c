/*
 * create.c - a new living sandbox: a request, and a keeper that is started with it.
 *
 * The keeper checks the request and makes the sandbox, which it owns from the start; this
 * process waits for its report.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "core/client/client.h"
#include "core/keeper/launch.h"
#include "core/keeper/wire.h"
#include "core/request/request.h"
#include "core/request/take.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

struct creation {
    const struct carrel_workspace_options *workspace; /* NULL: none */
    int report;
    int cancel; /* -1: none */
};

/* 0: there is something to receive. */
static int await(const struct creation *creation, struct carrel_error *err)
{
    struct pollfd watch[] = {
        { .fd = creation->report, .events = POLLIN },
        { .fd = creation->cancel, .events = POLLIN },
    };

    while (poll(watch, ARRAY_LEN(watch), -1) < 0)
        if (errno != EINTR)
            return err_set_errno(err, -errno, "poll");
    return watch[1].revents ? err_set(err, -ECANCELED, "the new sandbox was cancelled") : 0;
}

/* Waits for the keeper's report; what it says of its progress before that is passed on. */
static int receive(const struct creation *creation, struct keeper_ready *ready, int *receipt,
        struct carrel_error *err)
{
    const struct carrel_workspace_options *workspace = creation->workspace;

    do {
        int r = await(creation, err);
        if (r < 0)
            return r;
        if (keeper_receive_ready(creation->report, ready, receipt) < 0)
            return err_set(err, -ECHILD,
                    "the keeper of the sandbox ended before the sandbox was ready");
        if (ready->is_progress && workspace && workspace->progress)
            workspace->progress(ready->done, ready->total, workspace->progress_context);
    } while (ready->is_progress);
    if (ready->error.code < 0)
        *err = ready->error;
    return ready->error.code;
}

/* The creation without `report` is complete: the keeper is started, and reports to it. */
static int launch(const struct carrel_sandbox_options *options,
        const struct carrel_run_options *run, int *report, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf request = BUF_INIT(REQUEST_MAX);
    int ends[2];

    int r = request_write(run, options, NULL, &request, err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set_errno(err, -errno, "socketpair");
    *report = ends[0];
    const struct keeper_launch launch = {
        .request = &request,
        .report = ends[1],
    };
    r = keeper_launch(&launch, err);
    fd_close(ends[1]);
    return r;
}

static int hand_over(const struct carrel_sandbox_options *options,
        const struct keeper_ready *ready, int receipt, struct carrel_sandbox **out,
        struct carrel_error *err)
{
    struct carrel_sandbox *sandbox = calloc(1, sizeof(*sandbox));

    if (!sandbox) {
        fd_close(receipt);
        return err_set_errno(err, -ENOMEM, "sandbox");
    }
    (void)snprintf(sandbox->id, sizeof(sandbox->id), "%s", ready->id);
    (void)snprintf(sandbox->note, sizeof(sandbox->note), "%s", ready->note);
    if (options->receipt)
        *options->receipt = receipt;
    else
        carrel_sandbox_received(receipt);
    *out = sandbox;
    return 0;
}

int client_create(const struct carrel_sandbox_options *options, int cancel,
        struct carrel_sandbox **out, struct carrel_error *err)
{
    struct carrel_sandbox_options own = CARREL_SANDBOX_OPTIONS_INIT;
    struct taken_run run = { .options = CARREL_RUN_OPTIONS_INIT };
    struct keeper_ready ready;
    int receipt = -1;

    AUTO(fd_close) int report = -1;
    int r = OPTIONS_TAKE(&own, options, CARREL_SANDBOX_OPTIONS_INIT, err);
    if (r == 0)
        r = take_run(&run, own.run, err);
    if (r == 0)
        r = launch(&own, &run.options, &report, err);
    if (r < 0)
        return r;
    const struct creation creation = {
        .workspace = run.options.workspace,
        .report = report,
        .cancel = cancel,
    };
    r = receive(&creation, &ready, &receipt, err);
    return r < 0 ? r : hand_over(&own, &ready, receipt, out, err);
}

int carrel_sandbox_create(const struct carrel_sandbox_options *options,
        struct carrel_sandbox **out, struct carrel_error *err)
{
    return client_create(options, -1, out, ERR_OR_IGNORED(err));
}
