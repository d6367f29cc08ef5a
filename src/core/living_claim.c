/* living_claim.c - what the policy says of many sandboxes, for the registry. */
#include "core/living_claim.h"
#include "core/state.h"
#include "core/sweep_layers.h"
#include "policy/policy.h"
#include <limits.h>

int living_claim(const struct living_place *place, char id[static REGISTRY_WORD_MAX + 1],
        struct registry_entry **out, struct carrel_error *err)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    const struct registry_request request = {
        .id = id,
        .name = place->name,
        .max_living = policy_get(place->policy, POLICY_MAX_CONCURRENT)->number,
        .max_queued = policy_get(place->policy, POLICY_MAX_QUEUED)->number,
        .queue_ms = policy_get(place->policy, POLICY_QUEUE_TIME)->number,
    };
    char state[PATH_MAX];

    int r = state_new_id('S', id, err);
    if (r == 0)
        r = registry_open(&reg, err);
    if (r == 0)
        r = registry_sweep(&reg, err);
    if (r > 0 && state_path(state, sizeof(state), NULL) == 0)
        (void)sweep_layers(state, NULL); /* what the dead wrote; else by the next cleanup */
    return r < 0 ? r : registry_claim(&reg, &request, out, err);
}
