/*
 * quarantine.h - the object directory of a harvest, and a scratch repository to check it in.
 *
 * Work happens in <dir>/scratch, a bare repository whose alternates are the quarantine and the
 * user's repository. git leaves crash reports and half-written packs where it works, and uses
 * the configuration there: in the scratch neither is the user's. Only objects that passed every
 * check are moved from the scratch repository into the quarantine.
 */
#pragma once
#include "base/auto.h"
#include "git/git.h"
#include "git/repo.h"

struct carrel_error;

struct quarantine {
    char *git_dir; /* of the scratch repository */
    char *objects; /* its object directory */
    int dir;       /* the quarantine itself, open */
};

/* Creates the scratch repository; one that a killed process left is removed first. */
int quarantine_begin(const struct repo *repo, const char *dir, struct quarantine *out,
        struct carrel_error *err);

/*
 * Makes one pack in the scratch repository of everything that `tip` reaches and `base` does
 * not. `name` is the pack's without a suffix; empty: there was nothing to pack. -EBADMSG:
 * something is missing.
 */
#define QUARANTINE_PACK_MAX (OID_MAX + 8)
int quarantine_pack(const struct repo *repo, const struct quarantine *quarantine,
        const char *base, const char *tip, char name[static QUARANTINE_PACK_MAX],
        struct carrel_error *err);

/* Moves what the scratch repository has received into the quarantine. */
int quarantine_keep(const struct quarantine *quarantine, struct carrel_error *err);

/*
 * Whether everything that `tip` reaches and `base` does not exists, in time proportional to
 * that: -EBADMSG if not, or if git cannot read it within `limits`.
 */
int quarantine_check_whole(const struct git *git, const char *tip, const char *base,
        const struct git_io *limits, struct carrel_error *err);

/* Removes the scratch repository. */
void quarantine_finish(struct quarantine quarantine);
DEFINE_AUTO(struct quarantine, quarantine_finish)
#define QUARANTINE_INIT                                                                        \
    (struct quarantine)                                                                        \
    {                                                                                          \
        .dir = -1                                                                              \
    }

/*
 * Options for git processes that read what a run made. Files above the threshold count as
 * binary and are never held in memory whole. What git writes here is not synced: a harvest can
 * be repeated, and publishing syncs.
 */
#define QUARANTINE_GIT "-c", "core.bigFileThreshold=32m", "-c", "core.fsync=none"
