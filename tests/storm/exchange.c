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
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
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

/* From no time to some milliseconds: a reader of one file, and one of many, meet the change. */
static void rest(void)
{
    for (unsigned i = 1U << below(9); i > 1; i--)
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
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) /* or it would go on for ever */
        return 1;
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
