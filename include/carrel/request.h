/*
 * request.h - options as bytes: one JSON object that can be kept, sent and read again.
 *
 *   {"version":1,
 *    "run":{"argv":["make"],"memory_bytes":1073741824,"workspace":{"repo":"/src"}},
 *    "sandbox":{"name":"desk","lease_ms":3600000}}
 *
 * The members of "run" are those of struct carrel_run_options with its workspace, the members
 * of "sandbox" those of struct carrel_sandbox_options; what is left out has its default.
 * Descriptors and callbacks do not travel. A text that is not UTF-8 is {"base64":"..."}.
 */
#pragma once
#include <carrel/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct carrel_request; /* opaque; the options that it has belong to it */

/*
 * Reads bytes that need not be trusted, 16 MiB at most. Unknown members are errors (-EINVAL,
 * the message names them): a misspelt limit must not become no limit. -EPROTO: another version.
 */
CARREL_PUBLIC int carrel_request_parse(
        const char *json, size_t len, struct carrel_request **out, struct carrel_error *err);
CARREL_PUBLIC void carrel_request_free(struct carrel_request *request); /* NULL is fine */

/*
 * For carrel_run(), or for carrel_sandbox_create(); the second has the first. Descriptors are
 * -1. A caller that sets one works on a copy.
 */
CARREL_PUBLIC const struct carrel_run_options *carrel_request_run(
        const struct carrel_request *request);
CARREL_PUBLIC const struct carrel_sandbox_options *carrel_request_sandbox(
        const struct carrel_request *request);

/* The other way; `sandbox` may be NULL. The text is freed with carrel_free(). */
CARREL_PUBLIC int carrel_request_json(const struct carrel_run_options *run,
        const struct carrel_sandbox_options *sandbox, char **out, struct carrel_error *err);

#ifdef __cplusplus
}
#endif
