/* front.h - checks that every call of the port shares. */
#pragma once

struct carrel_error;
struct runtime_ops;
struct sandbox;

/* For calls that need a running sandbox. */
int front_check_running(const struct sandbox *box, struct carrel_error *err);

/* Prefixes the message with the adapter's name, or creates one. Returns r. */
int front_fail(const struct runtime_ops *ops, int r, struct carrel_error *err);

/* -ENOTSUP: "runtime NAME: cannot WHAT". */
int front_lacks(const struct runtime_ops *ops, const char *what, struct carrel_error *err);
