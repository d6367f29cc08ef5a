/* record.h - struct workspace in memory: made, read from its directory, freed. */
#pragma once
#include "workspace/workspace.h"

struct store;

/* The store of all workspaces, made if it is missing; and the name of one in it. */
int record_make_store(const char *state, struct store *out, struct carrel_error *err);
#define RECORD_NAME_MAX (2 * (NAME_ID_MAX + 1))
void record_name(const struct workspace *ws, char name[static RECORD_NAME_MAX]);

/* With everything empty. */
struct workspace *record_new(void);

/*
 * Reads what the directory `dir` says; the record is of <store>/<name>. `dir` becomes the
 * workspace's. A record that is damaged (the machine stopped before it was on disk) is no
 * failure: there may be work beside it. Then `repo` is empty and `note` says so.
 */
int record_load(int dir, const char *store, const char *name, struct workspace **out,
        struct carrel_error *err);

/* The same for one in .tmp, whose `dir` stays the caller's: task and run are what its record
 * says, empty when that is damaged. */
int record_load_removed(
        int dir, const char *store, struct workspace **out, struct carrel_error *err);

/* Reads it anew. */
int record_reload(struct workspace *ws, struct carrel_error *err);

/* The file whose presence says that a workspace is half made. */
#define RECORD_CREATING "creating"

/* Takes the lock of the workspace: a flock on its directory. Returns the descriptor;
 * -EWOULDBLOCK: another process holds it. */
int record_try_lock(int dir);
