/* adapters.h - the available runtimes. Only the table in runtime.c uses these names. */
#pragma once

struct runtime;

extern struct runtime local_runtime;
extern struct runtime process_runtime;
