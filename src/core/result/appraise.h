/* appraise.h - what a run cost, and how near it came to its limits. */
#pragma once

struct carrel_run_result;
struct policy;

/*
 * Fills in the cost by the policy's prices, where there are any, and notes the limits of which
 * more was used than the policy's thresholds say.
 */
void appraise(struct carrel_run_result *result, const struct policy *policy);
