/*
 * recorder_file.h - records of what clients do to the files of a living sandbox.
 *
 * What names a path is one record, `file`, written before it is done. It permits what follows
 * from it: a client with a directory's descriptor reads below it without the keeper, and asks
 * for changes one name at a time. Such changes come by the ten thousand, so they are collected
 * and reported together: `files_below`, with as many names as fit and the hash of all.
 */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/sha256.h"
#include <stdint.h>

struct carrel_error;
struct file_request;
struct recorder;

#define RECORD_BELOW_MS 5000 /* how long changes are collected */

/* Changes below directories since the last record of them. */
struct recorder_below {
    struct buf list; /* JSON: the beginning of an array */
    struct json json;
    struct sha256 sha;
    uint64_t n;
    uint64_t n_listed;
    uint64_t due_ns; /* when they are to be recorded; 0: there are none */
};
void recorder_below_finish(struct recorder_below below);

/* The request is about to be carried out. Looks record nothing. */
int recorder_file(struct recorder *recorder, struct recorder_below *below,
        const struct file_request *request, struct carrel_error *err);

/* Records what was collected, if there is any. */
int recorder_below(
        struct recorder *recorder, struct recorder_below *below, struct carrel_error *err);
