/* run_dir.h - the directories of runs, as files. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;

/* STATE/runs; *fd is -1 if nothing was ever kept. */
int run_dir_open_all(int *fd, struct carrel_error *err);

/* Calls `each` for every regular file below, two levels deep; links are not followed. */
void run_dir_each(
        int dir, void (*each)(const char *name, uint64_t bytes, void *context), void *context);

uint64_t run_dir_bytes(int dir);

/*
 * Locks the run as the run itself would: nothing of it is being written, and it cannot be
 * continued while the descriptor is open. -1: it is in progress.
 */
int run_dir_hold(int dir);

/* Removes everything except the journal. True: there was something. */
bool run_dir_drop_artifacts(int dir);
