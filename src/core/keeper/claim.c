/* claim.c - the policy's number of sandboxes, for the registry. */
#include "core/keeper/claim.h"
#include "base/err.h"
#include "base/str.h"
#include "core/keeper/sweep.h"
#include "core/state/state.h"
#include "git/name.h"
#include "policy/policy.h"
#include <errno.h>
#include <string.h>

#define LABEL_MAX 256

int keeper_claim(const struct claim_request *request, char id[static REGISTRY_WORD_MAX + 1],
        struct registry_entry **out, struct carrel_error *err)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    const struct registry_request wanted = {
        .id = id,
        .name = request->name,
        .max_living = policy_get(request->policy, POLICY_MAX_CONCURRENT)->number,
        .max_queued = policy_get(request->policy, POLICY_MAX_QUEUED)->number,
        .queue_ms = policy_get(request->policy, POLICY_QUEUE_TIME)->number,
        .requester = request->requester,
    };

    int r = state_new_id('S', id, err);
    if (r == 0)
        r = registry_open(&reg, err);
    if (r == 0)
        r = keeper_sweep(&reg, err);
    return r < 0 ? r : registry_claim(&reg, &wanted, out, err);
}

/* "K=V": the key is a name, the value any text of one line. */
static int check_label(const char *label, struct carrel_error *err)
{
    size_t len = strcspn(label, "=");
    char key[NAME_ID_MAX + 1];
    char shown[LABEL_MAX];

    if (label[len] == '=' && len > 0 && len < sizeof(key) && strlen(label) < LABEL_MAX) {
        memcpy(key, label, len);
        key[len] = '\0';
        if (name_check_id(key, "label", NULL) == 0)
            return 0;
    }
    return err_set(err, -EINVAL, "label '%s' is not NAME=VALUE of at most %d bytes",
            str_escape(label, strlen(label), shown, sizeof(shown)), LABEL_MAX - 1);
}

/* A key has one value: readers would differ in which of two they take. */
static int check_single(const char *const *labels, size_t at, struct carrel_error *err)
{
    const size_t len = strcspn(labels[at], "=") + 1;

    for (size_t i = 0; i < at; i++)
        if (strncmp(labels[i], labels[at], len) == 0)
            return err_set(
                    err, -EINVAL, "label '%.*s' is given twice", (int)len - 1, labels[at]);
    return 0;
}

int keeper_check_labels(const char *const *labels, struct carrel_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && labels && labels[i]; i++) {
        r = check_label(labels[i], err);
        if (r == 0)
            r = check_single(labels, i, err);
    }
    return r;
}
