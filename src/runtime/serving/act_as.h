/* act_as.h - init accesses files with the rights of a sandbox user, for one call. */
#pragma once
#include <sys/types.h>

struct rights;
struct carrel_error;

/*
 * From here on files are opened and created as this user, until act_as_self(). -EPERM: init has
 * no other ids than its own, or the sandbox has no such user.
 */
int act_as(const struct rights *rights, uid_t uid, gid_t gid, struct carrel_error *err);
void act_as_self(const struct rights *rights);
