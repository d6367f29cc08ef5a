/* python.h - Python code in its own sandbox: inputs go in, a result comes out. */
#pragma once
#include <carrel/run.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of imports that the rules do not allow. A lint: the sandbox is the boundary. */
enum carrel_imports {
    CARREL_IMPORTS_DEFAULT, /* warn */
    CARREL_IMPORTS_OFF,
    CARREL_IMPORTS_WARN,  /* the code runs; the result names them */
    CARREL_IMPORTS_BLOCK, /* nothing runs: CARREL_BLOCKED_IMPORT */
};

/*
 * What to run. Start from CARREL_PYTHON_OPTIONS_INIT and set the code; everything else has a
 * default.
 */
struct carrel_python_options {
    size_t size;                          /* of this struct, filled in by the INIT macro */
    const struct carrel_run_options *run; /* NULL: all defaults. Its argv is not looked at */
    const char *code;
    size_t code_len;
    const char *name;        /* the file it is from, for tracebacks and __file__; NULL: none */
    const char *const *args; /* sys.argv[1:], NULL-terminated; NULL: none */
    const char *inputs;      /* a JSON object, the program's `inputs`; NULL: an empty one */
    size_t inputs_len;
    const char *python; /* path or name of the interpreter in the sandbox; NULL: "python3" */
    const char *venv;   /* virtual environment of the host, shown read-only; NULL: none */
    enum carrel_imports imports;
    const char *const *block_imports; /* more modules to block; NULL-terminated */
    const char *const *allow_imports; /* when given, no others are allowed; NULL-terminated */
    bool is_trusted;                  /* no import rules */
    uint64_t result_bytes;            /* JSON of the result at most; 0: 1 MiB */
};

#define CARREL_PYTHON_OPTIONS_INIT                                                             \
    {                                                                                          \
        .size = sizeof(struct carrel_python_options)                                           \
    }

/*
 * Runs to the end, as carrel_run() does and with the same errors. The code must be whole before
 * the call; a syntax error or a blocked import is an outcome, not an error.
 */
CARREL_PUBLIC int carrel_python(const struct carrel_python_options *options,
        struct carrel_run_result **out, struct carrel_error *err);

/* More than this of either is refused. */
#define CARREL_PYTHON_CODE_MAX (16U << 20)
#define CARREL_PYTHON_INPUTS_MAX (64U << 20)

/*
 * Whether a text is a JSON object, as `inputs` must be. Errors begin with `name`, then line and
 * column.
 */
CARREL_PUBLIC int carrel_python_check_inputs(
        const char *text, size_t len, const char *name, struct carrel_error *err);

/*
 * JSON of what the program assigned to `result`; "null" if it did not, or if it was no JSON,
 * which the member result_error of the whole result says. It is the program's word.
 */
CARREL_PUBLIC const char *carrel_run_result_value(const struct carrel_run_result *result);

#ifdef __cplusplus
}
#endif
