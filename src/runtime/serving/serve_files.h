/* serve_files.h - carries out file requests of the host, in init. */
#pragma once
#include "runtime/wire.h"

struct rights;

/*
 * Carries `message` out as the programs' user, or as the user it names. The descriptors are
 * those that came with it. *fd is what was opened, if anything.
 */
int serve_file_request(const struct rights *rights, struct wire_message *message,
        const int *fds, int n_fds, struct wire_file *out, int *fd, struct carrel_error *err);
