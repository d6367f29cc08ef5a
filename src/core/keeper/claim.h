/* claim.h - an entry in the registry for a sandbox that is to be made. */
#pragma once
#include "registry/registry.h"

struct carrel_error;
struct policy;

struct claim_request {
    const char *name;            /* NULL: none */
    const struct policy *policy; /* how many may live at once, and how many may wait */
    const int *requester;        /* see struct registry_request */
};

/* Chooses its id. Waits while the policy's number is reached. See registry_claim(). */
int keeper_claim(const struct claim_request *request, char id[static REGISTRY_WORD_MAX + 1],
        struct registry_entry **out, struct carrel_error *err);

/* "NAME=VALUE" each, NULL at the end; NULL: none. -EINVAL. */
int keeper_check_labels(const char *const *labels, struct carrel_error *err);
