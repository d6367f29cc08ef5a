/* find.h - where journals and their keys are, and which one is meant. */
#pragma once
#include "journal/runs.h"
#include <limits.h>

/* The directory of all runs. */
int journals_path(char path[static PATH_MAX], struct carrel_error *err);

struct journals {
    int dir; /* of all runs; -1: there is none yet */
    struct journal_runs *runs;
};
int journals_open(struct journals **out, struct carrel_error *err);
void journals_close(struct journals *journals); /* NULL is fine */
DEFINE_AUTO(struct journals *, journals_close)

/* A journal that somebody asked for. */
struct journal_ref {
    int fd;                          /* -1: the index knows the run, and its file is gone */
    char run[JOURNAL_RUN];           /* "": it is a file, and not by its run */
    const struct journal_run *entry; /* what the index says of the run; may be NULL */
    bool is_index;                   /* the file is an index */
};
void journal_ref_finish(struct journal_ref ref);
DEFINE_AUTO(struct journal_ref, journal_ref_finish)

/*
 * What a word means: the id of a run (T/R is T+R), the beginning of just one, or the path of a
 * file. -ENOENT: none; -EINVAL: the beginning of several.
 */
int journals_find(const struct journals *journals, const char *word, struct journal_ref *out,
        struct carrel_error *err);

/* Opens the journal of a run. One that the index knows may be gone: then fd is -1. */
int journals_open_run(const struct journals *journals, const char *run, struct journal_ref *out,
        struct carrel_error *err);

/*
 * Verifies it: a run together with what the index says of it, a file alone. `trust` may be
 * NULL.
 */
int journals_verify(const struct journal_ref *ref, const struct journal_trust *trust,
        struct journal_verdict *out, struct carrel_error *err);

/* The runs that have a journal and are not in the index; the caller frees the array. */
int journals_strays(const struct journals *journals, char (**out)[JOURNAL_RUN], size_t *n,
        struct carrel_error *err);

/* Makes the user's pair of keys and tells where. -EEXIST: there is one. */
int journals_make_key(char public_hex[static JOURNAL_KEY], char path[static PATH_MAX],
        struct carrel_error *err);

/* $XDG_CONFIG_HOME/carrel/journal.key, or the one in ~/.config; the other is beside it, .pub.
 */
int journals_key_path(char path[static PATH_MAX], struct carrel_error *err);

/*
 * Whose signatures count: those of the key in the file `path`, which then must be there;
 * without a path the user's own, where there is one. Returns 1, or 0: those of anybody.
 */
int journals_trust(const char *path, struct journal_trust *out, struct carrel_error *err);
