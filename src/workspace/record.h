/* record.h - struct workspace in memory: made, read from its directory, freed. */
#pragma once
#include "workspace/workspace.h"

/* With everything empty. */
struct workspace *record_new(void);

/*
 * Reads what the directory `dir` says; the record is of <store>/<name>. `dir` becomes the
 * workspace's. A record that is damaged (the machine stopped before it was on disk) is no
 * failure: there may be work beside it. Then `repo` is empty and `note` says so.
 */
int record_load(int dir, const char *place, const char *task, const char *run,
        struct workspace **out, struct carrel_error *err);

/* The same for one in .tmp, whose `dir` stays the caller's: task and run are what its record
 * says, empty when that is damaged. */
int record_load_removed(
        int dir, const char *place, struct workspace **out, struct carrel_error *err);

/* Reads it anew. */
int record_reload(struct workspace *ws, struct carrel_error *err);

/* The file whose presence says that a workspace is half made. */
#define RECORD_CREATING "creating"
