/* env_file.c - parsing, pure. */
#include "cli/args/env_file.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <string.h>

int env_file_parse(const char *text, size_t len, const char *name,
        int (*add)(void *target, const char *entry, size_t len, struct carrel_error *err),
        void *target, struct carrel_error *err)
{
    const char *end = text + len;

    for (unsigned line = 1; text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;
        size_t n = (size_t)(stop - text);
        const char *entry = text;
        text = newline ? newline + 1 : end;
        if (n > 0 && entry[n - 1] == '\r')
            n--;
        if (n == 0 || entry[0] == '#')
            continue;

        const char *equals = memchr(entry, '=', n);
        char shown[64];
        if (!equals || !str_is_env_name(entry, (size_t)(equals - entry)))
            return err_set(err, -EINVAL, "%s:%u: " ENV_EXPECTED, name, line,
                    str_escape(entry, equals ? (size_t)(equals - entry) + 1 : n, shown,
                            sizeof(shown)));
        if (memchr(entry, '\0', n))
            return err_set(err, -EINVAL, "%s:%u: a value holds a NUL byte", name, line);
        int r = add(target, entry, n, err);
        if (r < 0)
            return r;
    }
    return 0;
}
