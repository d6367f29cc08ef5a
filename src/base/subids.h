/*
 * subids.h - additional ids of an ordinary user: subuid(5), subgid(5).
 *
 * The kernel lets a user map only its own id into a user namespace. newuidmap(1) and
 * newgidmap(1), which are set-uid, also map the ids that /etc/subuid and /etc/subgid assign to
 * the user.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

#define SUBIDS_COUNT 65536U /* of each kind: what useradd(8) gives */
#define SUBIDS_LINES 3

struct subids {
    uint32_t uid; /* the first of them */
    uint32_t gid;
};

/*
 * Finds the first id of a range for `name` (NULL: unknown) or `uid` in the text of /etc/subuid
 * or /etc/subgid; a larger range is accepted. -ENOENT: no range; -ERANGE: all are too small.
 */
int subids_parse(const char *text, const char *name, uid_t uid, uint32_t *first);

/* The caller's, if they can be mapped. -ENOTSUP: the message says what to install or set up. */
int subids_find(struct subids *out, struct carrel_error *err);

/* One line of a map: uid_map in user_namespaces(7). */
struct subids_line {
    uint32_t inside;
    uint32_t outside;
    uint32_t count;
};

/*
 * The map in which `own` appears as `shown`, and all other ids from 0 to SUBIDS_COUNT - 1 are
 * the subordinate ids from `first` on. Returns the number of lines.
 */
size_t subids_lines(
        uint32_t shown, uint32_t own, uint32_t first, struct subids_line lines[SUBIDS_LINES]);

/* The id inside that such a map gives to an id outside; UINT32_MAX: not mapped. */
uint32_t subids_shown(const struct subids_line *lines, size_t n, uint32_t outside);

/*
 * Maps the caller's ids as `uid` and `gid`, and the others as above, in the user namespace of
 * its child `pid`. Reads the maps back, and fails if they differ from the requested ones.
 */
int subids_map(pid_t pid, const struct subids *ids, uint32_t uid, uint32_t gid,
        struct carrel_error *err);

/*
 * Calls `call` in a process with all capabilities over these ids, in a user namespace of its
 * own, and returns its result: 0 or a negative errno. The call must not allocate memory or take
 * locks.
 */
int subids_call(int (*call)(void *arg), void *arg, struct carrel_error *err);
