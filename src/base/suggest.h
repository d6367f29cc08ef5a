/* suggest.h - which known word did they mean? */
#pragma once
#include <stddef.h>

/*
 * Keeps `known` in *best when it is nearer to word[0..len) than what was offered before, and
 * near enough to be a slip. Start with *best = NULL, *distance = SIZE_MAX.
 */
void suggest_offer(
        const char *known, const char *word, size_t len, const char **best, size_t *distance);
