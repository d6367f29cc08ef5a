/* public.h - what all headers share. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Marks the names that libcarrel.so exports. */
#define CARREL_PUBLIC __attribute__((visibility("default")))

/* Of the library, such as "0.1.0". */
CARREL_PUBLIC const char *carrel_version(void);

/* Frees text that a call of this library returned as `char *`. NULL is fine. */
CARREL_PUBLIC void carrel_free(char *text);

#ifdef __cplusplus
}
#endif
