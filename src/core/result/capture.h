/*
 * capture.h - what is kept of a run's output, which may never end.
 *
 * Head and tail of each stream stay in memory, within a fixed budget. If a stream is longer
 * than that, the whole of it, up to a cap, is written to a file in the run's directory.
 */
#pragma once
#include "base/buf.h"
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct carrel_run_result;

#define CAPTURE_END 512

struct capture {
    uint64_t budget;       /* bytes of the text that capture_text() gives */
    uint64_t file_max;     /* bytes of the file at most */
    uint64_t total;        /* bytes seen */
    uint64_t unseen;       /* that the stream had besides: cut before it came to us */
    char *bytes;           /* first half: head; second half: a ring that holds the tail */
    const char *path;      /* file for the whole, made when needed; NULL: none wanted */
    char end[CAPTURE_END]; /* the last bytes, whatever the budget */
    size_t end_len;
    int file;
    int file_error; /* negative errno: the file could not be made or written */
};

#define CAPTURE_FILE_MAX (64U << 20)

/* 0 or -ENOMEM. `path` must outlive the capture; `file_max` 0: CAPTURE_FILE_MAX. */
int capture_init(struct capture *capture, uint64_t budget, const char *path, uint64_t file_max);
void capture_finish(struct capture *capture);

void capture_add(struct capture *capture, const char *data, size_t len);

/* The stream had that many more bytes, which the sender dropped. */
void capture_skip(struct capture *capture, uint64_t bytes);

/* Bytes of the stream in all. */
uint64_t capture_bytes(const struct capture *capture);

bool capture_is_truncated(const struct capture *capture);

/* The file gets the whole stream even if it is short. 0 or negative errno. */
int capture_keep(struct capture *capture);

/* The position of the marker in the text of a stream that was too long. */
struct capture_cut {
    bool is_cut;
    size_t at;
    size_t len;
};

/* Head, one marker line, tail: at most `budget` bytes, cut between characters. */
struct capture_cut capture_text(const struct capture *capture, struct buf *out);

/* The two streams of a run. */
struct output {
    struct capture out, err;
    char dir[PATH_MAX - 32]; /* of the run; empty: there is no place for it */
    char out_path[PATH_MAX], err_path[PATH_MAX];
};

/* Before output_open(), so that output_finish() is always right. */
#define OUTPUT_INIT                                                                            \
    {                                                                                          \
        .out.file = -1, .err.file = -1                                                         \
    }

/*
 * Names the run's directory, without making it. A run that may have been before (`is_old`)
 * keeps what it wrote then.
 */
int output_open(struct output *output, const struct carrel_run_result *result, bool is_old,
        uint64_t file_max, struct carrel_error *err);
void output_finish(struct output *output);

/* The files hold all of it, also what was short enough for the result. */
int output_keep(struct output *output, struct carrel_error *err);

/* Texts and figures for the result. */
void output_take(const struct output *output, struct carrel_run_result *result);

/* The names of the files, as far as there are any. */
void output_name(const struct output *output, struct carrel_run_result *result);
