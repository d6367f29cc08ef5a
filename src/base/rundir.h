/* rundir.h - the directory that lists live sandboxes. */
#pragma once
#include <sys/types.h>

struct carrel_error;

/*
 * Opens /run/carrel, $XDG_RUNTIME_DIR/carrel or /tmp/carrel-UID, and creates it if necessary.
 * It is owned by this user, and no other user can write to it. Returns a descriptor for the
 * *at() calls.
 */
int rundir_open(struct carrel_error *err);

/*
 * The same, whatever the environment of the process says: /run/carrel for root, unless it is
 * root in a user namespace only; /run/user/UID/carrel where the system has made the directory
 * above it; else /tmp/carrel-UID.
 */
int rundir_open_shared(struct carrel_error *err);

/*
 * Calls `each` with both of these places of our own that there are, unless we are root: the one
 * that is taken changes when the user logs in or out.
 */
int rundir_each_own(int (*each)(int dir, uid_t uid, void *context), void *context);

/*
 * Calls `each` with these directories of all ordinary users, until it fails. Only for root,
 * since the others are closed. What is in one is the word of that user.
 */
int rundir_each_user(int (*each)(int dir, uid_t uid, void *context), void *context);
