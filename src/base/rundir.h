/* rundir.h - the directory that lists live sandboxes. */
#pragma once

struct carrel_error;

/*
 * Opens /run/carrel, $XDG_RUNTIME_DIR/carrel or /tmp/carrel-UID, and creates it if necessary.
 * It is owned by this user, and no other user can write to it. Returns a descriptor for the
 * *at() calls.
 */
int rundir_open(struct carrel_error *err);
