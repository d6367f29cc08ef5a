/*
 * journal_sample.c - writes the journal of one run, step by step.
 *
 * usage: journal_sample RUNS RUN [STEP...]
 *   seal       seals it
 *   wait       prints "waiting" and continues when standard input ends
 *   die        kills itself with SIGKILL
 *   key=FILE   signs with that key; before all others
 *   anything   one record with that text
 */
#include "base/err.h"
#include "journal/journal.h"
#include "journal/key.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int step(struct journal *journal, const char *what, struct carrel_error *err)
{
    char seal[JOURNAL_HASH];
    char byte;

    if (strcmp(what, "seal") == 0)
        return journal_seal(journal, "exited", seal, err);
    if (strcmp(what, "die") == 0)
        return kill(getpid(), SIGKILL);
    if (strcmp(what, "wait") == 0) {
        (void)!write(STDOUT_FILENO, "waiting\n", 8);
        while (read(STDIN_FILENO, &byte, 1) > 0)
            ;
        return 0;
    }
    journal_text(journal_begin(journal, "process_started"), "text", what, strlen(what), 10000);
    return journal_add(journal, err);
}

int main(int argc, char **argv)
{
    AUTO(journal_key_free) struct journal_key *key = NULL;
    AUTO(journal_close) struct journal *journal = NULL;
    struct carrel_error err = { 0 };
    int at = 3;
    int r = 0;

    if (argc < 3)
        return 2;
    if (argc > at && strncmp(argv[at], "key=", 4) == 0)
        r = journal_key_load(argv[at++] + 4, &key, &err);
    const struct journal_options options = {
        .runs = argv[1],
        .run = argv[2],
        .task = "T-1",
        .key = key,
    };
    if (r == 0)
        r = journal_open(&options, &journal, &err);
    for (; r == 0 && at < argc; at++)
        r = step(journal, argv[at], &err);
    if (r < 0)
        (void)fprintf(stderr, "journal_sample: %s\n", err.message);
    return r < 0;
}
