/* overlay.h - a copy-on-write tree, made by init in its own user namespace. */
#pragma once

struct carrel_error;
struct plan;
struct plan_mount;

/*
 * Mounts the overlay of `mount`, detached. `scratch` is the top of the private space: the
 * layers are attached there, in a directory of their own, and become unreachable when the
 * host's root is detached. mount_fds as for apply_plan(). Changes the working directory.
 * Allocates nothing. Returns a descriptor.
 */
int overlay_make(const struct plan *plan, const struct plan_mount *mount, const int *mount_fds,
        int scratch, struct carrel_error *err);

/*
 * Files in an overlay must be created with the one id that the layers know, which is the
 * program's, not init's; init keeps its capabilities, which are limited to this namespace.
 */
int overlay_as_user(const struct plan *plan, struct carrel_error *err);
int overlay_as_maker(const struct plan *plan, struct carrel_error *err);
