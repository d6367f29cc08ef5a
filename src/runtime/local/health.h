/* health.h - what this machine offers to sandboxes, and what is missing and why. */
#pragma once
#include <stdint.h>

struct runtime_health;

/*
 * Facts, and a reason with a remedy for each protection in `missing` that can be explained.
 * Probes run in short-lived children. See runtime_health().
 */
void health_explain(uint64_t missing, struct runtime_health *health);
