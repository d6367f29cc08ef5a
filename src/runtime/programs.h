/*
 * programs.h - the programs that the host started, and the end of everything in the sandbox.
 *
 * For init and for a supervisor: every process of the sandbox is its child in the end, and is
 * reaped here. Nothing is allocated: both are forks of their caller without exec.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROGRAMS_MOST 1024 /* started by the host and still running */

struct program {
    pid_t pid; /* 0: free */
    uint32_t id;
    bool is_last; /* the sandbox ends with it */
    bool has_ended;
    bool is_reported; /* but not reaped, see reap_started() */
    bool is_with_all; /* it is killed with the sandbox */
    int status;
    uint64_t kill_ns; /* when its group is killed; 0: not requested */
};

struct programs {
    bool is_over;  /* a program with which the sandbox ends has exited */
    bool is_alone; /* as far as we know: no process except us */
    uint32_t last_id;
    size_t n_running;
    size_t n; /* slots ever used: a scan of more would only touch memory */
    struct program all[PROGRAMS_MOST];
};

/* A free slot; NULL: there is none. */
struct program *programs_place(struct programs *programs);

/* Puts a running program into the slot. Returns its id for the host. */
uint32_t programs_add(
        struct programs *programs, struct program *place, pid_t pid, bool is_last);

/* The program with the host's id `id`, if it has not exited. */
struct program *programs_find(struct programs *programs, uint32_t id);

/* The host has received its exit report. */
void programs_reported(struct program *program);

/* Records every process that has exited. */
void programs_reap(struct programs *programs);

/* Sends SIGTERM now, and SIGKILL to its whole group at `kill_ns`, even if it has exited. */
void programs_terminate(struct program *program, uint64_t kill_ns);

/* When the next group is to be killed; CLOCK_NEVER: none. */
uint64_t programs_next_kill(const struct programs *programs);

/* Kills the groups whose deadline has passed. */
void programs_kill(struct programs *programs);

/*
 * Calls kill_all() and waits for a process to exit, until none is left, so that the usage
 * includes those that were killed. Frozen processes must have been thawed, or be killed
 * already.
 */
void programs_end(struct programs *programs, void (*kill_all)(struct programs *));
