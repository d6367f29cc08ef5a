/* entries.h - the names in the registry's directories, and how an entry is removed. */
#pragma once
#include "base/auto.h"
#include "registry/registry.h"

/* Whether a text can be an id or a name at all: one component, not hidden, not too long. */
bool entry_is_word(const char *word);

/* The names in the directory `path` below `top`, without the hidden ones. */
struct entry_names {
    char (*list)[REGISTRY_WORD_MAX + 1];
    size_t n;
    size_t room;
};
int entry_names_read(
        int top, const char *path, struct entry_names *out, struct carrel_error *err);
void entry_names_finish(struct entry_names names);
DEFINE_AUTO(struct entry_names, entry_names_finish)

/* The id that has `name`. -ENOENT: the name is free. */
int entry_name_read(int top, const char *name, char id[static REGISTRY_WORD_MAX + 1]);
int entry_name_make(int top, const char *name, const char *id);

/*
 * The rest is done under the lock only.
 *
 * entry_erase() removes all that belongs to `id`: status, `name` (NULL: not known) if it is its
 * own, directory. Missing parts are fine.
 */
int entry_erase(int top, const char *id, const char *name, struct carrel_error *err);

/* Removes the entry if its owner is dead. 1: removed; 0: it is alive. */
int entry_erase_dead(int top, const char *id, struct carrel_error *err);
