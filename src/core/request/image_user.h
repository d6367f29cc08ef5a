/* image_user.h - resolves "postgres:www" by the files of an image. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct carrel_error;
struct image;

/*
 * "UID", "UID:GID", "name", "name:group" and mixtures. Names are looked up in the image's own
 * /etc/passwd and /etc/group. A number that has no line there is its own group, too.
 */
int image_user_find(const struct image *image, const char *user, uid_t *uid, gid_t *gid,
        struct carrel_error *err);

/*
 * Finds the line of `name` (or of the number that it is) in the text of a passwd file, or of a
 * group file with `gid` NULL. Pure; lines that are none are passed over. False: no such line.
 */
bool image_user_in(const char *text, size_t len, const char *name, unsigned *id, unsigned *gid);
