/*
 * scratch.h - a bare git dir for one computation: it reads the repository's objects but not its
 * configuration.
 *
 * git uses the configuration of its git dir. The user's may name merge drivers and filters,
 * which a run's own attributes could then apply to content of the run's choice. In a scratch no
 * driver is defined, and info/attributes unsets every attribute that would convert a file. New
 * objects stay in the scratch and are removed with it.
 */
#pragma once
#include "git/repo.h"

struct scratch {
    char *path;    /* the git dir */
    char *objects; /* its object directory; reads the repository's objects too */
};
void scratch_free(struct scratch *scratch); /* the owner of `dir` removes the files */
DEFINE_AUTO(struct scratch *, scratch_free)

/*
 * Creates <dir>/git, where `dir` is an existing, absolute directory of the caller. It sees the
 * repository's objects and those of `quarantine`, if that is not NULL.
 */
int scratch_make(const struct repo *repo, const char *dir, const char *quarantine,
        struct scratch **out, struct carrel_error *err);

/* A scrubbed git on it. */
struct git scratch_git(const struct scratch *scratch);

/*
 * Makes its git convert files as the user's would, except filters, which stay undefined: line
 * ends, encodings and idents, by the attributes of the commit and the user's own. `user` is a
 * git with the user's configuration. `attributes` receives a setting that each call of the
 * scratch's git must pass after "-c"; the caller frees it, also after a failure.
 */
int scratch_take_form(const struct scratch *scratch, const struct repo *repo,
        const struct git *user, char **attributes, struct carrel_error *err);
