/* journal.c - carrel journal: the subcommands, and which journal is meant. */
#include "cli/command/journal.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/options.h"
#include "cli/args/report_args.h"
#include "cli/args/subcommands.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

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

enum option { FOLLOW, KEY, OUTPUT, FORCE, JSON, HELP, N_OPTIONS };
#define BIT(option) (1U << (option))
#define FLAG(name, help, member) OPTION_FLAG(name, help, struct journal_args, member)

static const struct option_row all_rows[N_OPTIONS] = {
    [FOLLOW] = FLAG("follow", "wait for further records until the run is over", is_followed),
    [KEY] = { "key", "FILE", "seals must be signed by this public key", .take = take_key },
    [OUTPUT] = { "output", "FILE", "write there; it must not exist yet", .take = take_output },
    [FORCE] = FLAG("force", "export also what does not verify", is_forced),
    [JSON] = FLAG("json", "print JSON, and nothing else", is_json),
    [HELP] = FLAG("help", "this text", wants_help),
};

struct verb {
    const char *name;
    const char *words; /* what --help calls the words it takes */
    const char *help;
    const char *more; /* further lines for its own --help */
    size_t min, max;  /* how many words */
    unsigned options; /* --json and --help are in every set */
    int (*run)(const struct journal_args *args);
};

static const struct verb verbs[] = {
    { "list", "", "all runs, and what became of them",
            "States: sealed (its end was recorded); in progress; unsealed (its carrel was\n"
            "killed); missing (its journal was taken away); pruned (removed by carrel).",
            0, 0, 0, journal_verb_list },
    { "show", "RUN|FILE", "the records of one run",
            "With --follow further ones as they come, until the run is over.", 1, 1,
            BIT(FOLLOW) | BIT(KEY), journal_verb_show },
    { "verify", "[RUN|FILE...]", "whether records were changed, lost or moved",
            "All runs and their index, or those that are named. The first bad record is "
            "named.\n"
            "A FILE is looked at alone, a RUN together with what the index says of it.\n"
            "The exit status is 0; 1 when something is wrong; 3 when nothing is, but a run "
            "has\n"
            "no seal: it is in progress, or its carrel was killed.",
            0, SIZE_MAX, BIT(KEY), journal_verb_verify },
    { "export", "RUN|FILE", "a run's records as they are, checked, for an archive",
            "The lines of the journal, which verify anywhere; with --json one document with "
            "the\n"
            "verdict and the records.",
            1, 1, BIT(KEY) | BIT(OUTPUT) | BIT(FORCE), journal_verb_export },
    { "keygen", "", "make the key that signs seals",
            "Two files in $XDG_CONFIG_HOME/carrel or ~/.config/carrel: journal.key is the "
            "secret,\n"
            "journal.pub is for whoever verifies. Existing ones are never replaced.",
            0, 0, 0, journal_verb_keygen },
};

static size_t select_rows(unsigned options, struct option_row rows[static N_OPTIONS])
{
    size_t n = 0;

    for (size_t i = 0; i < N_OPTIONS; i++)
        if (options & BIT(i))
            rows[n++] = all_rows[i];
    return n;
}

static void print_help(void)
{
    (void)puts("Usage: carrel journal SUBCOMMAND [options] [RUN|FILE]\n\n"
               "Looks at what carrel wrote down of its runs: one record for each step, each "
               "with the\nhash of the one before. RUN is a run, or the beginning of its id.\n\n"
               "Subcommands:");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        printf("  %-8s %s\n", verbs[i].name, verbs[i].help);
    (void)puts("\nOptions, each of some subcommands ('carrel journal SUBCOMMAND --help'):");
    options_print(all_rows, N_OPTIONS);
    (void)puts(
            "\nThe exit status is 0; 1 when records are wrong; 3 from verify when nothing is "
            "wrong and\na run has no seal; 125 when carrel failed.");
}

static void print_verb_help(const struct verb *verb)
{
    struct option_row rows[N_OPTIONS];

    printf("Usage: carrel journal %s [options]%s%s\n\n%c%s.\n%s\n\nOptions:\n", verb->name,
            verb->words[0] ? " " : "", verb->words, verb->help[0] - 'a' + 'A', verb->help + 1,
            verb->more);
    options_print(rows, select_rows(verb->options | BIT(JSON) | BIT(HELP), rows));
}

void journal_asked_finish(struct journal_asked asked)
{
    journal_ref_finish(asked.ref);
    journals_close(asked.journals);
}

int journal_ask(
        const struct journal_args *args, struct journal_asked *out, struct carrel_error *err)
{
    struct journal_asked *asked = out;

    int r = journals_open(&asked->journals, err);
    if (r == 0)
        r = journals_find(asked->journals, args->words[0], &asked->ref, err);
    if (r < 0)
        return r;
    if (asked->ref.fd < 0)
        return err_set(err, -ENOENT, "the journal of run '%s' %s", asked->ref.run,
                asked->ref.entry->is_pruned ? "was pruned"
                                            : "is missing, but the index lists the run");
    asked->known = (struct journal_known){ .is_index = asked->ref.is_index };
    if (asked->ref.run[0])
        asked->known = journal_run_known(asked->ref.run, asked->ref.entry);
    r = journals_trust(args->key, &asked->trust, err);
    if (r > 0)
        asked->known.trust = &asked->trust;
    return r < 0 ? r : 0;
}

int journal_asked_judge(const struct journal_asked *asked, struct journal_reader *reader,
        struct journal_verdict *out, struct carrel_error *err)
{
    journal_reader_judge(reader, out);
    if (!asked->ref.run[0])
        return 0;
    journal_run_judge(asked->ref.entry, out);
    if (out->state != JOURNAL_UNSEALED || !out->chain.is_sealed)
        return 0;
    return journals_verify(&asked->ref, asked->known.trust, out, err); /* has a later index */
}

static int run_verb(size_t index, int argc, char **argv)
{
    const struct verb *verb = &verbs[index];
    const struct subcommand_words takes = { verb->words, verb->min, verb->max };
    struct journal_args args = { 0 };
    struct option_row rows[N_OPTIONS];
    struct carrel_error err = { 0 };

    size_t n = select_rows(verb->options | BIT(JSON) | BIT(HELP), rows);
    AUTO(free) char **words = calloc((size_t)argc + 1, sizeof(*words));
    int r = words ? options_parse_mixed(rows, n, argc, argv, &args, words, &err)
                  : err_set_errno(&err, -ENOMEM, "arguments");
    args.words = words;
    args.n_words = r < 0 ? 0 : (size_t)r;
    if (r >= 0 && !args.wants_help)
        r = subcommand_check_words("journal", verb->name, takes, words, args.n_words, &err);
    if (r < 0)
        return report_fail(args.is_json, &err);
    if (args.wants_help) {
        print_verb_help(verb);
        return report_finish(0);
    }
    return verb->run(&args);
}

static const char *name_of(size_t index)
{
    return verbs[index].name;
}

int cmd_journal(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "journal",
        .first = "list",
        .n = ARRAY_LEN(verbs),
        .name = name_of,
        .print_help = print_help,
        .run = run_verb,
    };

    return subcommands_run(&set, argc, argv);
}
