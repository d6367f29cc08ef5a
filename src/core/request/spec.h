/* spec.h - from the caller's options to what a runtime takes. */
#pragma once
#include "base/auto.h"
#include "runtime/runtime.h"
#include <stdbool.h>

struct carrel_error;
struct carrel_run_options;
struct mounted;
struct sandbox;
struct writable_place;

struct spec {
    struct runtime *runtime;
    struct sandbox_spec box;
    struct sandbox_mount *mounts; /* behind box.mounts */
    size_t n_mounts;
    size_t n_given; /* of them, the caller's: their sources are ours to free */
    char *root;
};

/*
 * Fills in defaults, checks bounds, makes paths absolute. `id` and `mounted`, which has the
 * sources of the options' mounts, must outlive the spec.
 */
int spec_make(const struct carrel_run_options *options, const struct mounted *mounted,
        const char *id, struct spec *out, struct carrel_error *err);
/* Also what is changed later must be within them. */
int spec_check_limits(const struct sandbox_limits *limits, struct carrel_error *err);
/* Adds mounts of ours; they must outlive the spec. */
int spec_add_mounts(struct spec *spec, const struct sandbox_mount *mounts, size_t n,
        struct carrel_error *err);
/* What programs may write to of the caller's mounts, see writable.h. The caller frees *out. */
int spec_list_writable(const struct spec *spec, struct writable_place **out, size_t *n,
        struct carrel_error *err);
void spec_finish(struct spec spec); /* also after a failure */
DEFINE_AUTO(struct spec, spec_finish)

/* The variables a program starts with, none of them the caller's: a minimal set for `box`, then
 * `added` ("K=V", a later one replaces an earlier one).
 */
int environment_make(const struct sandbox *box, const char *const *added, bool has_tty,
        char ***out, struct carrel_error *err);
void environment_free(char **env);
DEFINE_AUTO(char **, environment_free)
