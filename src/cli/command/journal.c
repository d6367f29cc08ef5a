/* journal.c - carrel journal: the subcommands, and which journal is meant. */
#include "cli/command/journal.h"
#include "base/auto.h"
#include "base/err.h"
#include "cli/args/options.h"
#include "cli/args/subcommands.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <stdint.h>

static struct journal_args *args_of(void *target)
{
    return target;
}

static int take_key(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected the file of a public key");
    args_of(t)->key = v;
    return 0;
}

static int take_output(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected a file that does not exist yet");
    args_of(t)->output = v;
    return 0;
}

enum { FOLLOW, KEY, OUTPUT, FORCE };
#define BIT OPTION_BIT
#define FLAG(name, help, member) OPTION_FLAG(name, help, struct journal_args, member)

static const struct option_row rows[] = {
    [FOLLOW] = FLAG("follow", "print new records until the run ends", is_followed),
    [KEY] = { "key", "FILE", "require seals signed by this public key", .take = take_key },
    [OUTPUT] = { "output", "FILE", "write to FILE, which must not exist yet",
            .take = take_output },
    [FORCE] = FLAG("force", "export even if verification fails", is_forced),
};

static const struct subcommand verbs[] = {
    { "list", "", "list all runs and the state of their journals",
            "States: sealed (complete); in progress; unsealed (carrel was killed); missing\n"
            "(the journal was removed by others); pruned (removed by carrel).",
            0, 0, 0, journal_verb_list, NULL },
    { "show", "RUN|FILE", "print the records of a run",
            "With --follow also new ones, until the run ends.", 1, 1, BIT(FOLLOW) | BIT(KEY),
            journal_verb_show, NULL },
    { "verify", "[RUN|FILE...]", "check that no record was changed, removed or moved",
            "Checks the given runs, or all runs and their index, and names the first bad\n"
            "record. A FILE is checked by itself, a RUN also against the index.\n\n"
            "Exit status: 0 if all is well; 1 if a record is bad; 3 if none is bad but a run\n"
            "has no seal, because it is in progress or carrel was killed.",
            0, SIZE_MAX, BIT(KEY), journal_verb_verify, NULL },
    { "export", "RUN|FILE", "write the verified records of a run, for an archive",
            "Writes the lines of the journal, which can be verified anywhere; with --json one\n"
            "document with verdict and records.",
            1, 1, BIT(KEY) | BIT(OUTPUT) | BIT(FORCE), journal_verb_export, NULL },
    { "keygen", "", "generate the key pair that signs seals",
            "Writes journal.key (secret) and journal.pub (for verification) to\n"
            "$XDG_CONFIG_HOME/carrel or ~/.config/carrel. Existing keys are not overwritten.",
            0, 0, 0, journal_verb_keygen, NULL },
};

int journal_ask(const struct subcommand_args *args, struct carrel_journal_reader **out,
        struct carrel_error *err)
{
    return carrel_journal_open(args->words[0], journal_args_of(args)->key, out, err);
}

int cmd_journal(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "journal",
        .help = "Usage: carrel journal SUBCOMMAND [options] [RUN|FILE]\n\n"
                "Reads the tamper-evident record of runs: one line per step, each with the "
                "hash\n"
                "of the line before. RUN is a run id or the beginning of one.",
        .end = "Exit status: 0; 1 if a record is bad; 3 from verify if a run has no seal;\n"
               "125 if carrel failed.",
        .list = verbs,
        .n = ARRAY_LEN(verbs),
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
    };
    struct journal_args args = { 0 };

    return subcommands_run(&set, argc, argv, &args.common);
}
