/*
 * options.h - structs of callers that begin with their size, filled in by an _INIT macro.
 *
 * A program that was built with an older library has a smaller struct: the members that it does
 * not know have their defaults. One that was built with a newer library has a larger struct,
 * and is refused if it sets a member that this library does not know. For this a new member is
 * added at the end of a struct, behind its padding.
 */
#pragma once
#include <stddef.h>

struct carrel_error;

/*
 * Copies *given over *own, which has `size` bytes and the defaults. NULL: the defaults remain.
 * -EINVAL: *given does not begin with the size of such a struct; `init` is the macro to name.
 */
int options_take(
        void *own, size_t size, const void *given, const char *init, struct carrel_error *err);

/* struct OWN is initialised with INIT, whose name the message has. */
#define OPTIONS_TAKE(own, given, INIT, err)                                                    \
    options_take((own), sizeof(*(own)), (given), #INIT, (err))

/* The same for a struct that is answered: as much of *own as the caller's *to has room for. */
int options_give(
        void *to, const void *own, size_t size, const char *init, struct carrel_error *err);
#define OPTIONS_GIVE(to, own, INIT, err) options_give((to), (own), sizeof(*(own)), #INIT, (err))
