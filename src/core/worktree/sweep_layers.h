/* sweep_layers.h - removing layers that nothing needs any more. */
#pragma once

struct carrel_error;
struct workspace;

/* Removes the layers that no process has locked and no workspace or snapshot names. Returns how
 * many. */
int sweep_layers(const char *state, struct carrel_error *err);

/* Those of this user's state directory; a failure is left to the next sweep. */
void sweep_own_layers(void);

/* workspace_discard(), and the layers that only this workspace had. */
int discard_with_layers(const char *state, struct workspace *ws, struct carrel_error *err);
