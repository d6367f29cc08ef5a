/*
 * job.h - the work of a process that reads or writes an archive, and its result.
 *
 * The process is `carrel archive`, executed afresh. It reads one struct job from its answer
 * socket, does the work on the stream and the source, and answers with one struct verdict.
 * Both are structs of this version: libcarrel.so may meet another version of the program.
 */
#pragma once
#include "archive/unpack.h"
#include "executable/executable.h"
#include <carrel/error.h>
#include <stdint.h>

/* The descriptors that `carrel archive` begins with, besides the three streams. */
enum { JOB_STREAM_FD = EXECUTABLE_FIRST_FD, JOB_ANSWER_FD, JOB_SOURCE_FD, JOB_FDS = 3 };

enum job_kind {
    JOB_ENTRIES, /* the tar in the source: entries to the stream, see entries.h */
    JOB_INFLATE, /* the file in the source: decompressed to the stream */
    JOB_UNPACK,  /* the plain tar in the stream: files below the source, a directory */
    JOB_PACK,    /* the directory in the source: a plain tar to the stream */
    JOB_KINDS
};

#define JOB_VERSION UINT32_C(1) /* of what is in this file, entries.h and struct unpacked */

struct job {
    uint32_t version;
    uint32_t kind;
    int64_t parent; /* its pid: the process ends with it */
    struct tar_limits limits;
};

struct verdict {
    uint32_t version;
    int32_t result;
    struct carrel_error err;
    struct unpacked unpacked;
};

/*
 * `carrel archive`: does the work of the descriptors above, confined before it reads a byte of
 * an archive. Returns the exit status. In the program only: it needs libarchive.
 */
int job_execute(void);
