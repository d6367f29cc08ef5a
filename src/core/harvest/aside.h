/*
 * aside.h - commits of a run that are no part of its result: on other branches, in its stash.
 *
 * Nothing of them is imported, so the workspace is the only place that has them. They are
 * counted where the run's git is asked anyway, in a sandbox that may only read. What is counted
 * is what the repository's own objects do not have: branches of the user's are there too.
 */
#pragma once
#include "workspace/private.h"

#define ASIDE "aside " /* and a number, as a line of the answer */

/* For the shell, in the work tree, with $base and $tip: prints that line. Entries of a stash
 * but the last one are in its log only. */
#define ASIDE_COUNT                                                                            \
    "theirs() { GIT_OBJECT_DIRECTORY=" PRIVATE_OBJECTS " "                                     \
    "  GIT_ALTERNATE_OBJECT_DIRECTORIES=$(echo " PRIVATE_OBJECTS "-* | tr ' ' :) "             \
    "  git cat-file --batch-check; }; "                                                        \
    "known() { theirs </tmp/tips | LC_ALL=C sed -n 's/^\\([0-9a-f]*\\) commit .*/^\\1/p'; }; " \
    "{ git rev-list --no-walk --all; git rev-list -g refs/stash --; } | "                      \
    "  LC_ALL=C sort -u >/tmp/tips; "                                                          \
    "aside=$({ cat /tmp/tips; known; printf '^%s\\n' \"$tip\" \"$base\"; } | "                 \
    "  git rev-list --stdin | theirs | LC_ALL=C sed -n '/ missing$/p' | wc -l); "              \
    "echo \"" ASIDE "$((aside))\"; "
