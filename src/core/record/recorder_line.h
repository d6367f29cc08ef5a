/* recorder_line.h - one record of a run's journal, for the files that write its kinds. */
#pragma once
#include "core/record/recorder.h"

struct json;

#define RECORD_ARGV_MAX (32U << 10) /* bytes of the command line; the hash covers all */

/* NULL if nothing is to be recorded. */
struct json *recorder_line_begin(struct recorder *recorder, const char *event);
int recorder_line_add(struct recorder *recorder, struct carrel_error *err);
