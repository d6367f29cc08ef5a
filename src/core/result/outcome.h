/* outcome.h - what becomes of a run's workspace when the run is over. */
#pragma once
#include "base/buf.h"
#include "base/json.h"
#include "workspace/apply/apply.h"
#include "workspace/harvest/harvest.h"
#include "workspace/harvest/upper.h"
#include "workspace/workspace.h"
#include <carrel/run.h>

struct carrel_error;

struct outcome {
    char task[NAME_ID_MAX + 1];
    char branch[NAME_BRANCH_MAX]; /* empty: a folder */
    char base[OID_MAX];
    char tip[OID_MAX];
    char snapshot[OID_MAX];
    char *path; /* of the workspace's directory */
    const char *tree;
    const char *state;             /* "kept" "committed" "applied" "discarded" "conflict" */
    struct carrel_error unread;    /* why it was kept as it is; code 0: it was read */
    struct carrel_error no_branch; /* why its commits are on no branch; code 0: no reason */
    bool has_branch;               /* its own commits are on its branch */
    struct harvest_summary summary;
    struct oddity *oddities;
    size_t n_oddities;
    uint64_t n_other_commits; /* commits that only its git dir has */
    struct apply_outcome applied;
};
void outcome_free(struct outcome *outcome);
DEFINE_AUTO(struct outcome *, outcome_free)

bool outcome_is_unread(const struct outcome *outcome);

/* As the result's "workspace" member. */
void outcome_write_json(const struct outcome *outcome, const char *run, struct json *json);

/* A member that counts something of the changes: null where they were not read. */
void outcome_write_count(
        const struct outcome *outcome, struct json *json, const char *key, uint64_t n);

/* A few lines for people. */
void outcome_write_text(const struct outcome *outcome, const char *run, struct buf *text);
