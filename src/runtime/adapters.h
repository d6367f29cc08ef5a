/* adapters.h - the available runtimes. Only the table in runtime.c uses these names. */
#pragma once

struct runtime;

extern struct runtime local_runtime;
extern struct runtime process_runtime;
/* Only tests are linked with it; everywhere else its address is NULL. */
extern struct runtime fake_runtime __attribute__((weak, visibility("hidden")));
