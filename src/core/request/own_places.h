/*
 * own_places.h - the directories of carrel's own: none of them is in a writable mount.
 *
 * A program that can write to the state has the journal, the layers and the workspaces of other
 * runs; with the settings it writes the policy of the next one. So a writable mount neither
 * holds one of these directories, or the place where one would be created, nor lies in one.
 */
#pragma once

struct carrel_error;

/* `fd`, O_PATH, is to be mounted writable; `path` is the kernel's. `option` is for messages. */
int own_places_check(int fd, const char *path, const char *option, struct carrel_error *err);
