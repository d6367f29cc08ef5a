/*
 * image_root.h - an image as the root of one sandbox: its layers below, a directory for what
 * the sandbox changes above them, and what it says about programs.
 */
#pragma once
#include "base/auto.h"
#include "image/image.h"
#include <carrel/run.h>

struct carrel_error;

struct image_root {
    struct image *image; /* its layers are held */
    const char **own;    /* the image's variables, as far as they have proper names */
    const char **env;    /* these and the caller's */
    const char **argv;
    char *cwd;
};

/*
 * Opens the image that the options name and puts what it says into them: variables, working
 * directory, user. It must live as long as the options.
 */
int image_root_open(
        struct carrel_run_options *options, struct image_root **out, struct carrel_error *err);

/* The whole command: the entrypoint and the caller's words, or the image's own. */
int image_root_command(
        struct image_root *root, struct carrel_run_options *options, struct carrel_error *err);

void image_root_free(struct image_root *root); /* NULL is fine; after the sandbox */
DEFINE_AUTO(struct image_root *, image_root_free)
