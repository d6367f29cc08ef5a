/* sandbox_api.c - the public calls about sandboxes that stay. */
#include "base/err.h"
#include "base/fd.h"
#include "core/client/client.h"
#include <carrel/sandbox.h>
#include <errno.h>
#include <stdlib.h>

struct carrel_sandbox {
    struct living *sandbox;
};

/* Callers may not care why. */
#define OR_IGNORED(err) ((err) ? (err) : &(struct carrel_error){ 0 })

static int open_living(const char *word, struct carrel_sandbox **out, struct carrel_error *err)
{
    struct carrel_sandbox *sandbox = calloc(1, sizeof(*sandbox));

    if (!sandbox)
        return err_set_errno(err, -ENOMEM, "sandbox");
    int r = living_open(word, &sandbox->sandbox, err);
    if (r < 0) {
        free(sandbox);
        return r;
    }
    *out = sandbox;
    return 0;
}

int carrel_sandbox_create(const struct carrel_sandbox_options *options,
        struct carrel_sandbox **out, struct carrel_error *err)
{
    static const struct carrel_run_options defaults = CARREL_RUN_OPTIONS_INIT;
    const struct carrel_run_options *run = options->run ? options->run : &defaults;
    char id[REGISTRY_WORD_MAX + 1];

    err = OR_IGNORED(err);
    if (options->size != sizeof(*options) || run->size != sizeof(*run))
        return err_set(err, -EINVAL,
                "the options have another size than this library's; start from "
                "CARREL_SANDBOX_OPTIONS_INIT and CARREL_RUN_OPTIONS_INIT");
    const struct client_request request = {
        .options = run,
        .name = options->name,
        .labels = options->labels,
        .from = options->from,
        .lease_ms = options->lease_ms == CARREL_NEVER ? 0
                    : options->lease_ms               ? options->lease_ms
                                                      : CLIENT_LEASE_MS,
        .idle_ms = options->idle_ms,
    };
    AUTO(fd_close) int receipt = -1;
    int r = client_create(&request, id, &receipt, err);
    if (r == 0)
        r = open_living(id, out, err);
    if (r == 0)
        client_received(fd_steal(&receipt));
    return r;
}

int carrel_sandbox_open(const char *word, struct carrel_sandbox **out, struct carrel_error *err)
{
    return open_living(word, out, OR_IGNORED(err));
}

void carrel_sandbox_free(struct carrel_sandbox *sandbox)
{
    if (!sandbox)
        return;
    living_free(sandbox->sandbox);
    free(sandbox);
}

const char *carrel_sandbox_id(const struct carrel_sandbox *sandbox)
{
    return sandbox->sandbox->entry->id;
}

int carrel_sandbox_exec(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err)
{
    return living_exec(sandbox->sandbox, options, out, OR_IGNORED(err));
}

int carrel_sandbox_renew(struct carrel_sandbox *sandbox, uint64_t lease_ms, uint64_t idle_ms,
        struct carrel_error *err)
{
    _Static_assert(CARREL_NEVER == LIVING_NO_TIME, "one number for both");
    return living_renew(sandbox->sandbox, lease_ms, idle_ms, OR_IGNORED(err));
}

int carrel_sandbox_pause(struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    return living_pause(sandbox->sandbox, OR_IGNORED(err));
}

int carrel_sandbox_resume(struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    return living_resume(sandbox->sandbox, OR_IGNORED(err));
}

int carrel_sandbox_snapshot(
        struct carrel_sandbox *sandbox, const char *name, struct carrel_error *err)
{
    bool is_copied;

    return client_snapshot(sandbox->sandbox, name, &is_copied, OR_IGNORED(err));
}

int carrel_sandbox_destroy(struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf summary = BUF_INIT(1U << 20);

    return client_destroy(sandbox->sandbox, &summary, OR_IGNORED(err));
}
