/*
 * network.h - the sandbox's own network: only loopback.
 *
 * A network namespace is the most expensive of all namespaces, half a millisecond, and nothing
 * in the setup depends on it. So a thread creates it while init builds the root, and init joins
 * it then.
 */
#pragma once

struct carrel_error;

struct netmaker {
    int running; /* the thread's id; the kernel writes 0 and wakes us when it exits */
    int fd;      /* the namespace, made by the thread; -1: not yet, or it failed */
    int code;    /* negative errno of the thread */
    const char *what;
};

/*
 * Starts to create it, on a stack that ends there. Needs CAP_SYS_ADMIN in its own user
 * namespace. Allocates nothing.
 */
int network_begin(struct netmaker *network, char *stack_end, struct carrel_error *err);

/* Waits until the thread has exited and enters the namespace. */
int network_join(struct netmaker *network, struct carrel_error *err);
