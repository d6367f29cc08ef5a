/*
 * carry.h - files of the user's that git does not track and a run needs all the same, such as
 * .env: by name or not at all.
 */
#pragma once

struct carrel_error;
struct workplace;
struct workplace_request;

/* Copies into `tree` what the options and the repository's .worktreeinclude name. */
int carry_files(const struct workplace_request *q, struct workplace *place, int tree,
        struct carrel_error *err);
