/* writable_mounts.c - what of the host the programs of a sandbox may write to. */
#include "base/err.h"
#include "base/path.h"
#include "core/request/spec.h"
#include "core/state/writable.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whether it is seen read-only where a part of `whole` would be seen. Elsewhere would not do.
 */
static bool covers(const struct sandbox_mount *part, const struct sandbox_mount *whole)
{
    if (!part->target || !whole->target)
        return false; /* refused later */
    const size_t source = strlen(whole->source);
    const size_t target = strlen(whole->target);
    return part->access != ACCESS_READ_WRITE && path_is_below(part->source, whole->source) &&
           path_is_below(part->target, whole->target) && part->source[source] == '/' &&
           strcmp(part->source + source, part->target + target) == 0;
}

static void add(struct writable_place *list, size_t *n, const struct sandbox_mount *mount,
        bool is_still)
{
    list[(*n)++] = (struct writable_place){
        .path = mount->source,
        .fd = mount->source_fd ? *mount->source_fd : -1,
        .is_still = is_still,
    };
}

int spec_list_writable(const struct spec *spec, struct writable_place **out, size_t *n,
        struct carrel_error *err)
{
    const struct sandbox_mount *mounts = spec->mounts;

    *n = 0;
    *out = calloc(spec->n_given * spec->n_given + 1, sizeof(**out));
    if (!*out)
        return err_set_errno(err, -ENOMEM, "mounts");
    for (size_t i = 0; i < spec->n_given; i++) {
        if (mounts[i].access != ACCESS_READ_WRITE)
            continue;
        add(*out, n, &mounts[i], false);
        for (size_t j = 0; j < spec->n_given; j++)
            if (covers(&mounts[j], &mounts[i]))
                add(*out, n, &mounts[j], true);
    }
    return 0;
}
