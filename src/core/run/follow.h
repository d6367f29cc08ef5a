/* follow.h - a program while it runs: its streams, its end, its deadline, signals to us. */
#pragma once
#include "base/auto.h"
#include "base/loop.h"
#include "core/run/pace.h"
#include "core/run/pump.h"
#include <carrel/run.h>
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct disk;
struct process;
struct sandbox;

struct follow {
    /* set by the caller, and the caller's */
    const struct carrel_run_options *options;
    struct sandbox *box;
    struct process *process;
    struct disk *disk;
    struct capture *out, *err;
    uint64_t deadline_ns; /* of the program; then of its grace */
    uint64_t cpu_milli;   /* the sandbox's limit, which the copying of output follows */
    bool is_visitor; /* the program is not ours to end: a signal only ends the attachment */
    bool may_linger; /* others may hold its streams when it has ended */
    /* what came of it */
    enum carrel_reason reason; /* when carrel ended it */
    bool has_status;
    int wait_status;
    int cancel_signal;
    bool is_ending; /* it was told to end */
    bool is_lost;   /* what became of it is not known */
    bool is_over;
    /* its own */
    struct loop loop;
    struct loop_io streams[3], box_events, signals;
    struct loop_timer deadline, disk_look, trim, rest;
    struct pace pace;
    uint64_t rest_ns;     /* until then no output is read; 0: it is */
    bool has_moved;       /* a stream did, in the last turn */
    bool is_flushing;     /* the program is over */
    bool is_flushed;      /* nothing came until the deadline */
    struct pump pumps[3]; /* stdin, stdout, stderr */
    int sinks[2];         /* the caller's stdout and stderr, opened anew; -1: as they are */
};

int follow_begin(struct follow *follow, struct carrel_error *err);

/* Until the program has ended or must end now. */
int follow_to_end(struct follow *follow, struct carrel_error *err);

/*
 * The sandbox is gone; passes on what it wrote and is still in the pipes. Where others may
 * linger: what is in them now.
 */
void follow_flush(struct follow *follow);

/* Puts what came of it into the result; result_set_reason() finds the rest. */
void follow_conclude(const struct follow *follow, struct carrel_run_result *result);

/* Why the caller's stdout or stderr did not take all of it; 0: they did, or were closed. */
int follow_output_error(const struct follow *follow);
void follow_finish(struct follow *follow);
