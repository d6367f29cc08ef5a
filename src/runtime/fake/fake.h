/*
 * fake.h - a runtime for tests: a sandbox of another runtime behind a connection that fails
 * when a test says so.
 *
 * It is linked into test programs only, which then find it by the name `fake`. Programs, files
 * and limits are those of the runtime inside, `process` unless fake_wrap() names another. A
 * fault is injected into one call of one operation of the port; so every failure that a far
 * runtime can have is seen by the code above the port, with real programs running.
 */
#pragma once

enum fake_op {
    FAKE_CREATE,
    FAKE_READY,
    FAKE_START,
    FAKE_NEXT_EVENT,
    FAKE_SIGNAL,
    FAKE_TERMINATE,
    FAKE_RESIZE,
    FAKE_STOP,
    FAKE_END,
    FAKE_USAGE,
    FAKE_FILE,
    FAKE_PS,
    FAKE_PAUSE,
    FAKE_RESUME,
    FAKE_SET_LEASE,
    FAKE_UPDATE,
    FAKE_HEALTH,
    FAKE_SWEEP,
    FAKE_OP_COUNT
};
const char *fake_op_name(enum fake_op op); /* "create" ... */

enum fault_kind {
    FAULT_BEFORE, /* the call fails and has no effect */
    FAULT_AFTER,  /* it has its effect, and its answer is lost */
    FAULT_LOST,   /* the connection ends: this call and all later ones of the sandbox fail */
};

#define FAULT_EACH 0U
struct fake_fault {
    enum fake_op op;
    unsigned nth; /* which call of `op` since fake_inject(): 1 is the first; or FAULT_EACH */
    enum fault_kind kind;
    int code; /* negative errno that the call returns */
};

/*
 * Replaces the fault before, and counts calls from 0. NULL: no fault. Processes that are forked
 * from then on count with this one.
 */
void fake_inject(const struct fake_fault *fault);

/* Calls of `op` since fake_inject(), the failed ones included. */
unsigned fake_calls(enum fake_op op);

/*
 * The runtime inside, for sandboxes that are created from now on. What it has, the fake has,
 * except for pids of this host and the early start. Without this call it is a `process` far
 * away: it has no mounts and no descriptors of files, which are streams.
 */
void fake_wrap(const char *runtime);
