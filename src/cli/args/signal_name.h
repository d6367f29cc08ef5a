/* signal_name.h - signals by name or number. */
#pragma once

struct carrel_error;

/* "TERM", "SIGTERM", "term" or "15". Returns the number; -EINVAL. */
int signal_from_name(const char *text, struct carrel_error *err);
