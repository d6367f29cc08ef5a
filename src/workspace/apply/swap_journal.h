/* swap_journal.h - the record from which an exchange of files is undone. */
#pragma once
#include "workspace/apply/swap.h"
#include <stdint.h>

/* One file of the journal, in the order of the exchange; its number is its name in old/. */
struct swap_record {
    char *path;
    enum swap_kind kind;
    bool is_there; /* it replaces something */
    size_t number;
    uint64_t inode; /* of the new file: tells whether the work tree still has it unchanged */
    uint64_t bytes;
    int64_t modified_ns;
};
struct swap_journal {
    struct swap_record *items;
    size_t n;
};
void swap_journal_finish(struct swap_journal *journal);

/*
 * The order: first items that depend on no removal, then removals, then items that had to wait
 * for one (a file becomes a directory, or vice versa). NULL: out of memory.
 */
size_t *swap_journal_order(const struct swap_item *items, size_t n);

/* `dir` is the path of the directory that the others get as a descriptor. */
int swap_journal_write(int dir, int stage, const struct swap_item *items, const size_t *order,
        size_t n, const char *commit, struct carrel_error *err);
int swap_journal_read(int dir, struct swap_journal *out, struct carrel_error *err);
int swap_journal_commit(int dir, char commit[static OID_MAX], struct carrel_error *err);

/* Restores one file. Does nothing if it was not exchanged, or was changed since. */
int swap_journal_undo(
        const struct swap_record *record, int top, int stage, struct carrel_error *err);
