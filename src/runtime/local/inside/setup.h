/* setup.h - turns a new child into pid 1 of a sandbox. */
#pragma once
#include "runtime/local/inside/network.h"
#include "runtime/local/skeleton.h"
#include <sys/types.h>

struct carrel_error;
struct plan;

/* Everything the child needs, prepared by the parent before the clone. */
struct setup {
    const struct plan *plan;
    const int *mount_fds; /* one for each of the plan's sources; see apply.h */
    struct skeleton skeleton;
    int sock;        /* requests of the host, and our answers */
    int events;      /* our reports */
    int owner;       /* pidfd of the host process: readable when it has exited */
    int lock_fd;     /* of the slot: held as long as init lives; -1: none */
    char *stack_end; /* of a stack for the network thread */
    struct netmaker network;
    int space_fd; /* the private writable space; opened by setup */
    int listener; /* where programs wait for init; opened by setup; -1: none */
};

/* Runs every step in order and stops at the first failure: there is no weaker sandbox. */
int setup_run(struct setup *setup, struct carrel_error *err);
