/*
 * review.h - records in the run's journal what people do with its workspace after the run.
 *
 * A run that was not recorded has no journal, and none is created for it.
 */
#pragma once

struct carrel_error;
struct recorder;
struct workspace;

/* Before the step: one record and a seal, `recorder->seal`, for a commit to name. */
int review_begin(const struct workspace *ws, const char *event, struct recorder *recorder,
        struct carrel_error *err);

/* After the step: the same again. */
int review_end(const struct workspace *ws, const char *event, struct recorder *recorder,
        struct carrel_error *err);

/* Before a discard: the record comes first or, if the disk is full, again afterwards. */
int review_discard(const struct workspace *ws, struct carrel_error *err);
