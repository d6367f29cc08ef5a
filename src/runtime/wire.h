/*
 * wire.h - the protocol between the host and a sandbox's init.
 *
 * Two sequenced-packet sockets, one struct per message, descriptors beside it. On the first the
 * host sends requests and init answers; on the second init reports exits, so that a report is
 * never mistaken for an answer. The host trusts init as little as possible: every message is
 * checked for size, kind and number of descriptors before it is used.
 */
#pragma once
#include "base/payload.h"
#include "runtime/files.h"
#include <carrel/error.h>
#include <stddef.h>
#include <stdint.h>

enum wire_kind {
    /* host to init */
    WIRE_MAPPED = 1, /* the ids of the sandbox are mapped */
    WIRE_GO,         /* its limits are set; carries cgroup files to join */
    WIRE_START, /* carries the payload, if it is long; without a terminal the streams; others */
    WIRE_SIGNAL,
    WIRE_TERMINATE, /* SIGTERM; after the grace SIGKILL to its group, even if it has exited */
    WIRE_FILE,      /* carries the payload, if it is long; directory and watch, if any */
    WIRE_STOP,      /* kill every process except init */
    WIRE_LEASE,     /* exit by itself at these times */
    WIRE_FREEZER,   /* carries the file to thaw the programs (WIRE_THAW); none: they run */
    WIRE_PAUSE,     /* stop every process except init, by a signal */
    WIRE_RESUME,
    /* init to host */
    WIRE_READY,
    WIRE_FAILED, /* setup, start or file: `error` says why */
    WIRE_STARTED,
    WIRE_FILE_DONE, /* carries what was opened, if anything */
    WIRE_STOPPED,   /* only init is left; with final usage */
    WIRE_DONE,      /* lease, freezer, pause, resume */
    WIRE_EXITED,    /* with the usage so far */
    WIRE_GONE,      /* the sandbox has ended by itself: `value` says why. Must be last */
};

#define WIRE_MAX_FDS 6
#define WIRE_THAW "THAWED" /* what is written to that file */

enum wire_flag {
    WIRE_TTY = 1,
    WIRE_DISK_FULL = 2,
    WIRE_ALONE = 4, /* no process except init is left */
    WIRE_LAST = 8,  /* the sandbox ends when this process exits */
    WIRE_DIR = 16,  /* the file's path is relative to a directory that came with the message */
    WIRE_USER = 32, /* act as another user */
    WIRE_WITH_ALL = 64, /* EXITED: killed when the sandbox ended by itself */
};

/* The rest of a file request, and of its answer. */
struct wire_file {
    uint32_t op; /* enum file_op */
    uint32_t uid, gid;
    uint32_t events;
    int32_t watch;
    struct timespec times[2];
    struct file_stat stat;
};

struct wire_message {
    uint32_t kind;
    uint32_t process; /* which: ids count up and are never reused */
    uint32_t flags;   /* enum wire_flag */
    int32_t value;    /* signal to send, wait status, pid of what was started, file flags, enum
                         gone_why */
    uint16_t rows, cols;    /* of the terminal */
    uint32_t n_extra;       /* streams beside the three, or beside the terminal */
    uint32_t mode;          /* of a file */
    uint32_t uid, gid;      /* of the process to start, as seen in the sandbox */
    uint64_t lease_end_ns;  /* CLOCK_BOOTTIME; 0: none */
    uint64_t idle_ns;       /* 0: no limit */
    uint64_t grace_ns;      /* of TERMINATE */
    uint64_t held_bytes;    /* in the private writable space */
    uint64_t storage_bytes; /* written to storage by everything reaped so far */
    uint64_t cpu_us;        /* of everything reaped so far */
    uint64_t peak_bytes; /* resident memory of the largest process reaped so far; 0: unknown */
    struct wire_file file;
    union {
        struct payload_near payload; /* of START and FILE, if it is short */
        struct carrel_error error;   /* of what init says */
    };
};

/* Sends one message. Returns 0 or a negative errno (-EPIPE: the peer closed its end). */
int wire_send(
        int sock, const struct wire_message *message, const int *fds, size_t n_fds, int flags);

/*
 * Receives one message; blocks unless `flags` has MSG_DONTWAIT. fds has WIRE_MAX_FDS slots;
 * those without a descriptor become -1. Returns the number of descriptors, -EAGAIN, -EPIPE at
 * the end, or -EPROTO for anything malformed (all received descriptors are closed).
 */
int wire_receive(int sock, struct wire_message *message, int *fds, int flags);

/* The payload of START or FILE. If it came as a descriptor, `fds` is advanced past that. */
int wire_payload(
        struct wire_message *message, const int **fds, int *n_fds, struct payload *out);
