/*
 * guest.h - a conversation with the guest of a language, which runs beside the program.
 *
 * It uses the two streams beside the standard ones. carrel writes the task. The guest's first
 * line back is its findings, and it waits for a byte of carrel before it starts the program: a
 * program can open the other end of its pipes and take back what was not read yet. So the
 * findings are the guest's alone, and whatever follows is the program's word.
 */
#pragma once
#include "base/buf.h"
#include "base/loop.h"
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;
struct process;

struct guest {
    /* set by the caller */
    const char *task; /* NULL: there is no guest */
    size_t task_len;
    struct buf findings; /* each with its own maximum */
    struct buf report;
    /* what came of it */
    bool has_findings; /* a whole line of at most that length */
    /* its own */
    size_t written; /* of the task */
    struct process *process;
    struct loop_io on_task, on_report;
};

/* Takes part in the loop with the streams of `process`, which has just been started. */
int guest_begin(struct guest *guest, struct loop *loop, struct process *process,
        struct carrel_error *err);

/* The sandbox has ended: reads what is left in the stream, and leaves the loop. */
void guest_end(struct guest *guest);
void guest_finish(struct guest *guest);
