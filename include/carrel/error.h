/* error.h - why a call failed, in plain data that the caller owns. */
#pragma once
#include <carrel/public.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where the cause lies, and so what can be done about it. */
enum carrel_origin {
    CARREL_FROM_CARREL,  /* this machine or carrel itself: see `carrel health` */
    CARREL_FROM_CALLER,  /* the arguments of the call */
    CARREL_FROM_POLICY,  /* a policy forbids it, or cannot be read */
    CARREL_FROM_PROGRAM, /* the program: it is missing or cannot be executed */
};

/*
 * Every call that can fail returns zero (or a documented non-negative value) on success and a
 * negative errno on failure, and takes one of these last, or NULL. It needs no memory and no
 * cleanup.
 */
struct carrel_error {
    int code;                  /* negative errno */
    enum carrel_origin origin; /* of the cause */
    char reason[24];           /* one of carrel_error_reasons(): what programs branch on */
    char message[480];         /* what people read, outermost context first */
};

/* "carrel" "caller" "policy" "program" */
CARREL_PUBLIC const char *carrel_origin_name(enum carrel_origin origin);

/* All words that `reason` can be, NULL-terminated. Later versions add words and keep these. */
CARREL_PUBLIC const char *const *carrel_error_reasons(void);

#ifdef __cplusplus
}
#endif
