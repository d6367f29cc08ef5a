/*
 * request.h - what a caller asks for, as bytes: one JSON object.
 *
 *   {"version":1,
 *    "run":{"argv":["make"],"memory_bytes":1073741824,"workspace":{"repo":"/src"}},
 *    "sandbox":{"name":"desk","lease_ms":3600000},
 *    "layers":{"files":"L-...","workspace":"T-1/R-1","workspace_files":"L-...",
 *              "mounts":["801:2a"],"locks":[5,6]}}
 *
 * The members of "run" and "sandbox" are those of struct carrel_run_options, with its
 * workspace, and of struct carrel_sandbox_options; what has its default is left out.
 * Descriptors and callbacks do not travel. "layers" is what a fork begins with. A text that is
 * not UTF-8 is
 * {"base64":"..."}, so that every byte arrives as it was.
 *
 * Unknown members are errors: a misspelt limit must not become no limit.
 */
#pragma once
#include "base/arena.h"
#include <carrel/sandbox.h>
#include <stddef.h>

struct buf;
struct carrel_error;

#define REQUEST_VERSION 1
#define REQUEST_MAX (16U << 20) /* bytes */

/* What a fork begins with. */
struct request_layers {
    const char *files;           /* ids of layers, topmost first; NULL: it is no fork */
    const char *workspace;       /* "T/R" that its workspace is a fork of; NULL: it has none */
    const char *workspace_files; /* ids of that one's layers */
    const char *const *mounts;   /* which files the mounts are of; see mounted.h */
    const char *const *locks;    /* numbers of inherited descriptors that lock all of them */
};

struct request {
    struct arena arena; /* has everything that the others point to */
    struct carrel_run_options run;
    struct carrel_workspace_options workspace; /* run.workspace points here, or is NULL */
    struct carrel_sandbox_options sandbox;     /* sandbox.run points to run */
    struct request_layers layers;
};

/* Adds it to `out`. `sandbox` and `layers` may be NULL. -E2BIG. */
int request_write(const struct carrel_run_options *run,
        const struct carrel_sandbox_options *sandbox, const struct request_layers *layers,
        struct buf *out, struct carrel_error *err);

/*
 * Reads bytes that need not be trusted: -EINVAL names the member and what was expected, -EPROTO
 * another version. On success the caller owns *out; descriptors in it are -1.
 */
int request_parse(const char *text, size_t len, struct request **out, struct carrel_error *err);

void request_free(struct request *request); /* NULL is fine */
DEFINE_AUTO(struct request *, request_free)
