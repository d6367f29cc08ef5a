/* idmap.h - maps the ids of a sandbox to ids of the host. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;
struct plan;

/*
 * Writes the maps of the child's user namespace. With a range, the id i inside is `base` + i;
 * with the caller's subordinate ids, the plan's id is the caller's own and the others are
 * subordinate; without either, there is only that one id and supplementary groups cannot be
 * changed.
 */
int idmap_write(pid_t child, const struct plan *plan, uint32_t base, struct carrel_error *err);

/*
 * A user namespace for an id-mapped mount: files of `on_disk` on the file system appear as, and
 * are written by, `shown`. Returns a descriptor.
 */
int idmap_open(uid_t uid_on_disk, uid_t uid_shown, gid_t gid_on_disk, gid_t gid_shown,
        struct carrel_error *err);
