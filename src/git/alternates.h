/* alternates.h - all the places that a repository has objects in. */
#pragma once

struct carrel_error;

/*
 * Canonical paths of the object directory below `common` (an open git dir), first, and of those
 * that it borrows from, however indirectly; NULL at the end. One that is gone is passed over,
 * as git does. On success the caller owns *out.
 */
int alternates_list(int common, char ***out, struct carrel_error *err);
void alternates_free(char **paths);
