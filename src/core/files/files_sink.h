/* files_sink.h - where a copied tree goes: a directory of the host, or one in a sandbox. */
#pragma once
#include "core/files/files_walk.h"

/* Everything goes below `top`, which stays the caller's. */
struct tree_sink {
    struct sink base;
    struct file_access *access; /* NULL: on the host */
    unsigned depth;
    int dirs[FILES_MAX_DEPTH + 2]; /* dirs[0] is the top */
    bool is_new[FILES_MAX_DEPTH + 2];
};

/* On the host: for what names inside lead to, nothing is followed and nothing kept but files,
 * directories and links. */
void sink_to_host(struct tree_sink *sink, int top);

/* In a sandbox: everything is made by it, under its user's rights. */
void sink_to_door(struct tree_sink *sink, struct file_access *access, int top);

/* All that comes from `in` becomes a file of this name, with permissions 644. */
int sink_stream(struct tree_sink *sink, const char *name, int in, struct carrel_error *err);

/* This directory, to which all goes, is no part of what is copied. */
void sink_avoid(struct tree_sink *sink, int fd);

/* Closes directories that a failure left open. */
void sink_finish(struct tree_sink *sink);

/* A name that nobody has, for a file that is not whole yet. */
void sink_temporary_name(char name[static 32]);
