/*
 * python.c - gives Python code an input and gets its result as JSON.
 *
 *     cc python.c $(pkg-config --cflags --libs carrel) -o python
 *     ./python '{"words": ["a", "bb"]}'
 */
#include <carrel/carrel.h>
#include <stdio.h>
#include <string.h>

static const char code[] = "print('counting')\n"
                           "result = {w: len(w) for w in inputs['words']}\n";

int main(int argc, char **argv)
{
    struct carrel_python_options options = CARREL_PYTHON_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    struct carrel_error err;
    const char *inputs = argc > 1 ? argv[1] : "{\"words\": []}";

    if (carrel_python_check_inputs(inputs, strlen(inputs), "the argument", &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    options.code = code;
    options.code_len = sizeof(code) - 1;
    options.inputs = inputs;
    options.inputs_len = strlen(inputs);
    if (carrel_python(&options, &result, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("%s\n", carrel_run_result_value(result)); /* the program's word: not trusted */
    int status = carrel_run_result_status(result);
    if (status != 0)
        fprintf(stderr, "%s\n", carrel_run_result_message(result));
    carrel_run_result_free(result);
    return status;
}
