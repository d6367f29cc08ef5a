/*
 * files_watch.h - watches a directory of a sandbox.
 *
 * The kernel sends inotify events to the holder of the descriptor; the path is resolved inside.
 */
#pragma once
#include "core/files/file_access.h"
#include <stdbool.h>

enum watch_kind {
    WATCH_READY, /* from here on nothing is missed */
    WATCH_CREATE,
    WATCH_WRITE,
    WATCH_REMOVE,
    WATCH_RENAME,   /* within the watched tree; else it is a create or a remove */
    WATCH_CHMOD,    /* permissions, times or owner */
    WATCH_OVERFLOW, /* the kernel's queue overflowed: events were missed */
};
const char *watch_kind_name(enum watch_kind kind); /* "create" ... */

struct watch_event {
    enum watch_kind kind;
    const char *path; /* begins with the requested path */
    const char *to;   /* of a rename; else NULL */
    bool is_directory;
};

/* 0: continue; 1: stop; negative: failed. */
typedef int (*watch_each)(
        const struct watch_event *event, void *context, struct carrel_error *err);

/*
 * Reports changes to a file, or to the content of a directory, until `each` stops, the watched
 * path itself is removed or the sandbox ends. With subdirectories: those too, and new ones;
 * what was created in a new one before it was watched is reported as created, perhaps twice.
 */
int files_watch(struct file_access *access, const char *path, bool with_subdirectories,
        watch_each each, void *context, struct carrel_error *err);
