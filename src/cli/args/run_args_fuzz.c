/* run_args_fuzz.c - a command line with bytes of any kind: words are separated by NUL. */
#include "base/err.h"
#include "cli/args/run_args.h"
#include "fuzz.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[] = "run";
    char *words[64] = { name };
    int n = 1;
    struct carrel_error err = { 0 };
    struct run_args args;

    char *copy = malloc(size + 1);
    if (!copy)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    for (char *at = copy; at < copy + size && n < 63; at += strlen(at) + 1) {
        if (strncmp(at, "--env-file", 10) == 0)
            break; /* would read files of this machine */
        words[n++] = at;
    }
    words[n] = NULL;
    int r = run_args_parse(&args, n, words, &err);
    if (r < 0 && !err.message[0])
        abort();
    if (r == 0 && !args.wants_help && (!args.options.argv || !args.options.argv[0]))
        abort();
    run_args_finish(&args);

    const char *workspace;
    err.message[0] = '\0';
    r = run_args_parse_resume(&args, n, words, &workspace, &err);
    if (r < 0 && !err.message[0])
        abort();
    if (r == 0 && !args.wants_help && (!args.options.argv || !args.options.workspace))
        abort();
    run_args_finish(&args);
    free(copy);
    return 0;
}
