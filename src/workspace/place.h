/*
 * place.h - the directory of all workspaces, where ids are taken and given back.
 *
 *   <state>/workspaces/.new/<unique>         being filled
 *   <state>/workspaces/<task>/<run>          a workspace
 *   <state>/workspaces/.trash/<unique>.<end> discarded; see enum place_end
 *
 * One rename takes an id and one rename gives it back, so a workspace always has its lock and
 * its record, and no name is ever half of one.
 *
 * The gate is a flock on .new: shared while an id is being taken, exclusive while one is given
 * back and while leftovers of the dead are told from the drafts of the living. It is held for
 * microseconds, and never while files are removed or git is asked.
 */
#pragma once
#include "base/auto.h"
#include <stddef.h>

struct carrel_error;

struct place {
    char *path; /* <state>/workspaces */
    int top;
    int drafts; /* .new */
    int trash;
};
#define PLACE_INIT                                                                             \
    {                                                                                          \
        .top = -1, .drafts = -1, .trash = -1                                                   \
    }

/* Makes what is missing. */
int place_open(const char *state, struct place *out, struct carrel_error *err);
void place_finish(struct place place);
DEFINE_AUTO(struct place, place_finish)

/* Returns a descriptor whose closing opens the gate again. `operation` as flock() takes it;
 * -EWOULDBLOCK with LOCK_NB. */
int place_close_gate(const struct place *place, int operation, struct carrel_error *err);

/* A name that nobody else uses, for .new and .trash. */
#define PLACE_NAME_MAX 64
int place_unique(char name[static PLACE_NAME_MAX], struct carrel_error *err);

/* What is still to be done about something in the trash; the end of its name says it. */
enum place_end {
    PLACE_UNDONE,    /* half made: its branch goes if at base */
    PLACE_DISCARDED, /* its branch goes if nothing is lost by that */
    PLACE_FILES,     /* the repository knows nothing of it any more: only files are left */
};
const char *place_end_name(enum place_end end); /* "undone" "discarded" "files" */

/* "<task>/<run>" as a path below the place, to be given to openat and the like. */
#define PLACE_ID_MAX 160
void place_id(const char *task, const char *run, char path[static PLACE_ID_MAX]);

/* Removes the directory of a task that has no workspace. The gate must be closed exclusively: a
 * creator makes that directory first and then moves its draft there. */
void place_prune_task(const struct place *place, const char *task);
