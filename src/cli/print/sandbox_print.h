/* sandbox_print.h - JSON of keepers as text for people. */
#pragma once

struct buf;
struct carrel_error;

/* The processes of a sandbox as a table, from the keeper's JSON. */
int sandbox_print_processes(const struct buf *json, struct carrel_error *err);
