/*
 * ignore_fuzz.c - arbitrary ignore rules and paths: lines, a NUL byte, then one path per line.
 */
#include "base/auto.h"
#include "base/err.h"
#include "fuzz.h"
#include "git/format/ignore.h"
#include <stdbool.h>

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* The last rule decides: a rule for everything, after all others. */
static void overrule(struct ignore *ignore, const char *path, const char *rule, bool expected)
{
    if (ignore_push(ignore, "", rule, strlen(rule), NULL) < 0)
        return;
    bool is_ignored = ignore_matches(ignore, path, true);
    require(is_ignored == expected || ignore_is_spent(ignore));
    ignore_pop(ignore);
}

static void ask(struct ignore *ignore, const char *path)
{
    size_t len = strlen(path);
    bool as_dir = ignore_matches(ignore, path, true);

    (void)ignore_matches(ignore, path, false);
    if (len == 0 || path[len - 1] == '/')
        return;
    overrule(ignore, path, "*\n", true);
    overrule(ignore, path, "!*\n", false);
    overrule(ignore, path, "# nothing\n\n \r\n", as_dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(ignore_free) struct ignore *ignore = NULL;
    AUTO(free) char *text = malloc(size + 1);
    struct carrel_error err;

    if (!text || ignore_new(&ignore, &err) < 0)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    const char *nul = memchr(text, '\0', size);
    size_t len = nul ? (size_t)(nul - text) : size;
    require(ignore_push(ignore, "", text, len, &err) == 0 || err.message[0]);
    /* The same rules again, for a directory, and with all their NUL bytes. */
    require(ignore_push(ignore, "a", text, size, &err) == 0 || err.message[0]);
    if (!nul)
        return 0;
    char *rest = text + len + 1;
    for (char *path; rest < text + size && (path = strsep(&rest, "\n"));) {
        ask(ignore, path);
        if (!rest)
            break;
    }
    return 0;
}
