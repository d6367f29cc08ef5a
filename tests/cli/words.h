/* words.h - a command line for tests of options. */
#pragma once
#include "harness.h"
#include <string.h>

#define WORDS_MAX 64

/* Words are split at spaces. They are valid until the next call. */
static inline int split_words(const char *line, char *words[static WORDS_MAX])
{
    static char copy[512];
    int n = 0;

    CHECK(strlen(line) < sizeof(copy));
    (void)strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[n++] = word;
    words[n] = NULL;
    return n;
}
