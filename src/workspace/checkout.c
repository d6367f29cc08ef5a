/*
 * checkout.c - finding entries of the cache.
 *
 * It is on the way of every start, so it costs microseconds: a few opens, a shared lock and a
 * small file for each layer.
 */
#include "workspace/checkout.h"
#include "base/err.h"
#include "base/fd.h"
#include "workspace/checkout_facts.h"
#include "workspace/name.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void checkout_free(struct checkout *checkout)
{
    if (!checkout)
        return;
    for (size_t i = 0; checkout->lower && checkout->lower[i]; i++)
        free(checkout->lower[i]);
    for (size_t i = 0; i < checkout->n_below; i++)
        fd_close(checkout->below_leases[i]);
    fd_close(checkout->lease);
    free(checkout->below_leases);
    free(checkout->lower);
    free(checkout->path);
    free(checkout->git);
    free(checkout->tree);
    free(checkout);
}

/* Empty, with room for the deepest stack. */
static struct checkout *checkout_new(void)
{
    AUTO(checkout_free) struct checkout *checkout = calloc(1, sizeof(*checkout));

    if (!checkout)
        return NULL;
    checkout->lease = -1;
    checkout->lower = calloc(CHECKOUT_MAX_DEPTH + 2, sizeof(checkout->lower[0]));
    checkout->below_leases = calloc(CHECKOUT_MAX_DEPTH + 1, sizeof(checkout->below_leases[0]));
    if (!checkout->lower || !checkout->below_leases)
        return NULL;
    return ptr_steal(&checkout);
}

/* The entry itself, on top of the stack. */
static int take_top(struct checkout *checkout, const char *place, const char *commit,
        struct checkout_hold *hold)
{
    checkout->path = checkout_format("%s/%s", place, commit);
    checkout->git = checkout_format("%s/%s/git", place, commit);
    checkout->tree = strdup(hold->facts.tree);
    checkout->has_filters = hold->facts.has_filters;
    checkout->has_line_ends = hold->facts.has_line_ends;
    checkout->has_gitlinks = hold->facts.has_gitlinks;
    checkout->lease = fd_steal(&hold->lease);
    /* Remembered as its last use, for the sweep. It is ours: this does not fail. */
    (void)futimens(checkout->lease, NULL);
    return checkout->path && checkout->git && checkout->tree ? 0 : -ENOMEM;
}

/* The entry and all below it. -ENOENT when any of them is missing. */
static int hold_stack(struct checkout *checkout, const char *place, const char *commit)
{
    char at[OID_MAX];

    (void)snprintf(at, sizeof(at), "%s", commit);
    for (size_t depth = 0; depth <= CHECKOUT_MAX_DEPTH; depth++) {
        AUTO(checkout_hold_finish) struct checkout_hold hold = { .dir = -1, .lease = -1 };
        int r = checkout_hold(place, at, &hold);
        if (r < 0)
            return r;
        bool is_base = !hold.facts.below[0];
        checkout->lower[depth] =
                checkout_format("%s/%s/%s", place, at, is_base ? "tree" : "layer");
        if (!checkout->lower[depth])
            return -ENOMEM;
        if (depth == 0)
            r = take_top(checkout, place, at, &hold);
        else
            checkout->below_leases[checkout->n_below++] = fd_steal(&hold.lease);
        if (r < 0 || is_base)
            return r;
        memcpy(at, hold.facts.below, sizeof(at));
    }
    return -ENOENT; /* deeper than we make them: not ours */
}

int checkout_find(const char *state, const struct repo *repo, const char *commit,
        struct checkout **out, struct carrel_error *err)
{
    AUTO(free) char *place = checkout_place(state, repo, NULL);
    AUTO(checkout_free) struct checkout *checkout = checkout_new();
    if (!place || !checkout)
        return err_set_errno(err, -ENOMEM, "find a checkout");
    if (!name_is_oid(commit))
        return err_set(err, -EINVAL, "find a checkout: this is not the id of a commit");

    int r = hold_stack(checkout, place, commit);
    if (r == -ENOENT)
        return err_set(err, r, "commit %s is not in the cache", commit);
    if (r < 0)
        return err_set_errno(err, r, "find the checkout of %s", commit);
    *out = ptr_steal(&checkout);
    return 0;
}
