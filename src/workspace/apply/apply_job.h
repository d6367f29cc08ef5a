/* apply_job.h - the state of one apply, shared by apply.c, apply_plan.c and apply_form.c. */
#pragma once
#include "base/buf.h"
#include "git/delta.h"
#include "git/scratch.h"
#include "git/status.h"
#include "workspace/apply/apply.h"
#include "workspace/apply/swap.h"

#define APPLY_MAX_BYTES ((size_t)1 << 30)

struct apply_look {
    enum survey_kind kind;
    struct stat st;
};

struct apply_job {
    const struct repo *repo;
    const char *base, *tip;
    enum apply_how how;
    struct apply_outcome *out;
    struct swap *swap;
    struct scratch *scratch;
    struct git git; /* scrubbed; creates objects where `how` needs them */
    struct survey survey;
    struct delta_list wanted;  /* base..tip, for APPLY_FILES */
    struct delta_list changes; /* the difference from the user's state to the result */
    struct apply_look *looks;  /* the state of the work tree, one for each change */
    struct swap_item *items;   /* the changes to the work tree */
    size_t n_items;
    size_t n_submodules; /* that will be recorded at another commit */
    struct buf sparse;   /* paths that the user's sparse checkout leaves out, NUL-terminated */
    char commit[OID_MAX];
    char result[OID_MAX]; /* the tree, if there is no commit */
    char *attributes;     /* setting with the user's own attributes; see apply_form() */
    char *new_index;      /* of the whole result */
};

int apply_add_conflict(
        struct apply_outcome *out, const char *path, const char *why, struct carrel_error *err);

/* Computes the result (job->commit, if there is one) and from it job->changes. */
int apply_combine(struct apply_job *job, struct carrel_error *err);

/* Computes the changes to the work tree (job->items), or the conflicts. */
int apply_judge(struct apply_job *job, struct carrel_error *err);

/*
 * Makes the scratch's git convert files as the user's would, except filters. A path that a
 * filter of the user would convert becomes a conflict.
 */
int apply_form(struct apply_job *job, struct carrel_error *err);

/* Writes the new files, converted, to where the exchange expects them. */
int apply_stage(struct apply_job *job, struct carrel_error *err);
