/* git_monitor.h - carrel as the program that git asks, in a sandbox, what changed. */
#pragma once

/* The hook fsmonitor-watchman of githooks(5): version and token in, a new token and paths out.
 */
int git_monitor(int argc, char **argv);
