/* random.h - for tests: pseudo-random numbers from a seed. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

static inline unsigned below(struct random *random, size_t n)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return (unsigned)((random->state >> 11) % n);
}
