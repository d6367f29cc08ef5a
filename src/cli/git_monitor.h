/* git_monitor.h - carrel as the program that git asks, in a sandbox, what changed. */
#pragma once
#include <stdbool.h>

/* Whether carrel was started under that name. */
bool git_monitor_is_meant(const char *argv0);

/* The hook fsmonitor-watchman of githooks(5): version and token in, a new token and paths out.
 */
int git_monitor(int argc, char **argv);
