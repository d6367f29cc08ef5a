/*
 * upper.h - lists what a run changed, from the upper directory of an overlay.
 *
 * The run's processes have exited or are frozen. Everything below `upper` is untrusted: no link
 * is followed, only regular files, directories and links are opened, depth and number are
 * bounded, names are bytes.
 */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

enum change_kind {
    CHANGE_REMOVE,     /* the path and, if base has a tree there, everything below */
    CHANGE_FILE,       /* a regular file, whose content is at the path below `upper` */
    CHANGE_EXECUTABLE, /* the same, executable */
    CHANGE_LINK,       /* a symbolic link */
};

struct change {
    char *path; /* relative, as git writes it */
    enum change_kind kind;
    uint64_t size;
};

/* Findings that a reviewer must know and that are not changes. */
enum oddity_kind {
    ODDITY_REPOSITORY, /* a .git (or what another system treats as one) below the root: this
                          entry is neither entered nor added; its siblings are */
    ODDITY_SPECIAL,    /* fifo, socket, device; what base had there is removed */
    ODDITY_GITLINK,    /* a change inside a submodule; its entry in the tree stays */
    ODDITY_UNREADABLE, /* it could not be opened (mode 000, say); base's content stays */
};
struct oddity {
    char *path;
    enum oddity_kind kind;
};
void oddities_free(struct oddity *oddities, size_t n);
const char *oddity_text(enum oddity_kind kind); /* for people */

struct changes {
    struct change *items; /* removals first, then the rest; each part sorted by path bytes */
    size_t n;
    struct oddity *oddities;
    size_t n_oddities;
    uint64_t bytes; /* of the content of all items */
    bool has_cr;    /* some changed regular file, as far as they were searched, holds a CR */
    bool has_attributes; /* a .gitattributes or .gitmodules is among the changes, or an ignored
                            .gitattributes lies where git would obey it */
};
void changes_finish(struct changes *changes);

/*
 * Of all paths together, of changes and other lists. A name costs a run almost nothing (a hard
 * link), and below deep directories each takes 4 KB here and three times that in git: without a
 * limit a few megabytes of disk would take gigabytes of memory here.
 */
#define PATHS_MAX_BYTES (UINT64_C(128) << 20)

struct upper_limits {
    uint64_t max_changes;    /* -E2BIG above it; oddities count */
    uint64_t max_bytes;      /* -EFBIG */
    uint64_t max_cr_bytes;   /* no search for CR bytes if the changes have more; 0: never */
    uint64_t max_path_bytes; /* -EFBIG; directories that were not visited yet count */
    unsigned max_depth;      /* -ELOOP, also for a path that is longer than PATH_MAX */
};
#define UPPER_LIMITS_INIT                                                                      \
    {                                                                                          \
        .max_changes = 2000000, .max_bytes = UINT64_C(1) << 40,                                \
        .max_cr_bytes = UINT64_C(1) << 40, .max_path_bytes = PATHS_MAX_BYTES,                  \
        .max_depth = 1000                                                                      \
    }

/*
 * Walks `upper`, in time proportional to its content. | lower: directories of the pristine
 * tree, topmost first, NULL-terminated (checkout.lower): | their files are tracked, also if an
 * ignore rule matches. A layer may have | whiteouts (char 0/0) and opaque directories; they
 * count. | exclude: text of info/exclude (may be empty) | tracked: sorted paths that are
 * tracked besides (added by the run's own commits), may be | NULL; those that no longer exist
 * are removals | included: sorted paths that are not part of the result unless tracked,
 * whatever the ignore | rules say, may be NULL | gitlinks:sorted paths of submodules, may be
 * NULL |The root's own ".git" is ours and skipped. Ignore rules are those the run would see: of
 * |`upper`, or if it has none, of `lower`. An overlay attribute (trusted. or user.) that
 * changes |what a file is (redirect, metacopy, whiteout, anything new) is refused with
 * -EUCLEAN: we |never create them. -ESTALE: something changed during the walk. -E2BIG also if
 * the ignore |rules take too much work, -EFBIG if they are too large.
 */
struct upper_base {
    const char *const *lower;
    const char *exclude;
    const char *const *tracked;
    size_t n_tracked;
    const char *const *included;
    size_t n_included;
    const char *const *gitlinks;
    size_t n_gitlinks;
    bool has_no_rules; /* a folder without git: nothing is ignored, not even by a .gitignore */
};
int upper_walk(int upper, const struct upper_base *base, const struct upper_limits *limits,
        struct changes *out, struct carrel_error *err);

/*
 * Bytes and inodes below `upper`, as the host pays for them (st_blocks; a file with many names
 * once). Follows nothing, goes to any depth with a few dozen descriptors. May be asked while
 * the run goes on: the count of a tree that changes meanwhile is approximate. -E2BIG, as soon
 * as that is known, for more than `max_names`; -EACCES for a directory that a subordinate id
 * has closed. The second function does not count such a directory.
 */
int upper_usage(int upper, uint64_t max_names, uint64_t *bytes, uint64_t *inodes,
        struct carrel_error *err);
int upper_usage_but_others(int upper, uint64_t max_names, uint64_t *bytes, uint64_t *inodes,
        struct carrel_error *err);
