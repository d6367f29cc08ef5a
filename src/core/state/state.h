/* state.h - where carrel keeps what outlives a run. */
#pragma once
#include "base/id.h"
#include <stddef.h>

struct carrel_error;

/* $XDG_STATE_HOME/carrel, ~/.local/state/carrel, or /var/lib/carrel for root. */
int state_path(char *path, size_t size, struct carrel_error *err);

/* A file of the user's settings: in $XDG_CONFIG_HOME/carrel or ~/.config/carrel. */
int state_config_path(const char *name, char *path, size_t size, struct carrel_error *err);

/* Creates it, with missing parents. */
int state_make(const char *path, struct carrel_error *err);

/*
 * The name of a run's directory. An id that carrel generated is unique; an id of the caller is
 * unique only within its task.
 */
#define STATE_KEY_MAX 256
void state_run_key(const char *task, const char *run, char key[static STATE_KEY_MAX]);

/* A new id: "R-" and 16 unguessable letters and digits. */
int state_new_id(char prefix, char id[static ID_SIZE], struct carrel_error *err);
