/*
 * mounted.h - the mounts and the root that the caller asks for, each opened once.
 *
 * A program of an earlier sandbox, or of this one while it lives, may exchange what a path
 * leads to. So a path is looked up once (base/named.h); the policy is asked about the file that
 * was found, and the descriptor stays open as long as the sandbox can be made again: it is
 * mounted, never what has the name by then.
 */
#pragma once
#include "base/auto.h"
#include <carrel/run.h>
#include <stddef.h>

struct carrel_error;
struct policy;

struct mounted {
    /* Of the options, and .git at the top of the writable ones, read-only; the sources are the
     * kernel's paths. */
    struct carrel_mount *list;
    int *fds; /* of the sources, O_PATH */
    size_t n;
    char *root; /* NULL: none */
    int root_fd;
};
#define MOUNTED_INIT ((struct mounted){ .root_fd = -1 })

/*
 * `policy` may be NULL: everything is allowed. `ids`: what mounted_ids() gave for the same
 * mounts earlier, NULL-terminated, or NULL; another file is refused (-ESTALE). -EPERM with both
 * places named: the policy does not allow it. The targets belong to the options.
 */
int mounted_open(const struct carrel_run_options *options, const struct policy *policy,
        const char *const *ids, struct mounted *out, struct carrel_error *err);
void mounted_finish(struct mounted mounted); /* also after a failure */
DEFINE_AUTO(struct mounted, mounted_finish)

/* Which files they are, as texts, for a process that opens them by name. One block of memory.
 */
int mounted_ids(const struct mounted *mounted, char ***out, struct carrel_error *err);
