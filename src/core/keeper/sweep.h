/* sweep.h - what keepers that were killed have left. */
#pragma once

struct carrel_error;
struct registry;

/* Takes it away: their entries, and the layers that they wrote to. */
int keeper_sweep(const struct registry *reg, struct carrel_error *err);

/*
 * The layers alone: of those whose entry somebody took away, and of those that ended with the
 * machine. Costs next to nothing where nobody died. What cannot go now goes with a cleanup.
 */
void keeper_sweep_layers(const struct registry *reg);
