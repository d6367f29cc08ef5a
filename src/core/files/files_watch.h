/*
 * files_watch.h - what changes in a directory of a sandbox, as it happens.
 *
 * The kernel tells whoever holds the notes (inotify); where to look is resolved inside.
 */
#pragma once
#include "core/files/file_access.h"
#include <stdbool.h>

enum watch_kind {
    WATCH_READY, /* from here on nothing is missed */
    WATCH_CREATE,
    WATCH_WRITE,
    WATCH_REMOVE,
    WATCH_RENAME,   /* within what is watched; else it is a create or a remove */
    WATCH_CHMOD,    /* permissions, times or owner */
    WATCH_OVERFLOW, /* more happened than could be noted: something was missed */
};
const char *watch_kind_name(enum watch_kind kind); /* "create" ... */

struct watch_event {
    enum watch_kind kind;
    const char *path; /* begins with the path that was asked for */
    const char *to;   /* of a rename; else NULL */
    bool is_directory;
};

/* 0: go on; 1: enough; negative: failed. */
typedef int (*watch_each)(
        const struct watch_event *event, void *context, struct carrel_error *err);

/*
 * Tells of changes to a file, or to what is in a directory, until `each` has enough, the thing
 * itself is removed or the sandbox ends. With subdirectories: those too, and those that come;
 * what was made in a new one before it was looked at is told of as created, some of it twice.
 */
int files_watch(struct file_access *access, const char *path, bool with_subdirectories,
        watch_each each, void *context, struct carrel_error *err);
