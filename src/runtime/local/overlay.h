/* overlay.h - a copy-on-write tree, made by init in its own user namespace. */
#pragma once

struct carrel_error;
struct plan;
struct plan_mount;

/*
 * Makes the overlay of `mount`, detached. `scratch` is the top of the private space, which the
 * child has at `scratch_path`: the layers are attached there, each under a name of its own, and
 * lose their path when the host's root goes. mount_fds as for apply_plan(). Allocates nothing.
 * Returns a descriptor.
 */
int overlay_make(const struct plan *plan, const struct plan_mount *mount, const int *mount_fds,
        int scratch, const char *scratch_path, struct carrel_error *err);
