/* sweep_layers.c - asks everyone who may name a layer. */
#include "core/sweep_layers.h"
#include "core/restack.h"
#include "layer/layer.h"
#include <stdint.h>

int sweep_layers(const char *state, struct carrel_error *err)
{
    return layer_sweep(state, restack_names, (void *)(uintptr_t)state, err);
}
