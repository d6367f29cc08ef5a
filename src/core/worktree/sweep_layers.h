/* sweep_layers.h - removing layers that nothing needs any more. */
#pragma once

struct carrel_error;

/* Removes the layers that no process has locked and no workspace or snapshot names. Returns how
 * many. */
int sweep_layers(const char *state, struct carrel_error *err);

/* Those of this user's state directory; a failure is left to the next sweep. */
void sweep_own_layers(void);
