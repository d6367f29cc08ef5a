/* find.h - which workspaces there are, as the library shows them. */
#pragma once
#include "base/auto.h"
#include "workspace/workspace.h"
#include <carrel/workspace.h>

struct carrel_error;

#define WORKSPACE_NAME_MAX ((size_t)2 * NAME_ID_MAX + 2) /* "T/R" */

/* A workspace and what is said of it: the info points into the rest. */
struct carrel_workspace {
    struct workspace *ws;
    char name[WORKSPACE_NAME_MAX];
    struct carrel_workspace_info info;
};
DEFINE_AUTO(struct carrel_workspace *, carrel_workspace_free)

/* Shows `ws` as it is now; the view is valid as long as `ws` is and unchanged. */
void workspaces_view(const struct workspace *ws, char name[static WORKSPACE_NAME_MAX],
        struct carrel_workspace_info *out);

struct workspace_list {
    struct workspace **items; /* oldest first */
    size_t n;
};
void workspace_list_free(struct workspace_list *list);
DEFINE_AUTO(struct workspace_list *, workspace_list_free)

/* All, or those of the repository at `repo_dir`. */
int workspaces_list(
        const char *repo_dir, struct workspace_list **out, struct carrel_error *err);
