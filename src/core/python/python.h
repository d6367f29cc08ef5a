/* python.h - a Python program, as the command line uses it beside carrel_python(). */
#pragma once
#include <carrel/python.h>

#define PYTHON_CODE_MAX (16U << 20)
#define PYTHON_INPUTS_MAX (64U << 20)

/* Whether the text is a JSON object. Errors begin with `name`, then line and column. */
int python_check_inputs(
        const char *text, size_t len, const char *name, struct carrel_error *err);
