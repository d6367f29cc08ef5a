/* error.h - why a call failed, in plain data that the caller owns. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Every call that can fail returns zero (or a documented non-negative value) on success and a
 * negative errno on failure, and takes one of these last. It needs no memory and no cleanup.
 */
struct carrel_error {
    int code;          /* negative errno: what programs branch on */
    char message[508]; /* what people read, outermost context first */
};

#ifdef __cplusplus
}
#endif
