/* text_form.h - a result as short text for a model, within a budget. */
#pragma once
#include <stdint.h>

struct buf;
struct carrel_run_result;

#define TEXT_FORM_BYTES (10U << 10)

/*
 * Adds a status line, the program's result if there is one, what it wrote, and the end of what
 * it wrote to standard error: at most `budget` bytes, cut between characters, with a line that
 * says so where something was left out. Valid UTF-8; a terminal obeys nothing in it but line
 * ends and tabs.
 */
void text_form_write(const struct carrel_run_result *result, uint64_t budget, struct buf *out);
