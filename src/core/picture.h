/*
 * picture.h - what a run left in its workspace, as git objects that can be trusted.
 *
 * The run is over and its sandbox gone. If it did not touch its git dir and no filter is in
 * play, the upper directory says it all and nothing but our own code reads it. Otherwise git
 * must speak, and does so in a fresh sandbox; what comes out is a pack, checked like any
 * stranger's. Both ways end in the workspace's quarantine, with two commits: `tip`, where the
 * run's branch is, and `snapshot`, that plus what was not committed.
 */
#pragma once
#include "base/auto.h"
#include "workspace/upper.h"

struct carrel_error;
struct runtime;
struct workplace;

struct picture {
    struct oddity *oddities; /* what is in the tree and not in the snapshot */
    size_t n_oddities;
    bool is_changed; /* something differs from base */
};
void picture_finish(struct picture *picture);

/*
 * Takes the picture and writes it into the workspace's meta. The caller holds the lock.
 * -EDQUOT: what is new would take more than `max_bytes` once more, as objects; nothing was
 * taken.
 */
int picture_take(struct workplace *place, struct runtime *runtime, uint64_t max_bytes,
        struct picture *out, struct carrel_error *err);
