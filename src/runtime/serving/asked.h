/*
 * asked.h - calls that a program may make only after init has counted.
 *
 * The kernel has no limit per sandbox for what they take, so the filter makes the program wait
 * (RULE_ASK) and init answers. netlink.h and filters.h say what is counted.
 */
#pragma once

struct asked {
    int netlink_most; /* sockets at a time */
    unsigned filters; /* filters that were permitted since they were last counted */
};

/*
 * Answers one program that waits at `listener`. Never blocks for long, and never fails: a
 * program that has exited meanwhile needs no answer.
 */
void asked_answer(int listener, struct asked *asked);
