/* pack.h - writes a tree as a plain tar: the sink of a walk. */
#pragma once
#include "files/tar.h"
#include "files/walk.h"

/* What is neither file, directory nor link: left out, or an entry, so that a reader counts it.
 */
enum pack_others { PACK_OTHERS_NOT, PACK_OTHERS };

struct pack {
    struct sink base;
    struct tar_writer *writer;
    enum pack_others others;
    size_t len;
    char path[TAR_PATH_MAX + 1]; /* of the current directory; "": the top */
};

void pack_init(struct pack *pack, struct tar_writer *writer, enum pack_others others);

/*
 * The content of the directory `fd` below ".", or a file under the name `name`. `walk` has this
 * sink. -EBUSY: a file changed while it was read.
 */
int pack_opened(struct pack *pack, int fd, const char *name, struct walk *walk,
        struct carrel_error *err);
