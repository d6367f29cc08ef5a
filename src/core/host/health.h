/*
 * health.h - which protections work on this machine, for root and for an ordinary user.
 *
 * Found out by doing: a default run of a program that does nothing, once as the caller and,
 * when the caller is root, once more in a child that has become an ordinary user.
 */
#pragma once
#include "base/buf.h"
#include "runtime/runtime.h"
#include <carrel/error.h>

enum health_user { HEALTH_ROOT, HEALTH_ROOTLESS, HEALTH_USERS };
const char *health_user_name(enum health_user user); /* "root" "rootless" */

enum health_state {
    HEALTH_UNKNOWN, /* could not be tried */
    HEALTH_WORKS,
    HEALTH_MISSING,
};

/* How one kind of user fares. Plain data: it crosses a pipe. */
struct health_view {
    bool is_known; /* this user was tried; else `error` says why not */
    bool is_able;  /* a default run works; else `error` says why not */
    uid_t uid;     /* of the caller */
    uint64_t works;
    uint64_t missing;
    enum limit_holder held_by[LIMIT_COUNT];
    struct carrel_error error;
    struct runtime_health found;
};

struct health {
    enum health_user caller; /* the view of this user is the caller's own */
    struct health_view views[HEALTH_USERS];
};

/* Takes a tenth of a second. Leaves nothing behind. */
void health_check(struct health *health);

enum health_state health_state(const struct health_view *view, enum protection p);

/* One object; `out` is short (buf.h) when memory ran out. */
void health_write_json(const struct health *health, struct buf *out);
