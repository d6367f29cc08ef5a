/*
 * files_watch.h - watches a directory of a sandbox: the handle of carrel_watch_next().
 *
 * The kernel sends inotify events to the holder of the descriptor; the path is resolved inside.
 */
#pragma once
#include "base/auto.h"
#include "core/files/file_access.h"
#include <carrel/files.h>

DEFINE_AUTO(struct carrel_watch *, carrel_watch_free)

/*
 * carrel_watch_open(), for any access to files. On success the watch owns *access, and closes
 * it when it is freed; its box, if it has one, is not used for anything else meanwhile.
 */
int files_watch_open(struct file_access *access, const char *path, bool with_subdirectories,
        struct carrel_watch **out, struct carrel_error *err);
