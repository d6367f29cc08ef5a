/*
 * image.h - an exact disk limit: a file system of fixed size, in a file.
 *
 *   DIR/disk.new    ext4, all blocks reserved, being filled with the parts of DIR
 *   DIR/disk.img    the same: the parts are here now, and what DIR has of them is old
 *   DIR/disk/       where it is mounted
 *
 * DIR is the entry of a workspace or of a layer (base/store.h), and the caller holds its lock.
 * The parts are "upper" and "gitupper". disk_image_end() copies them back and removes the file,
 * which is the last step. So after a crash at any point, disk_image_recover() does the same
 * again, and nothing is lost. A process that was killed leaves the mount; store_unmount().
 *
 * It needs the rights to mount and loop devices. Programs get ENOSPC at the limit. What is
 * mounted was written by the kernel's ext4 alone: no program can reach the file itself.
 */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;

/* What of the image is whose: the parts of a workspace, and the private files of a sandbox. */
#define DISK_IMAGE_TREE "tree"
#define DISK_IMAGE_FILES "files"

/*
 * Whether images of that size can be made here, as far as it can be known before there is a
 * directory: root, the program and the devices. -ENOTSUP, with what is missing and how to get
 * it; -EINVAL: too small.
 */
int disk_image_check(uint64_t bytes, struct carrel_error *err);

/*
 * Makes an image for `bytes` in the directory `dir`, mounts it and copies the parts of `dir`
 * into DISK_IMAGE_TREE; DISK_IMAGE_FILES is empty. Returns a descriptor of the root directory
 * of the image. As disk_image_check(); -ENOSPC: the host's disk has no room for it.
 */
int disk_image_begin(int dir, uint64_t bytes, struct carrel_error *err);

/* No sandbox has it any more: what is in DISK_IMAGE_TREE becomes the parts of `dir` again. */
int disk_image_end(int dir, struct carrel_error *err);

/* Ends an image that a killed process left; nothing to do where there is none. */
int disk_image_recover(int dir, struct carrel_error *err);

/* Whether the image, by its root directory, has no room left. */
bool disk_image_is_full(int image);
