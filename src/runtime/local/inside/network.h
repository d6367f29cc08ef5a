/*
 * network.h - the sandbox's own network: loopback and nothing else.
 *
 * A network namespace is the dearest of all namespaces, half a millisecond, and nothing in the
 * setup waits for it. So a thread makes it while init builds the root, and init joins it then.
 */
#pragma once

struct carrel_error;

struct netmaker {
    int running; /* the thread's id; the kernel writes 0 and wakes us when it has ended */
    int fd;      /* the namespace, made by the thread; -1: not yet, or it failed */
    int code;    /* negative errno of the thread */
    const char *what;
};

/*
 * Starts making it, on a stack that ends there. Needs CAP_SYS_ADMIN in an own user namespace.
 * Allocates nothing.
 */
int network_begin(struct netmaker *network, char *stack_end, struct carrel_error *err);

/* Waits for the thread to be gone and enters what it made. */
int network_join(struct netmaker *network, struct carrel_error *err);
