/* changes.h - building the list of changes of upper.h; and sorted lists of paths. */
#pragma once
#include "workspace/upper.h"

struct change_list {
    const struct upper_limits *limits;
    size_t items_room;
    size_t oddities_room;
    struct changes all;
};

/* -E2BIG, -EFBIG: over a limit. The path is copied. */
int changes_add(struct change_list *list, const char *path, enum change_kind kind,
        uint64_t size, struct carrel_error *err);
int changes_add_oddity(struct change_list *list, const char *path, enum oddity_kind kind,
        struct carrel_error *err);

/* Puts it into the order that upper.h promises. */
void changes_sort(struct changes *changes);

/* Index of the first path that is not less than `path`, by bytes. */
size_t paths_find(const char *const *paths, size_t n, const char *path);
bool paths_have(const char *const *paths, size_t n, const char *path);
/* Some path lies below the directory `path`. */
bool paths_have_below(const char *const *paths, size_t n, const char *path);
