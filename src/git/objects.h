/*
 * objects.h - adds packs and loose objects of one object directory to another.
 *
 * An object's name is the hash of its content, so an existing object of that name is the same,
 * and a repetition after a crash is harmless. A pack becomes visible with its .idx; that is why
 * the .idx comes last.
 */
#pragma once

struct carrel_error;

enum objects_care {
    OBJECTS_QUICK,   /* between directories of ours */
    OBJECTS_DURABLE, /* into a repository: synced before a reference may name them */
};

/*
 * Gives every finished pack and every loose object in `from` a second name in `to`: a hard
 * link, or a copy if links are impossible. `from` keeps its own. With OBJECTS_DURABLE each new
 * pack in `to` also gets a .keep file with `note` (one line) in it, so that a concurrent repack
 * does not remove it as garbage; objects_unkeep() removes the .keep files.
 */
int objects_add(
        int from, int to, enum objects_care care, const char *note, struct carrel_error *err);

/* Removes from `to` the .keep files whose content is `note`, also those of earlier attempts. */
int objects_unkeep(int to, const char *note, struct carrel_error *err);

/* Removes packs and loose objects only; `but`: the name of a pack that is kept. */
int objects_clear(int from, const char *but, struct carrel_error *err);
