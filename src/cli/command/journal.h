/* journal.h - the subcommands of `carrel journal`; the table in journal.c lists them. */
#pragma once
#include "base/auto.h"
#include "cli/args/subcommands.h"
#include "core/record/find.h"

struct carrel_error;
struct buf;
struct json;

struct journal_args {
    struct subcommand_args common;
    bool is_followed;
    bool is_forced;
    const char *key;
    const char *output;
};

static inline const struct journal_args *journal_args_of(const struct subcommand_args *args)
{
    return container_of(args, const struct journal_args, common);
}

/* Statuses of verify; failures are 125 as everywhere. */
enum { STATUS_BAD = 1, STATUS_UNSEALED = 3 };

/* Each returns the exit status. */
int journal_verb_list(const struct subcommand_args *args);
int journal_verb_show(const struct subcommand_args *args);
int journal_verb_verify(const struct subcommand_args *args);
int journal_verb_export(const struct subcommand_args *args);
int journal_verb_keygen(const struct subcommand_args *args);

/* Opens the journal that args->words[0] names, ready to be read and checked. */
struct journal_asked {
    struct journals *journals;
    struct journal_ref ref;
    struct journal_trust trust;
    struct journal_known known;
};
void journal_asked_finish(struct journal_asked asked);
DEFINE_AUTO(struct journal_asked, journal_asked_finish)
int journal_ask(const struct subcommand_args *args, struct journal_asked *out,
        struct carrel_error *err);

/* The verdict of a reader at its end. */
int journal_asked_judge(const struct journal_asked *asked, struct journal_reader *reader,
        struct journal_verdict *out, struct carrel_error *err);

/* "sealed, 12 records, signed by …" and the like: one line, without its end. */
void journal_put_verdict(struct buf *out, const struct journal_verdict *verdict);
void journal_write_verdict(struct json *json, const struct journal_verdict *verdict);
int journal_verdict_status(const struct journal_verdict *verdict);
