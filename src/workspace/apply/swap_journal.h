/* swap_journal.h - the record that an exchange of files can be undone from. */
#pragma once
#include "workspace/apply/swap.h"
#include <stdint.h>

/* One file of the journal, in the order of the exchange; its number names its place in old/. */
struct swap_record {
    char *path;
    enum swap_kind kind;
    bool is_there; /* it replaces something */
    size_t number;
    uint64_t inode; /* of the new file: who still has it in the work tree unchanged */
    uint64_t bytes;
    int64_t modified_ns;
};
struct swap_journal {
    struct swap_record *items;
    size_t n;
};
void swap_journal_finish(struct swap_journal *journal);

/* In which order: what needs no removal first, then removals, then what had to wait for one (a
 * file becomes a directory, or the other way round). NULL: no memory. */
size_t *swap_journal_order(const struct swap_item *items, size_t n);

/* `dir` is the path of the directory that the others get as a descriptor. */
int swap_journal_write(const char *dir, int stage, const struct swap_item *items,
        const size_t *order, size_t n, const char *commit, struct carrel_error *err);
int swap_journal_read(int dir, struct swap_journal *out, struct carrel_error *err);
int swap_journal_commit(int dir, char commit[static OID_MAX], struct carrel_error *err);

/* Puts one file back. Nothing was done to it, or somebody changed it since: nothing to do. */
int swap_journal_undo(
        const struct swap_record *record, int top, int stage, struct carrel_error *err);
