/* store.h - the directory of the layers, and who may touch what in it; for this folder alone.
 */
#pragma once
#include "base/auto.h"
#include "base/fd.h"

struct carrel_error;

#define STORE_OLD ".old-"

/* The directory, made if need be. */
int layer_store_open(const char *state, struct carrel_error *err);

/*
 * The gate: whoever finds or makes a layer holds it shared until the layer's own lock is held,
 * whoever takes layers away holds it alone. Waits. Returns a descriptor.
 */
enum store_gate { GATE_SHARED, GATE_ALONE };
int layer_store_pass(int layers, enum store_gate gate, struct carrel_error *err);

/* A layer's own lock, in its directory. -EWOULDBLOCK: somebody else's is in the way. */
int layer_store_lock_shared(int layer);
int layer_store_lock_alone(int lock);

/* Waits until nobody else merges layers. Returns a descriptor, which ends the turn. */
int layer_store_take_turn(int layers, struct carrel_error *err);
