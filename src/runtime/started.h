/*
 * started.h - which process has which id, for adapters that list processes on this machine.
 *
 * The number is whatever the adapter can compare later. One that has ended stays until its end
 * was taken notice of; another process may have its number by then, so who asks must know more
 * than the number (that the runtime itself is its parent).
 */
#pragma once
#include "base/auto.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

struct started {
    struct started_one {
        uint32_t id;
        pid_t pid;
    } * all;
    size_t n;
    size_t size;
};

/* Makes room for one more, so that started_add() cannot fail. */
int started_reserve(struct started *started, struct carrel_error *err);
void started_add(struct started *started, uint32_t id, pid_t pid);
void started_remove(struct started *started, uint32_t id);
uint32_t started_find(const struct started *started, pid_t pid); /* 0: none */
void started_finish(struct started *started);
