/*
 * include.h - files of the user that git does not track but a run needs: .env and the like.
 *
 * Only what somebody named: by a pattern, or in the file .worktreeinclude at the top of the
 * work tree. Patterns are those of gitignore(5).
 */
#pragma once
#include "git/repo.h"
#include <stdint.h>

struct include_list {
    char **paths; /* relative to repo->top, sorted */
    size_t n;
};
void include_list_finish(struct include_list *list);

/* Untracked files, ignored or not, that .worktreeinclude or one of `patterns` (NULL-terminated,
 * may be NULL) names. An empty list is fine. */
int include_find(const struct repo *repo, const char *const *patterns, struct include_list *out,
        struct carrel_error *err);

/*
 * Copies them into `upper`, an empty upper directory, with their modes. Regular files and links
 * (as links) only; a link on the way to a file is not followed. All of them, or an error that
 * names the file: -EFBIG when together they are larger than `max_bytes`. Then some are there
 * already, and the caller gives `upper` up.
 */
int include_copy(const struct repo *repo, const struct include_list *list, int upper,
        uint64_t max_bytes, struct carrel_error *err);
