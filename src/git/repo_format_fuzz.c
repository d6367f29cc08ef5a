/* repo_format_fuzz.c - a configuration file with arbitrary bytes. */
#include "base/err.h"
#include "fuzz.h"
#include "git/repo_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(repo_format_finish) struct repo_format format = REPO_FORMAT_INIT;
    struct carrel_error err = { 0 };
    AUTO(free) char *text = malloc(size ? size : 1); /* exact: a byte too many is seen */

    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    if (repo_format_parse(&format, text, size, "config", &err) < 0 && !err.message[0])
        abort();
    return 0;
}
