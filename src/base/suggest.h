/* suggest.h - finds the known word that a misspelt one probably means. */
#pragma once
#include <stddef.h>

/*
 * Keeps `known` in *best if it is nearer to word[0..len) than the best so far, and near enough
 * to be a typing error. Start with *best = NULL, *distance = SIZE_MAX.
 */
void suggest_offer(
        const char *known, const char *word, size_t len, const char **best, size_t *distance);
