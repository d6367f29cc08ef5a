/* apply.h - carries out a plan's steps: builds the sandbox's root and enters it. */
#pragma once

struct carrel_error;
struct plan;
struct skeleton;

/*
 * Runs in the child, in its own user and mount namespace, with ids mapped; allocates nothing.
 * mount_fds[i] is a detached mount for the plan's source i, or -1: it is opened here by its
 * path. With a skeleton (see skeleton.h) the steps that build one are skipped. On success the
 * process is in the new root and the old one is unreachable. Returns a descriptor of the
 * private writable space.
 */
int apply_plan(const struct plan *plan, const int *mount_fds, const struct skeleton *skeleton,
        struct carrel_error *err);
