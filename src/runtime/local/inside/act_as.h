/* act_as.h - init reaches a file with the rights of a user of the sandbox, for one call. */
#pragma once
#include <sys/types.h>

struct plan;
struct carrel_error;

/*
 * From here on files are opened and made as this user. -EPERM: init has no other ids than its
 * own, or the sandbox has no such user. Goes back by act_as_init().
 */
int act_as(const struct plan *plan, uid_t uid, gid_t gid, struct carrel_error *err);
void act_as_init(const struct plan *plan);
