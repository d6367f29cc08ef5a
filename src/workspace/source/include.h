/*
 * include.h - untracked files of the user that a run needs: .env and the like.
 *
 * Only files that are named explicitly: by a pattern, or in the file .worktreeinclude at the
 * top of the work tree. Patterns are those of gitignore(5).
 */
#pragma once
#include "git/repo.h"
#include <stdint.h>

struct include_list {
    char **paths; /* relative to repo->top, sorted */
    size_t n;
    bool has_file; /* there is a .worktreeinclude, which may be the work of an earlier run */
};
void include_list_finish(struct include_list *list);

/*
 * Untracked files, ignored or not, that match .worktreeinclude or one of `patterns`
 * (NULL-terminated, may be NULL). An empty list is fine. A .worktreeinclude that is a link or a
 * FIFO is refused.
 */
int include_find(const struct repo *repo, const char *const *patterns, struct include_list *out,
        struct carrel_error *err);

/*
 * Copies them into `upper`, an empty upper directory, with their modes. Regular files and links
 * (as links) only; a link in the path of a file is not followed. On an error, which names the
 * file, some may be copied already, and the caller discards `upper`. -EFBIG: together they are
 * larger than `max_bytes`.
 */
int include_copy(const struct repo *repo, const struct include_list *list, int upper,
        uint64_t max_bytes, struct carrel_error *err);
