/* env_file_fuzz.c - a file of variables with bytes of any kind. */
#include "base/err.h"
#include "cli/args/env_file.h"
#include "fuzz.h"
#include <stdlib.h>
#include <string.h>

/* What is handed on is one NAME=VALUE without NUL or newline. */
static int take(void *target, const char *entry, size_t len, struct carrel_error *err)
{
    (void)target;
    (void)err;
    if (!memchr(entry, '=', len) || memchr(entry, '\n', len) || memchr(entry, '\0', len))
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct carrel_error err = { 0 };

    if (env_file_parse((const char *)data, size, "fuzz", take, NULL, &err) < 0 &&
            !err.message[0])
        abort();
    return 0;
}
