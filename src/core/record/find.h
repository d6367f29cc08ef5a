/* find.h - finds journals and their keys. */
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

/* A journal that the caller asked for. */
struct journal_ref {
    int fd;                          /* -1: the index knows the run, and its file is missing */
    char run[JOURNAL_RUN];           /* "": named by its path, not by its run */
    const struct journal_run *entry; /* the index entry of the run; may be NULL */
    bool is_index;                   /* the file is an index */
};
void journal_ref_finish(struct journal_ref ref);
DEFINE_AUTO(struct journal_ref, journal_ref_finish)

/*
 * Resolves a word: the id of a run (T/R is T+R), a unique prefix of one, or the path of a file.
 * -ENOENT: none; -EINVAL: an ambiguous prefix.
 */
int journals_find(const struct journals *journals, const char *word, struct journal_ref *out,
        struct carrel_error *err);

/* Opens the journal of a run. If the index knows the run but the file is missing, fd is -1. */
int journals_open_run(const struct journals *journals, const char *run, struct journal_ref *out,
        struct carrel_error *err);

/* Verifies it: a run against its index entry, a file alone. `trust` may be NULL. */
int journals_verify(const struct journal_ref *ref, const struct journal_trust *trust,
        struct journal_verdict *out, struct carrel_error *err);

/* The runs that have a journal and are not in the index; the caller frees the array. */
int journals_strays(const struct journals *journals, char (**out)[JOURNAL_RUN], size_t *n,
        struct carrel_error *err);

/*
 * The key whose signatures count: that in the file `path`, which must exist; without a path the
 * user's own, if there is one. Returns 1, or 0: any key is accepted.
 */
int journals_trust(const char *path, struct journal_trust *out, struct carrel_error *err);
