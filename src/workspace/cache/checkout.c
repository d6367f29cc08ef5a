/*
 * checkout.c - finding entries of the cache.
 *
 * It is on the way of every start, so it costs microseconds: a few opens, a shared lock and a
 * small file for each layer.
 */
#include "workspace/cache/checkout.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/name.h"
#include "workspace/cache/checkout_facts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

void checkout_free(struct checkout *checkout)
{
    if (!checkout)
        return;
    free_list(checkout->lower);
    free_list(checkout->gitlinks);
    free_list(checkout->module_objects);
    for (size_t i = 0; i < checkout->n_below; i++)
        fd_close(checkout->below_leases[i]);
    fd_close(checkout->lease);
    free(checkout->below_leases);
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
    checkout->gitlinks = calloc(1, sizeof(checkout->gitlinks[0]));
    checkout->module_objects = calloc(1, sizeof(checkout->module_objects[0]));
    if (!checkout->lower || !checkout->below_leases || !checkout->gitlinks ||
            !checkout->module_objects)
        return NULL;
    return ptr_steal(&checkout);
}

/* Adds to a list that ends in NULL. */
static int append(char ***list, const char *text, size_t len)
{
    size_t n = 0;

    while ((*list)[n])
        n++;
    char **more = reallocarray(*list, n + 2, sizeof(**list));
    if (!more)
        return -ENOMEM;
    *list = more;
    more[n] = strndup(text, len);
    more[n + 1] = NULL;
    return more[n] ? 0 : -ENOMEM;
}

/* A file of the entry, one item after the other; what is before a tab is left out. No such
 * file: no items. */
static int read_list(int dir, const char *name, char end, char ***list)
{
    struct stat st;
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    AUTO(free) char *text = malloc((size_t)st.st_size + 1);
    ssize_t len = text ? fd_read_all(fd, text, (size_t)st.st_size) : -ENOMEM;
    if (len < 0)
        return (int)len;
    text[len] = '\0';

    for (const char *at = text; at < text + len;) {
        const char *stop = memchr(at, end, (size_t)(text + len - at));
        if (!stop)
            return -EBADMSG;
        const char *tab = end == '\n' ? memchr(at, '\t', (size_t)(stop - at)) : NULL;
        const char *item = tab ? tab + 1 : at;
        int r = append(list, item, (size_t)(stop - item));
        if (r < 0)
            return r;
        at = stop + 1;
    }
    return 0;
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
    checkout->has_monitor = hold->facts.has_monitor;
    checkout->lease = fd_steal(&hold->lease);
    /* Remembered as its last use, for the sweep. It is ours: this does not fail. */
    (void)futimens(checkout->lease, NULL);
    if (!checkout->path || !checkout->git || !checkout->tree)
        return -ENOMEM;
    if (!checkout->has_gitlinks)
        return 0;
    int r = read_list(hold->dir, "gitlinks", '\0', &checkout->gitlinks);
    return r < 0 ? r : read_list(hold->dir, "modules", '\n', &checkout->module_objects);
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
