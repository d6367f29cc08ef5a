/* appraise.c - prices and thresholds. */
#include "core/result/appraise.h"
#include "core/result/result.h"
#include "policy/policy.h"
#include <inttypes.h>
#include <stdio.h>

#define BYTES_PER_GB (1ULL << 30)

/* Billionths; a figure that is not known costs nothing. */
static uint64_t price(const struct policy *policy, enum policy_key key, long double amount)
{
    return (uint64_t)((long double)policy_get(policy, key)->number * amount);
}

static void put_cost(struct carrel_run_result *r, const struct policy *policy)
{
    const struct policy_value *currency = policy_get(policy, POLICY_PRICE_CURRENCY);
    const struct sandbox_usage *u = &r->usage;
    long double cpu_s = u->cpu_ms == USAGE_UNKNOWN ? 0 : (long double)u->cpu_ms / 1000;
    long double gb = u->peak_memory_bytes == USAGE_UNKNOWN
                             ? 0
                             : (long double)u->peak_memory_bytes / BYTES_PER_GB;

    r->has_cost = policy_get(policy, POLICY_PRICE_RUN)->is_set ||
                  policy_get(policy, POLICY_PRICE_CPU)->is_set ||
                  policy_get(policy, POLICY_PRICE_MEMORY)->is_set;
    if (!r->has_cost)
        return;
    r->cost_nano = policy_get(policy, POLICY_PRICE_RUN)->number +
                   price(policy, POLICY_PRICE_CPU, cpu_s) +
                   price(policy, POLICY_PRICE_MEMORY, gb * (long double)r->duration_ms / 1000);
    (void)snprintf(
            r->currency, sizeof(r->currency), "%s", currency->is_set ? currency->text : "USD");
}

static void warn(struct carrel_run_result *r, const struct policy *policy, enum policy_key key,
        const char *what, uint64_t used, uint64_t limit)
{
    const struct policy_value *threshold = policy_get(policy, key);
    size_t at = strlen(r->warning);

    if (!threshold->is_set || used == USAGE_UNKNOWN || limit == 0)
        return;
    uint64_t percent = (uint64_t)((long double)used * 100 / (long double)limit);
    if (percent >= threshold->number && at < sizeof(r->warning))
        (void)snprintf(r->warning + at, sizeof(r->warning) - at,
                "%s%s at %" PRIu64 "%% of its limit", at ? ", " : "", what, percent);
}

void appraise(struct carrel_run_result *r, const struct policy *policy)
{
    uint64_t cpu_ms = r->limits[LIMIT_CPU] * r->duration_ms / 1000; /* that could be had */

    put_cost(r, policy);
    warn(r, policy, POLICY_MONITOR_MEMORY, "memory", r->usage.peak_memory_bytes,
            r->limits[LIMIT_MEMORY]);
    warn(r, policy, POLICY_MONITOR_CPU, "cpu", r->usage.cpu_ms, cpu_ms);
    warn(r, policy, POLICY_MONITOR_PIDS, "pids", r->usage.peak_pids, r->limits[LIMIT_PIDS]);
    warn(r, policy, POLICY_MONITOR_DISK, "disk", r->usage.written_bytes, r->limits[LIMIT_DISK]);
}
