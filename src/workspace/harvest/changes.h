/* changes.h - builds the list of changes of upper.h; and sorted lists of paths. */
#pragma once
#include "workspace/harvest/upper.h"

struct change_list {
    const struct upper_limits *limits;
    size_t items_room;
    size_t oddities_room;
    uint64_t path_bytes; /* used of limits->max_path_bytes */
    struct changes all;
};

/*
 * Takes `len` of the space for paths: -EFBIG if there is no more. A caller that keeps a path
 * which is not a change uses it too, and releases it by subtraction.
 */
int changes_take_room(struct change_list *list, size_t len, struct carrel_error *err);

/* -E2BIG, -EFBIG: over a limit. The path is copied. */
int changes_add(struct change_list *list, const char *path, enum change_kind kind,
        uint64_t size, struct carrel_error *err);
int changes_add_oddity(struct change_list *list, const char *path, enum oddity_kind kind,
        struct carrel_error *err);

/* Sorts it in the order that upper.h documents. */
void changes_sort(struct changes *changes);

/* Index of the first path that is not less than `path`, by bytes. */
size_t paths_find(const char *const *paths, size_t n, const char *path);
bool paths_have(const char *const *paths, size_t n, const char *path);
/* Whether some path is below the directory `path`. */
bool paths_have_below(const char *const *paths, size_t n, const char *path);
