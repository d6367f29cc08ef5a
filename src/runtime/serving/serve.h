/*
 * serve.h - init: the process that serves a sandbox from inside, as pid 1.
 *
 * It starts programs, reports their exits, opens files, reaps orphans and keeps the lease, for
 * the host at the other ends of two sockets (wire.h). It is protected from its programs by
 * whoever made it: they cannot signal, trace or read it. It may be a fork of its caller without
 * exec, so it allocates nothing and takes no lock. When the host exits, the sockets end, the
 * server exits, and the kernel kills every process of its namespace.
 */
#pragma once
#include "runtime/serving/asked.h"
#include "runtime/serving/rights.h"
#include <stdbool.h>

struct carrel_error;

struct serving {
    struct rights rights;
    bool stays;   /* programs are started later, by a process that only owns the sandbox */
    int sock;     /* requests of the host, and our answers */
    int events;   /* our reports */
    int owner;    /* pidfd of the host process: readable when it has exited; -1: not known */
    int space_fd; /* of the private writable space, to measure it; -1: it has none */
    int listener; /* where programs wait for init; -1: nowhere */
    struct asked asked;
};

/* The end of the server's stack, which is free until serve(). */
char *serve_stack_end(void);

/* Reports that the sandbox is ready (WIRE_READY or WIRE_FAILED), and serves until the end. */
_Noreturn void serve(const struct serving *with);

/* Reports that the sandbox cannot be made, and exits. */
_Noreturn void serve_refuse(int sock, const struct carrel_error *err);
