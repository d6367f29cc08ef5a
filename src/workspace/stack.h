/*
 * stack.h - workspaces that lie on sealed layers.
 *
 * What a run changed can become the base of further workspaces without being copied: upper/ and
 * gitupper/ change places with the empty ones of a new layer, which lies below the workspace
 * from then on, and below as many others as are made of it. A layer has the names "upper" and
 * "gitupper" for them, too. Whose directory that is, and how long it stays, is the caller's
 * matter; the record of a workspace names its layers.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;
struct lower;
struct workspace;

#define STACK_MAX 40
#define STACK_ID_MAX 24

/* The layers that the record names, topmost first. Returns how many; -EBADMSG: no such list. */
int stack_list(const struct workspace *ws, char ids[static STACK_MAX][STACK_ID_MAX]);

/* The record's line for `n` of them, which the caller frees; NULL when memory is gone. */
char *stack_text(char ids[][STACK_ID_MAX], size_t n);

/* Whether nothing was written since the last layer. */
bool stack_is_fresh(const struct workspace *ws);

/*
 * Puts the workspace on the layer `id`, whose directory `layer` has an empty upper/, and an
 * empty gitupper/ unless it is a folder's. Nothing may have the workspace mounted, and the
 * caller has its lock. First the record names the layer, which shows nothing as long as it is
 * empty; then each pair of directories changes places in one step. So a crash in between loses
 * nothing and leaves nothing to be repaired.
 */
int stack_put(struct workspace *ws, int layer, const char *id, struct carrel_error *err);

/* The record names these layers instead, which show the same together. */
int stack_replace(
        struct workspace *ws, char ids[][STACK_ID_MAX], size_t n, struct carrel_error *err);
