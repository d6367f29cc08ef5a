/*
 * exchange.c - gives a name to one file after the other, as fast as it can.
 * tests/storm/storm.py starts it, in a sandbox or on the host.
 *
 * usage: exchange SEED STOP NAME OTHER...
 *
 * NAME is exchanged with an OTHER that the seed chooses, and back again, for the time that it
 * chooses, until the file STOP exists. Then each file has its own name again. Prints `seed
 * SEED` when the storm has begun, and at its end how often NAME was another file.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t state;

static unsigned below(unsigned n) /* xorshift64 */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % n;
}

static int exchange(const char *name, const char *other)
{
    return renameat2(AT_FDCWD, name, AT_FDCWD, other, RENAME_EXCHANGE);
}

/* So that both files are seen, and a reader finds the change at each of its steps. */
static void rest(void)
{
    for (unsigned i = below(32); i > 0; i--)
        (void)sched_yield();
}

static unsigned long storm(const char *stop, const char *name, char **others, unsigned n)
{
    unsigned long count = 0;

    while (access(stop, F_OK) < 0) {
        const char *other = others[below(n)];
        if (exchange(name, other) < 0)
            continue; /* carrel works there: it may be gone for a moment */
        rest();
        while (exchange(name, other) < 0 && access(stop, F_OK) < 0)
            ;
        rest();
        count++;
    }
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    state = strtoull(argv[1], NULL, 10) * 2654435761U + 1;
    if (exchange(argv[3], argv[4]) < 0 || exchange(argv[3], argv[4]) < 0) {
        perror(argv[3]);
        return 1;
    }
    printf("seed %s\n", argv[1]);
    (void)fflush(stdout);
    printf("%lu\n", storm(argv[2], argv[3], argv + 4, (unsigned)argc - 4));
    return 0;
}
