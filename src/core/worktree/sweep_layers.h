/* sweep_layers.h - layers that nobody has any more. */
#pragma once

struct carrel_error;

/* Removes them. Returns how many. */
int sweep_layers(const char *state, struct carrel_error *err);

/* Those of this user's state directory; what cannot go now goes another time. */
void sweep_own_layers(void);
