/* adapters.h - the runtimes there are. Only the table in runtime.c names them. */
#pragma once

struct runtime;

extern struct runtime local_runtime;
extern struct runtime process_runtime;
