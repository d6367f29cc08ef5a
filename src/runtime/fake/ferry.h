/*
 * ferry.h - the process that carries bytes between the programs of a fake sandbox and its
 * caller.
 *
 * A caller far away has no descriptor of a program's pipe or terminal: what it has are pipes to
 * something that passes bytes on. So output may come after the event of the exit, and a size of
 * a terminal needs a request. The ferry is a process, because a caller may fork while programs
 * run, and a copy of the caller would hold every stream open.
 */
#pragma once
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;
struct process;

struct ferry {
    int control; /* -1: it does not run */
    int pidfd;
    int n_left; /* streams whose readers took not all of it in the last flush */
};
#define FERRY_INIT                                                                             \
    (struct ferry)                                                                             \
    {                                                                                          \
        .control = -1, .pidfd = -1                                                             \
    }

/*
 * A child without an exit signal, as the programs' supervisor: wait(2) of the caller does not
 * see it. Returns 0 in the child, with every signal blocked; its pid, or a negative errno.
 */
long ferry_clone(int *pidfd);

int ferry_start(struct ferry *ferry, struct carrel_error *err);

/*
 * Hands the streams of a process over, and returns others in their place. They end when those
 * of the process do, and the other way round.
 */
int ferry_take(struct ferry *ferry, struct process *process, struct carrel_error *err);

/* -ENOTTY: the process has no terminal. */
int ferry_resize(struct ferry *ferry, uint32_t process, uint16_t rows, uint16_t cols,
        struct carrel_error *err);

/*
 * No program runs any more: when this returns, all that they wrote is in the caller's pipes, as
 * far as these hold it.
 */
int ferry_flush(struct ferry *ferry, struct carrel_error *err);

/* Every stream ends now, wherever its bytes are. */
void ferry_kill(struct ferry *ferry);

/*
 * The last flush. The ferry ends when all is delivered; this waits for that, unless a reader
 * has to take more bytes first.
 */
void ferry_finish(struct ferry *ferry);
