/* rundir.h - the directory where live sandboxes are known. */
#pragma once

struct carrel_error;

/*
 * Opens /run/carrel, $XDG_RUNTIME_DIR/carrel or /tmp/carrel-UID, and makes it if need be. It is
 * ours, and nobody else can write to it. Returns a descriptor for use with the *at() calls.
 */
int rundir_open(struct carrel_error *err);
