#include "base/auto.h"
#include "base/err.h"
#include "cli/run_args.h"
#include "harness.h"
#include <errno.h>
#include <string.h>

static struct run_args args;
static struct carrel_error err;

/* Words are split at spaces; that is all these tests need. */
static int parse(const char *line)
{
    static char copy[512];
    static char *words[64];
    int n = 0;

    CHECK(strlen(line) < sizeof(copy));
    (void)strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[n++] = word;
    words[n] = NULL;
    return run_args_parse(&args, n, words, &err);
}

static void refused(const char *line, const char *message)
{
    CHECK_EQ(parse(line), -EINVAL);
    CHECK_STR(err.message, message);
    run_args_finish(&args);
}

TEST(the_program_begins_at_the_first_word_that_is_no_option)
{
    CHECK_EQ(parse("run --timeout 5s ls -l --json"), 0);
    CHECK_STR(args.options.argv[0], "ls");
    CHECK_STR(args.options.argv[2], "--json");
    CHECK(!args.is_json);
    CHECK_EQ(args.options.timeout_ms, 5000);
    run_args_finish(&args);

    CHECK_EQ(parse("run -- --odd"), 0);
    CHECK_STR(args.options.argv[0], "--odd");
    run_args_finish(&args);
}

TEST(a_value_may_follow_or_be_joined)
{
    CHECK_EQ(parse("run --memory=64M --pids 9 --cpu=0.5 --disk 1G --files 100 true"), 0);
    CHECK_EQ(args.options.memory_bytes, 64U << 20);
    CHECK_EQ(args.options.pids, 9);
    CHECK_EQ(args.options.cpu_milli, 500);
    CHECK_EQ(args.options.disk_bytes, 1U << 30);
    CHECK_EQ(args.options.files, 100);
    run_args_finish(&args);
}

TEST(a_shell_line_gets_the_words_behind_it)
{
    CHECK_EQ(parse("run -c exit a b"), 0);
    CHECK_STR(args.options.argv[0], "/bin/sh");
    CHECK_STR(args.options.argv[1], "-c");
    CHECK_STR(args.options.argv[2], "exit");
    CHECK_STR(args.options.argv[4], "a");
    CHECK_STR(args.options.argv[5], "b");
    CHECK(!args.options.argv[6]);
    run_args_finish(&args);
}

TEST(mounts_are_read_only_unless_said)
{
    CHECK_EQ(parse("run --mount a:/b --mount c:/d:rw --workdir . --mount e:/f:ro true"), 0);
    CHECK_EQ(args.options.n_mounts, 4);
    CHECK_STR(args.mounts[0].source, "a");
    CHECK_STR(args.mounts[0].target, "/b");
    CHECK(!args.mounts[0].is_writable);
    CHECK(args.mounts[1].is_writable);
    CHECK_STR(args.mounts[2].target, "/workspace");
    CHECK(args.mounts[2].is_writable);
    CHECK(!args.mounts[3].is_writable);
    run_args_finish(&args);

    CHECK_EQ(parse("run --workdir x:ro true"), 0);
    CHECK_STR(args.mounts[0].source, "x");
    CHECK(!args.mounts[0].is_writable);
    run_args_finish(&args);
}

TEST(users_are_numbers_or_three_names)
{
    CHECK_EQ(parse("run --user 5:6 true"), 0);
    CHECK_EQ(args.options.uid, 5);
    CHECK_EQ(args.options.gid, 6);
    run_args_finish(&args);
    CHECK_EQ(parse("run --user 7 true"), 0);
    CHECK_EQ(args.options.gid, 7);
    run_args_finish(&args);
    CHECK_EQ(parse("run --user root true"), 0);
    CHECK(args.options.has_user);
    CHECK_EQ(args.options.uid, 0);
    run_args_finish(&args);
    refused("run --user me true",
            "--user: 'me' is not a user; expected UID, UID:GID, root, agent or nobody");
    refused("run --user 1: true",
            "--user: '1:' is not a user; expected UID, UID:GID, root, agent or nobody");
}

TEST(lists_add_up)
{
    CHECK_EQ(parse("run --require seccomp --require landlock,netns --best-effort cpu true"), 0);
    CHECK_STR(args.options.require, "seccomp,landlock,netns");
    CHECK_STR(args.options.best_effort, "cpu");
    run_args_finish(&args);
}

TEST(a_relative_cwd_is_below_the_workspace)
{
    CHECK_EQ(parse("run --cwd sub true"), 0);
    CHECK_STR(args.options.cwd, "/workspace/sub");
    run_args_finish(&args);
    CHECK_EQ(parse("run --cwd /tmp true"), 0);
    CHECK_STR(args.options.cwd, "/tmp");
    run_args_finish(&args);
}

TEST(what_is_wrong_is_named_with_what_was_expected)
{
    refused("run --memory 12q true", "--memory: '12q' is not a size; expected a number with an "
                                     "optional unit K, M, G or T, such as 512M");
    refused("run --timeout soon true",
            "--timeout: 'soon' is not a time; expected a number with an "
            "optional unit ms, s, m or h, such as 300s");
    refused("run --timeout 0 true", "--timeout: must be more than 0");
    refused("run --pids -1 true", "--pids: '-1' is not a number; expected one such as 256");
    refused("run --cpu 1x true",
            "--cpu: '1x' is not a number; expected one such as 1.0 or 0.5");
    refused("run --memroy 1G true", "unknown option '--memroy' (did you mean '--memory'?)");
    refused("run --zzzzz true", "unknown option '--zzzzz'; --help lists them");
    refused("run -x true", "unknown option '-x'; --help lists them");
    refused("run --json=1 true", "option '--json' takes no value");
    refused("run --memory", "option '--memory' needs a value: SIZE");
    refused("run --network lan true",
            "--network: 'lan' is not a network; expected none or host");
    refused("run --mount a true",
            "--mount: 'a' is not SRC:DST[:ro|rw] with an absolute DST, such "
            "as ./data:/data:ro");
    refused("run --mount a:b true",
            "--mount: 'a:b' is not SRC:DST[:ro|rw] with an absolute DST, "
            "such as ./data:/data:ro");
    refused("run --env A true", "--env: 'A' is not NAME=VALUE");
    refused("run --hostname a_b true", "--hostname: expected 1 to 63 letters, digits, dots and "
                                       "dashes, such as build-1");
    refused("run --json --tty true", "--json and --tty exclude each other");
    refused("run",
            "no program; expected 'carrel run [options] -- PROGRAM [ARG...]' or -c 'LINE'");
}
