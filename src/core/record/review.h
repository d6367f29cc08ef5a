/*
 * review.h - what people do with a workspace when its run is over, in the run's journal.
 *
 * A run that was not recorded has no journal, and none is begun for it.
 */
#pragma once

struct carrel_error;
struct recorder;
struct workspace;

/* It is asked for: one record and a seal, `evidence->seal`, for a commit to name. */
int review_begin(const struct workspace *ws, const char *event, struct recorder *recorder,
        struct carrel_error *err);

/* It was done: the same again. */
int review_end(const struct workspace *ws, const char *event, struct recorder *recorder,
        struct carrel_error *err);

/* It will be discarded: the record comes first, or, where the disk is full, again after. */
int review_discard(const struct workspace *ws, struct carrel_error *err);
