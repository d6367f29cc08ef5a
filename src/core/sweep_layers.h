/* sweep_layers.h - layers that nobody has any more. */
#pragma once

struct carrel_error;

/* Removes them. Returns how many. */
int sweep_layers(const char *state, struct carrel_error *err);
