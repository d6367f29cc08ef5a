/*
 * scratch.h - a bare git dir for one computation: objects of others, configuration of nobody.
 *
 * git obeys the configuration of the git dir it is given, and the user's may name merge drivers
 * and filters that a run's own attributes could then aim at content of the run's choosing. Here
 * there is nothing to aim: no driver is defined, and info/attributes takes back every attribute
 * that would convert a file. New objects stay in the scratch and go with it.
 */
#pragma once
#include "git/repo.h"

struct scratch {
    char *path;    /* the git dir */
    char *objects; /* its object directory; reads the repository's objects too */
};
void scratch_free(struct scratch *scratch); /* leaves the files: who gave `dir` removes it */
DEFINE_AUTO(struct scratch *, scratch_free)

/* Makes <dir>/git, where `dir` is an existing directory of the caller's own, absolute. It sees
 * the repository's objects and those of `quarantine`, when that is not NULL. */
int scratch_make(const struct repo *repo, const char *dir, const char *quarantine,
        struct scratch **out, struct carrel_error *err);

/* A scrubbed git on it. */
struct git scratch_git(const struct scratch *scratch);

/*
 * Makes its git convert files as the user's would, but for filters, which stay undefined: line
 * ends, encodings and idents, by the attributes of the commit and those that the user has
 * elsewhere. `user` is a git with the user's configuration. `attributes` receives a setting for
 * each call of the scratch's git, after "-c"; the caller frees it, also after a failure.
 */
int scratch_take_form(const struct scratch *scratch, const struct repo *repo,
        const struct git *user, char **attributes, struct carrel_error *err);
