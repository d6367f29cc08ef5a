/*
 * status.h - the state of the user's work tree at certain paths, before anything is written
 * there.
 *
 * git itself answers whether a file is as it was committed (line ends, filters and all), with
 * the user's configuration and on the user's own files; it works on a copy of the index, and
 * objects that it creates for the comparison stay in the scratch directory.
 */
#pragma once
#include "git/delta.h"
#include "git/scratch.h"
#include <sys/stat.h>

struct survey {
    char *index;        /* path of the copy: after survey_paths, the work tree at these paths */
    bool has_commit;    /* false: before the first commit */
    char head[OID_MAX]; /* the user's commit, or the empty tree before the first one */
    struct git git;     /* as the user, on that copy */
    struct delta_list staged;  /* HEAD against the index */
    struct delta_list present; /* HEAD against the copy */
    int top;
};
void survey_finish(struct survey *survey);

/* `dir`: a directory of the caller. The scratch must outlive the survey. */
int survey_open(const struct repo *repo, const struct scratch *scratch, const char *dir,
        int top, struct survey *out, struct carrel_error *err);

/* Updates the copy at the paths of `list`, and then `present`. */
int survey_paths(
        struct survey *survey, const struct delta_list *list, struct carrel_error *err);

/* The copy as a tree, in the scratch. */
int survey_tree(
        const struct survey *survey, char tree[static OID_MAX], struct carrel_error *err);

/* Copies the user's index unchanged to the file `to`; creates none if there is none. */
int survey_copy_index(const struct repo *repo, const char *to, struct carrel_error *err);

enum survey_kind {
    SURVEY_NOTHING,
    SURVEY_FILE, /* or a link; `st` is set */
    SURVEY_DIRECTORY,
    SURVEY_BLOCKED, /* a file or link where a directory of its path should be */
    SURVEY_MOUNT,   /* a mount is in its path */
    SURVEY_SPECIAL, /* fifo, socket, device */
};
int survey_look(int top, const char *path, enum survey_kind *kind, struct stat *st,
        struct carrel_error *err);
