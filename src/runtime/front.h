/* front.h - what every call of the port begins and ends with. */
#pragma once

struct carrel_error;
struct runtime_ops;
struct sandbox;

/* For calls that need a sandbox in which something can still happen. */
int front_check_running(const struct sandbox *box, struct carrel_error *err);

/* Puts the adapter's name before the message, or makes one. Returns r. */
int front_fail(const struct runtime_ops *ops, int r, struct carrel_error *err);

/* -ENOTSUP: "runtime NAME: cannot WHAT". */
int front_lacks(const struct runtime_ops *ops, const char *what, struct carrel_error *err);
