/* state.h - where carrel keeps what outlives a run. */
#pragma once
#include <stddef.h>

struct carrel_error;

/* $XDG_STATE_HOME/carrel, ~/.local/state/carrel, or /var/lib/carrel for root. */
int state_path(char *path, size_t size, struct carrel_error *err);

/* Makes it, and what is missing above it. */
int state_make(const char *path, struct carrel_error *err);

/* A fresh id: "R-" and 16 unguessable letters and digits. */
int state_new_id(char prefix, char id[static 20], struct carrel_error *err);
