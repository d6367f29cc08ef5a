/* permit_paths.h - which paths of the host a run may show. */
#pragma once

struct carrel_error;
struct carrel_run_options;
struct policy;

/* The mounts and the root that the caller asks for; -EPERM with both places named. */
int permit_paths(const struct carrel_run_options *options, const struct policy *policy,
        struct carrel_error *err);
