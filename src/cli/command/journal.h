/* journal.h - the subcommands of `carrel journal`; the table in journal.c lists them. */
#pragma once
#include "base/auto.h"
#include "cli/args/subcommands.h"
#include <carrel/journal.h>

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

DEFINE_AUTO(struct carrel_journal_reader *, carrel_journal_free)

/* Opens the journal that args->words[0] names, to be read and checked. */
int journal_ask(const struct subcommand_args *args, struct carrel_journal_reader **out,
        struct carrel_error *err);

/* "sealed, 12 records, signed by …" and the like: one line, without its end. */
void journal_put_verdict(struct buf *out, const struct carrel_journal_verdict *verdict);
void journal_write_verdict(struct json *json, const struct carrel_journal_verdict *verdict);
int journal_verdict_status(const struct carrel_journal_verdict *verdict);
