/* idmap.h - which ids of the host stand behind the ids in a sandbox. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;
struct plan;

/*
 * Writes the maps of the child's user namespace. With a range, inside id i is `base` + i; with
 * the caller's subordinate ids, the plan's id is the caller's own and the others are these;
 * without either, there is only that one and supplementary groups cannot be changed.
 */
int idmap_write(pid_t child, const struct plan *plan, uint32_t base, struct carrel_error *err);

/*
 * A user namespace for an id-mapped mount: what `on_disk` owns on the file system appears as,
 * and is written by, `shown`. Returns a descriptor.
 */
int idmap_open(uid_t uid_on_disk, uid_t uid_shown, gid_t gid_on_disk, gid_t gid_shown,
        struct carrel_error *err);
