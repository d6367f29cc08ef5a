/* sweep.h - removes what killed keepers left. */
#pragma once

struct carrel_error;
struct registry;

/* Their entries in the registry, and the layers that they wrote to. */
int keeper_sweep(const struct registry *reg, struct carrel_error *err);

/*
 * The layers alone: of keepers whose entry was removed already, and of those that ended with
 * the machine. Costs next to nothing where no keeper was killed. `carrel cleanup` removes what
 * remains.
 */
void keeper_sweep_layers(const struct registry *reg);
