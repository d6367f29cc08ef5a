/* pull.h - images from registries, through skopeo. */
#pragma once
#include "image/image.h"

struct carrel_error;

struct pull {
    const char *ref;  /* "registry/repository:tag", also after "docker://"; "docker-daemon:x" */
    const char *name; /* the image's; NULL: as `ref` */
    bool is_insecure; /* without TLS, or with an unknown certificate */
};

/* -ENOENT with the name of the package when there is no skopeo. */
int pull_image(const char *state, const struct pull *pull, struct image_imported *out,
        struct carrel_error *err);

/* What the image is called. */
const char *pull_name(const struct pull *pull);
