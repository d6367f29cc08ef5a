/* workspace_print.h - workspaces and their changes as text and as JSON. */
#pragma once
#include "cli/print/span.h"
#include <carrel/workspace.h>
#include <stdint.h>

struct json;

/* "12s" "5m" "30h" "9d" */
const char *workspace_age(int64_t created_s, char text[static SPAN_MAX]);

/* "72 KB", rounded */
const char *workspace_size(uint64_t bytes, char text[static 16]);

/* State with what else holds: "kept", "kept,locked", "committed,open". */
const char *workspace_state_text(
        const struct carrel_workspace_info *info, char text[static 64]);

/* "overlay" "copy" */
const char *workspace_tree_name(enum carrel_tree tree);

/* Prints bytes that a run may have chosen, safe on a terminal and on one line. */
void workspace_put(const char *text);

/* "3 files changed, +10 -2, 1 commit"; "nothing changed" only without other commits, too */
void workspace_put_summary(
        const struct carrel_workspace_changes *changes, uint64_t n_other_commits);

/* name ("T/R"), run and task, into the object that is open. */
void workspace_write_name(struct json *json, const struct carrel_workspace_info *info);

/* These and all else that is known of a workspace. */
void workspace_write(struct json *json, const struct carrel_workspace_info *info);

/* An object `key`: files, added, removed, commits, rewritten. */
void workspace_write_summary(
        struct json *json, const char *key, const struct carrel_workspace_changes *changes);
