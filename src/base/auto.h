/* auto.h - ownership that ends where the scope ends. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * DEFINE_AUTO(type, free_fn) makes free_fnp(), which AUTO(free_fn) runs on the variable when
 * its scope ends. Destructors take NULL, -1 and half-built objects.
 */
#define DEFINE_AUTO(type, fn)                                                                  \
    static inline void fn##p(type *p)                                                          \
    {                                                                                          \
        fn(*p);                                                                                \
    }
/* unused: else clang warns about a variable that exists only for its destructor. */
#define AUTO(fn) __attribute__((cleanup(fn##p), unused))

/* Hands a pointer over: the variable becomes NULL, so its destructor does nothing. */
#define ptr_steal(p)                                                                           \
    ({                                                                                         \
        __typeof__(*(p)) stolen_ = *(p);                                                       \
        *(p) = NULL;                                                                           \
        stolen_;                                                                               \
    })

/* For a function whose locals must not enlarge the frame of a long-lived caller. */
#define NO_INLINE __attribute__((noinline))

#define container_of(ptr, type, member) ((type *)((uintptr_t)(ptr)-offsetof(type, member)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void freep(void *p)
{
    void *heap;
    memcpy(&heap, p, sizeof(heap));
    free(heap);
}
