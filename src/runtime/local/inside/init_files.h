/* init_files.h - file requests of the host, as init carries them out. */
#pragma once
#include "runtime/local/wire.h"

struct plan;

/*
 * Does what `message` says as the programs' user, or the one it names. The descriptors are
 * those that came with it. *fd is what was opened, if anything.
 */
int init_file(const struct plan *plan, struct wire_message *message, const int *fds, int n_fds,
        struct wire_file *out, int *fd, struct carrel_error *err);
