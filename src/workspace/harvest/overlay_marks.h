/* overlay_marks.h - what an overlay file system wrote into the attributes of a file. */
#pragma once

enum overlay_mark {
    OVERLAY_PLAIN,
    OVERLAY_OPAQUE, /* a directory that hides what is below it */
};

/*
 * Reads the marks of the open file or directory `fd`, under "trusted.overlay." and
 * "user.overlay.". Those that merely help the kernel are passed over. -EUCLEAN: there is one
 * that changes what the file means and that we never ask for (redirect, metacopy, whiteout as
 * an attribute), or one that we do not know.
 */
int overlay_marks(int fd, enum overlay_mark *mark);
