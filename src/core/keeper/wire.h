/*
 * wire.h - the protocol between the keeper of a living sandbox and its clients.
 *
 * A client connects to the socket in the sandbox's entry of the registry, which only its user
 * can reach, and says hello with a second socket. On the first it asks and the keeper answers,
 * one after the other; on the second the keeper reports ends of processes, so that a report is
 * never taken for an answer. One struct per message, descriptors beside it.
 */
#pragma once
#include "base/payload.h"
#include "core/result/result.h"
#include "git/name.h"
#include "runtime/files.h"
#include "runtime/runtime.h"
#include <carrel/error.h>
#include <stddef.h>
#include <stdint.h>

enum keeper_kind {
    /* client to keeper; all are answered, SIGNAL where it asks for that */
    KEEPER_HELLO = 1, /* carries the socket for reports */
    KEEPER_START,     /* carries the payload: cwd, argv, env; `value`: n_extra */
    KEEPER_ATTACH,
    KEEPER_SIGNAL,
    KEEPER_FILE, /* carries the payload: path, other; then dir or watch */
    KEEPER_PROCESSES,
    KEEPER_INSPECT,
    KEEPER_RENEW,
    KEEPER_PAUSE,
    KEEPER_RESUME,
    KEEPER_UPDATE,
    KEEPER_SNAPSHOT, /* carries the payload: its name */
    KEEPER_FORK,     /* carries the payload: labels; the answer: a socket of keeper_ready */
    KEEPER_DESTROY,
    /* keeper to client */
    KEEPER_DONE,
    KEEPER_FAILED, /* `error` says why */
    KEEPER_EXITED, /* on the second socket */
};

#define KEEPER_MAX_FDS 6
#define KEEPER_LEASE_MS (60U * 60 * 1000) /* the default */
#define KEEPER_NO_TIME UINT64_MAX         /* RENEW: no lease, no idle time any more */

/*
 * Both sides send it first: a keeper continues when carrel is replaced by another version. The
 * first two members of a message never change. Increase it with each change.
 */
#define KEEPER_VERSION 8

enum keeper_flag {
    KEEPER_STDIN = 1,    /* START: wants it; its answer: it is among the descriptors */
    KEEPER_TTY = 2,      /* one terminal instead of three streams */
    KEEPER_DETACH = 4,   /* it continues when the client exits, and its output is kept */
    KEEPER_USER = 8,     /* uid and gid count */
    KEEPER_ENDED = 16,   /* ATTACH: the process has ended, `value` is its status */
    KEEPER_ANSWER = 32,  /* SIGNAL: answer whether there is such a process */
    KEEPER_HAS_DIR = 64, /* FILE */
    KEEPER_HAS_WATCH = 128,
    KEEPER_STDOUT = 256, /* ATTACH: these are among the descriptors */
    KEEPER_STDERR = 512,
    KEEPER_COPIED = 1024,     /* answer to SNAPSHOT */
    KEEPER_INHERIT = 2048,    /* FORK: with the environment */
    KEEPER_FULL = 8192,       /* EXITED: it was ended for the disk limit */
    KEEPER_LABELS = 4096,     /* FORK: the payload's, instead of the parent's */
    KEEPER_TERMINATE = 16384, /* SIGNAL: SIGKILL follows, also for what is left of its group */
    KEEPER_ALONE = 65536,     /* START: the client does not end it in time: the keeper does */
    KEEPER_TIMED_OUT = 32768, /* EXITED, ATTACH: it was ended for its timeout */
};

/* What a client is told of the sandbox when it says hello. */
struct keeper_facts {
    char run[NAME_ID_MAX + 1];
    char task[NAME_ID_MAX + 1]; /* "": none */
    char runtime[16];
    uint32_t isolation; /* enum isolation */
    uint32_t can;       /* enum can */
    uint64_t protections;
    enum limit_holder held_by[LIMIT_COUNT];
    uint64_t limits[LIMIT_COUNT];
};

struct keeper_message {
    uint32_t kind;
    uint32_t process;
    uint32_t flags;
    int32_t value; /* signal, wait status, version, how many forks */
    uint16_t rows, cols;
    uint32_t uid, gid;
    uint64_t timeout_ms;         /* of a process; in an answer: what it got */
    uint64_t lease_ms, idle_ms;  /* RENEW: 0: as it is */
    uint64_t limit[LIMIT_COUNT]; /* UPDATE: 0: as it is */
    uint64_t oom_kills;          /* EXITED: since it was started; or USAGE_UNKNOWN */
    uint64_t pids_refused;
    uint64_t written[2];      /* ATTACH: to stdout and stderr so far, also what was not kept */
    struct file_request file; /* FILE: pointers and descriptors in it mean nothing */
    struct file_answer file_answer;
    struct keeper_facts facts; /* answer to HELLO */
    union {
        struct payload_near payload; /* of a request, where it is short */
        struct carrel_error error;   /* of an answer */
    };
};

/*
 * The report of a new keeper: its sandbox is ready, or why it failed. With a ready one comes
 * one end of a socket pair, the receipt. The creator writes a byte to it after it has delivered
 * the id. If it is closed without that byte, also in a packet that was never received, the id
 * was never delivered, and the keeper destroys the sandbox.
 */
struct keeper_ready {
    char id[NAME_ID_MAX + 1];
    struct carrel_error error; /* code 0: it is ready */
    bool is_progress; /* neither: this much of the work is done, and a report follows */
    uint64_t done, total;
    char note[RESULT_NOTE_MAX]; /* limits that are only partially enforced */
};
#define KEEPER_READY_ROOM 2048 /* of a socket, for each */

/* Sends the report, with `receipt` unless that is -1. Waits ten seconds at most for room. */
void keeper_send_ready(int report, const struct keeper_ready *ready, int receipt);

/* Waits for a report. *receipt is -1 where none came. -EPIPE: no keeper is left to send one. */
int keeper_receive_ready(int report, struct keeper_ready *ready, int *receipt);

/* As packet_send(): 0 or a negative errno; -EPIPE: the other side is gone. */
int keeper_send(int sock, const struct keeper_message *message, const int *fds, size_t n_fds,
        int flags);

/*
 * Receives one message; blocks unless `flags` has MSG_DONTWAIT. fds has KEEPER_MAX_FDS slots;
 * those without a descriptor become -1. Returns the number of descriptors, -EAGAIN, -EPIPE at
 * the end, or -EPROTO for anything malformed (whatever came with it is closed).
 */
int keeper_receive(int sock, struct keeper_message *message, int *fds, int flags);

/*
 * The payload of a request: in the message, or in the first of its descriptors, of which there
 * may be `max` more; `fds` begins behind that. It is copied, so the client cannot change it
 * after it was checked; to be unmapped.
 */
int keeper_payload_read(struct keeper_message *request, const int **fds, int *n_fds, int max,
        struct payload *out, struct carrel_error *err);

/* Text beside a message: a memory file that holds it. Returns a descriptor. */
int keeper_text_make(const char *text, size_t len, struct carrel_error *err);

struct buf;

/* Adds all of such a text to `out`. */
int keeper_text_read(int fd, struct buf *out, struct carrel_error *err);
