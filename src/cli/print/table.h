/* table.h - text in columns, each as wide as its widest cell. */
#pragma once
#include "base/auto.h"
#include "base/buf.h"

struct table {
    size_t columns;
    struct buf text; /* of all cells, each with a NUL at its end; the first row has titles */
};
#define TABLE_INIT(n)                                                                          \
    (struct table)                                                                             \
    {                                                                                          \
        .columns = (n), .text = BUF_INIT(SIZE_MAX / 4)                                         \
    }
void table_finish(struct table table);
DEFINE_AUTO(struct table, table_finish)

/* Adds one row. The text is printed as it is: escape what a run may have chosen. */
void table_add(struct table *table, const char *const *cells);

/* Whether there is a row below the titles. */
bool table_has_rows(const struct table *table);

/* Prints it; `widths`, one for each column, are the least ones (NULL: none). */
void table_print(const struct table *table, const size_t *widths);
