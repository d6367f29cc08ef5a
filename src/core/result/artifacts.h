/* artifacts.h - what is kept of a run in its directory: code, result, output. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

#define ARTIFACTS_MAX 4
#define ARTIFACT_CODE_MAX (4U << 20)

struct artifact {
    char name[64]; /* below the run's directory */
    uint64_t bytes;
    char sha256[65];
};

/* A run's code, as it was given. */
struct artifact_code {
    const char *language; /* "python", "shell"; NULL: a program, and argv is all */
    const char *text;     /* NULL: none beside argv */
    size_t len;
    const char *const *argv;
};

/*
 * Keeps `code` and `result` (JSON) in DIR/artifacts/, each named by time and hash, and tells
 * what it kept. A file is whole or absent.
 */
int artifacts_store(const char *dir, const char *run, const struct artifact_code *code,
        const char *result, struct artifact out[static ARTIFACTS_MAX], size_t *n,
        struct carrel_error *err);
