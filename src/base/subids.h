/*
 * subids.h - ids that an ordinary user may use beside its own: subuid(5), subgid(5).
 *
 * The kernel lets a user map its own id into a user namespace and no other. newuidmap(1) and
 * newgidmap(1), which are set-uid, map those that /etc/subuid and /etc/subgid give to the user.
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
 * or /etc/subgid; a larger range will do. -ENOENT: none is for them; -ERANGE: all are too
 * small.
 */
int subids_parse(const char *text, const char *name, uid_t uid, uint32_t *first);

/* The caller's, if they can be mapped. -ENOTSUP, with what is missing and how to get it. */
int subids_find(struct subids *out, struct carrel_error *err);

/* One line of a map: uid_map in user_namespaces(7). */
struct subids_line {
    uint32_t inside;
    uint32_t outside;
    uint32_t count;
};

/*
 * The map in which `own` appears as `shown`, and the ids from 0 to SUBIDS_COUNT - 1 but that
 * one are the subordinate ones from `first` on. Returns the number of lines.
 */
size_t subids_lines(
        uint32_t shown, uint32_t own, uint32_t first, struct subids_line lines[SUBIDS_LINES]);

/* An id outside as such a map shows it; UINT32_MAX: it does not. */
uint32_t subids_shown(const struct subids_line *lines, size_t n, uint32_t outside);

/*
 * Maps the caller's ids as `uid` and `gid`, and the others as above, in the user namespace of
 * its child `pid`; and reads the maps back: they are that, or this fails.
 */
int subids_map(pid_t pid, const struct subids *ids, uint32_t uid, uint32_t gid,
        struct carrel_error *err);

/*
 * Calls `call` in a process that has, in a namespace of its own, every right on what these ids
 * own, and returns what it returned: 0 or a negative errno. The call must not allocate memory
 * or take locks.
 */
int subids_call(int (*call)(void *arg), void *arg, struct carrel_error *err);
