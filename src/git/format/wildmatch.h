/* wildmatch.h - shell patterns as gitignore(5) means them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wildmatch_scope {
    WILDMATCH_NAME, /* one component: "*" stops nowhere */
    WILDMATCH_PATH, /* "*", "?" and "[...]" stop at slashes, "**" between slashes does not */
};

struct wildmatch_text {
    const char *data;
    size_t len;
};

/*
 * Whether all of `text` is matched. `*?[\` are special, all other bytes stand for themselves.
 * A pattern that ends inside brackets or behind a backslash, or that names an unknown class,
 * matches nothing.
 *
 * Whoever wrote the pattern may have meant it to take for ever, so *steps, which is lowered as
 * work is done, ends it: at zero the answer is false.
 */
bool wildmatch(struct wildmatch_text pattern, struct wildmatch_text text,
        enum wildmatch_scope scope, uint64_t *steps);

/* Length of the part of `pattern` before its first special byte. */
size_t wildmatch_literal_len(struct wildmatch_text pattern);
