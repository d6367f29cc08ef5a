/*
 * programs.h - in init: what the host started, and the end of everything in the sandbox.
 *
 * Every process of the sandbox is reaped here, orphans too. Nothing is allocated: init is a
 * fork of its caller without exec.
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
    bool is_reported; /* but held, see reap_started() */
    bool is_with_all; /* it is to end with the sandbox */
    int status;
    uint64_t kill_ns; /* when its group is killed; 0: nobody asked for that */
};

struct programs {
    bool is_over;  /* one that was to be the last has ended */
    bool is_alone; /* as far as we know: no process but us */
    uint32_t last_id;
    size_t n_running;
    size_t n; /* slots ever used: looking at more would only touch memory */
    struct program all[PROGRAMS_MOST];
};

/* A place for one more; NULL: there is none. */
struct program *programs_place(struct programs *programs);

/* It runs, and takes the place. Returns what the host will call it. */
uint32_t programs_add(
        struct programs *programs, struct program *place, pid_t pid, bool is_last);

/* The one that the host calls `id`, if it has not ended. */
struct program *programs_find(struct programs *programs, uint32_t id);

/* The host has heard of its end. */
void programs_reported(struct program *program);

/* Takes note of everybody who has ended. */
void programs_reap(struct programs *programs);

/* SIGTERM now, and SIGKILL to all of its group at `kill_ns`, whatever became of it. */
void programs_terminate(struct program *program, uint64_t kill_ns);

/* When the next group is to be killed; CLOCK_NEVER: none is. */
uint64_t programs_next_kill(const struct programs *programs);

/* Kills the groups whose time has come. */
void programs_kill(struct programs *programs);

/*
 * Ends every process and waits for each, so that the figures count those too that were killed.
 * What is frozen must not be any more, or be killed already.
 */
void programs_end(struct programs *programs);
