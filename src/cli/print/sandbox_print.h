/* sandbox_print.h - JSON of keepers as text for people. */
#pragma once

struct carrel_error;

/* The processes of a sandbox as a table, from the keeper's JSON. */
int sandbox_print_processes(const char *json, struct carrel_error *err);
