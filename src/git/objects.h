/*
 * objects.h - packs and loose objects get from one object directory into another.
 *
 * An object's name is the hash of its content, so what is already there under that name is the
 * same, and doing it all again after a crash does no harm. A pack counts from the moment its
 * .idx appears; that is why it comes last.
 */
#pragma once

struct carrel_error;

enum objects_care {
    OBJECTS_QUICK,   /* between directories of ours */
    OBJECTS_DURABLE, /* into a repository: on the disk before a reference may name them */
};

/*
 * Gives every finished pack and every loose object in `from` a second name in `to`: a hard
 * link, or a copy where there can be none. `from` keeps its own. With OBJECTS_DURABLE each new
 * pack in `to` also has a .keep file with `note` (one line) in it, so that a repack which runs
 * at the same time does not take it for garbage; objects_unkeep() takes them away.
 */
int objects_add(
        int from, int to, enum objects_care care, const char *note, struct carrel_error *err);

/* Removes from `to` the .keep files that hold exactly `note`, also those of earlier attempts.
 */
int objects_unkeep(int to, const char *note, struct carrel_error *err);

/* Removes packs and loose objects, and nothing else; `but`: the name of a pack that stays. */
int objects_clear(int from, const char *but, struct carrel_error *err);
