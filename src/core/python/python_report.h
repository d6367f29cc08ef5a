/*
 * python_report.h - what the guest says of a run, into the result.
 *
 * Two texts come back. The findings were written before the program's first line and put out of
 * its reach: they are as trustworthy as the interpreter. The report was written at the end,
 * beside the program, which can forge it. Both are read as foreign bytes.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_run_result;

#define PYTHON_REPORT_EXTRA (256U << 10) /* bytes of a report beside the result itself */

struct python_texts {
    const char *findings; /* NULL: the guest did not get so far */
    size_t findings_len;
    const char *report; /* empty: the program ended without the guest */
    size_t report_len;
    bool is_warning; /* findings are worth a note */
};

/*
 * Fills in the members `value`, `value_error`, `error` and `meta` of a result that has a reason
 * already, and sets reason and message again. Memory that ran out shows in the buffers.
 */
void python_report_apply(const struct python_texts *texts, struct carrel_run_result *result);
