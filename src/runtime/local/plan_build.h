/* plan_build.h - builds the parts of the plan; only for plan.c and plan_mounts.c. */
#pragma once
#include "runtime/local/plan.h"

struct sandbox_overlay;

/*
 * The builder remembers whether memory ran out, so that each line of the plan is one decision.
 */
struct builder {
    struct plan *plan;
    size_t room;
    size_t n_writable;
    bool is_short;
};

/* Text that lives as long as the plan. NULL: out of memory. */
char *plan_text(struct plan *plan, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void plan_free_texts(struct plan *plan);

void plan_add(struct builder *b, struct step step);
void plan_writable(struct builder *b, const char *path); /* absolute */

/*
 * The overlay that is not a mount of the caller: the private directories on disk, or the root.
 */
int plan_disk(struct builder *b, const struct sandbox_spec *spec, struct carrel_error *err);

/* The caller's mounts, as steps. */
int plan_mounts(struct builder *b, const struct sandbox_spec *spec, struct carrel_error *err);
