/* table.c - columns of text. */
#include "cli/print/table.h"
#include <assert.h>
#include <stdio.h>

#define COLUMNS_MAX 16

void table_finish(struct table table)
{
    buf_finish(table.text);
}

void table_add(struct table *table, const char *const *cells)
{
    for (size_t i = 0; i < table->columns; i++)
        buf_add(&table->text, cells[i], strlen(cells[i]) + 1);
}

static size_t count(const struct table *table)
{
    size_t n = 0;

    for (size_t i = 0; i < table->text.len; i++)
        n += table->text.data[i] == '\0';
    return n;
}

bool table_has_rows(const struct table *table)
{
    return count(table) > table->columns;
}

void table_print(const struct table *table, const size_t *widths)
{
    size_t wide[COLUMNS_MAX] = { 0 };
    const size_t columns = table->columns;
    const size_t n = count(table);
    const char *cell = table->text.data;

    assert(columns > 0 && columns <= COLUMNS_MAX);
    for (size_t i = 0; widths && i < columns; i++)
        wide[i] = widths[i];
    for (size_t i = 0; i < n; i++, cell += strlen(cell) + 1)
        if (strlen(cell) > wide[i % columns])
            wide[i % columns] = strlen(cell);
    cell = table->text.data;
    for (size_t i = 0; i < n; i++, cell += strlen(cell) + 1) {
        const size_t column = i % columns;
        printf("%s%-*s%s", column ? "  " : "", column < columns - 1 ? (int)wide[column] : 0,
                cell, column == columns - 1 ? "\n" : "");
    }
}
