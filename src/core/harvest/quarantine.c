/* quarantine.c - where a workspace keeps its objects, and what they come to. */
#include "core/harvest/quarantine.h"
#include "base/err.h"
#include "core/worktree/worktree.h"
#include <errno.h>
#include <stdio.h>

int quarantine_path(
        const struct worktree *place, char path[static PATH_MAX], struct carrel_error *err)
{
    int n = snprintf(path, PATH_MAX, "%s/objects", place->ws->path);

    return n < PATH_MAX ? 0 : err_set_errno(err, -ENAMETOOLONG, "'%s'", place->ws->path);
}

int quarantine_sum_up(const struct worktree *place, const char *from, const char *to,
        struct harvest_summary *out, struct carrel_error *err)
{
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;
    char path[PATH_MAX];

    if (strcmp(from, to) == 0)
        return 0;
    int r = quarantine_path(place, path, err);
    return r < 0 ? r : harvest_summarize(place->repo, path, from, to, &limits, out, err);
}
