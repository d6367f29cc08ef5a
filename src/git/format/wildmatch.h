/* wildmatch.h - shell patterns with the semantics of gitignore(5). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wildmatch_scope {
    WILDMATCH_NAME, /* one component: "*" also matches slashes */
    WILDMATCH_PATH, /* "*", "?" and "[...]" stop at slashes, "**" between slashes does not */
};

struct wildmatch_text {
    const char *data;
    size_t len;
};

/*
 * Whether all of `text` matches. `*?[\` are special, all other bytes are literal. A pattern
 * that ends inside brackets or after a backslash, or that names an unknown class, matches
 * nothing.
 *
 * The pattern is untrusted and may be made slow. So *steps, which the work decrements, bounds
 * it: at zero the answer is false.
 */
bool wildmatch(struct wildmatch_text pattern, struct wildmatch_text text,
        enum wildmatch_scope scope, uint64_t *steps);

/* Length of the part of `pattern` before its first special byte. */
size_t wildmatch_literal_len(struct wildmatch_text pattern);
