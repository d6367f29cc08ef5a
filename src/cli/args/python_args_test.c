#include "base/err.h"
#include "cli/args/python_args.h"
#include "cli/words.h"
#include "harness.h"
#include <errno.h>
#include <string.h>

static struct python_args args;
static struct carrel_error err;

static int parse(const char *line)
{
    static char *words[WORDS_MAX];

    int n = split_words(line, words);
    return python_args_parse(&args, n, words, &err);
}

static void refused(const char *line, const char *message)
{
    CHECK_EQ(parse(line), -EINVAL);
    CHECK_STR(err.message, message);
    python_args_finish(&args);
}

static const char *arguments(void)
{
    static char text[256];

    text[0] = '\0';
    for (const char *const *word = args.options.args; *word; word++) {
        (void)strcat(text, *word);
        (void)strcat(text, " ");
    }
    return text;
}

TEST(options_stand_before_and_after_the_file)
{
    CHECK_EQ(parse("python --timeout 5s a.py --memory 64M x --json"), 0);
    CHECK_STR(args.file, "a.py");
    CHECK_EQ(args.run.options.timeout_ms, 5000);
    CHECK_EQ(args.run.options.memory_bytes, 64U << 20);
    CHECK_STR(arguments(), "x --json ");
    CHECK(!args.run.is_json);
    python_args_finish(&args);

    CHECK_EQ(parse("python a.py --json -- --json -c"), 0);
    CHECK(args.run.is_json);
    CHECK_STR(arguments(), "--json -c ");
    python_args_finish(&args);
}

TEST(code_takes_the_place_of_a_file)
{
    CHECK_EQ(parse("python -c pass a b"), 0);
    CHECK_STR(args.code, "pass");
    CHECK(!args.file);
    CHECK(!args.run.shell_line);
    CHECK_STR(arguments(), "a b ");
    python_args_finish(&args);

    CHECK_EQ(parse("python -c pass --json -- -x"), 0);
    CHECK(args.run.is_json);
    CHECK_STR(arguments(), "-x ");
    python_args_finish(&args);

    refused("python -c pass -c pass", "-c: given twice");
    refused("python a.py -c pass", "-c and a file cannot be combined");
}

TEST(a_dash_is_standard_input)
{
    CHECK_EQ(parse("python - --quiet a"), 0);
    CHECK_STR(args.file, "-");
    CHECK_STR(arguments(), "a ");
    python_args_finish(&args);

    CHECK_EQ(parse("python -- a"), 0);
    CHECK(!args.file);
    CHECK_STR(arguments(), "a ");
    python_args_finish(&args);

    refused("python - --stdin",
            "the code comes from standard input: --stdin has nothing to pass on");
    refused("python --stdin",
            "the code comes from standard input: --stdin has nothing to pass on");
    CHECK_EQ(parse("python -c pass --stdin"), 0);
    python_args_finish(&args);
}

TEST(lists_of_modules_may_be_joined_and_repeated)
{
    CHECK_EQ(
            parse("python --block-import os,a.b --block-import c --allow-import m -c pass"), 0);
    CHECK_STR(args.options.block_imports[0], "os");
    CHECK_STR(args.options.block_imports[1], "a.b");
    CHECK_STR(args.options.block_imports[2], "c");
    CHECK(!args.options.block_imports[3]);
    CHECK_STR(args.options.allow_imports[0], "m");
    python_args_finish(&args);

    CHECK_EQ(parse("python -c pass"), 0);
    CHECK(!args.options.allow_imports);
    python_args_finish(&args);

    refused("python --allow-import os, -c pass",
            "--allow-import: '' is not the name of a module, such as os or os.path");
    refused("python --block-import os.* -c pass",
            "--block-import: 'os.*' is not the name of a module, such as os or os.path");
}

TEST(modes_are_three)
{
    CHECK_EQ(parse("python --imports block --trusted -c pass"), 0);
    CHECK_EQ(args.options.imports, CARREL_IMPORTS_BLOCK);
    CHECK(args.options.is_trusted);
    python_args_finish(&args);

    refused("python --imports deny -c pass",
            "--imports: 'deny' is not a mode; expected off, warn or block");
}

TEST(options_of_run_are_checked_as_there)
{
    refused("python --memroy 1G -c pass",
            "unknown option '--memroy' (did you mean '--memory'?)");
    refused("python --venvs x -c pass", "unknown option '--venvs' (did you mean '--venv'?)");
    refused("python --json --tty -c pass", "--json and --tty cannot be combined");
    refused("python --json --format text -c pass", "--format text and JSON cannot be combined");
    refused("python --format xml -c pass",
            "--format: 'xml' is not a format; expected text or json");
}
