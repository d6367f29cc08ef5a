/* bytes.c - <carrel/request.h>: requests of callers, which have no layers of a fork. */
#include "base/buf.h"
#include "base/err.h"
#include "base/options.h"
#include "core/request/request.h"
#include "core/request/take.h"
#include <carrel/request.h>
#include <errno.h>

struct carrel_request {
    struct request *request;
};

void carrel_request_free(struct carrel_request *request)
{
    if (!request)
        return;
    request_free(request->request);
    free(request);
}
DEFINE_AUTO(struct carrel_request *, carrel_request_free)

/* "layers" names descriptors of the keeper that forks: from anybody else it means nothing. */
static int check_layers(const struct request_layers *layers, struct carrel_error *err)
{
    if (layers->files || layers->workspace || layers->workspace_files || layers->mounts ||
            layers->locks)
        return err_set(err, -EINVAL, "request: 'layers' is for carrel's own forks");
    return 0;
}

int carrel_request_parse(
        const char *json, size_t len, struct carrel_request **out, struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    AUTO(carrel_request_free) struct carrel_request *request = calloc(1, sizeof(*request));
    if (!request)
        return err_set_errno(err, -ENOMEM, "request");
    int r = request_parse(json, len, &request->request, err);
    if (r == 0)
        r = check_layers(&request->request->layers, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&request);
    return 0;
}

const struct carrel_run_options *carrel_request_run(const struct carrel_request *request)
{
    return &request->request->run;
}

const struct carrel_sandbox_options *carrel_request_sandbox(
        const struct carrel_request *request)
{
    return &request->request->sandbox;
}

int carrel_request_json(const struct carrel_run_options *run,
        const struct carrel_sandbox_options *sandbox, char **out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(REQUEST_MAX);
    struct carrel_sandbox_options own = CARREL_SANDBOX_OPTIONS_INIT;
    struct taken_run taken;

    err = ERR_OR_IGNORED(err);
    int r = take_run(&taken, run, err);
    if (r == 0)
        r = OPTIONS_TAKE(&own, sandbox, CARREL_SANDBOX_OPTIONS_INIT, err);
    if (r == 0)
        r = request_write(&taken.options, sandbox ? &own : NULL, NULL, &text, err);
    return r < 0 ? r : buf_take(&text, out, err);
}
