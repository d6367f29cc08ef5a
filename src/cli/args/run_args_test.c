#include "base/auto.h"
#include "base/err.h"
#include "cli/args/run_args.h"
#include "cli/words.h"
#include "harness.h"
#include <errno.h>
#include <string.h>

static struct run_args args;
static struct carrel_error err;

static int parse(const char *line)
{
    static char *words[WORDS_MAX];

    int n = split_words(line, words);
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
    CHECK_EQ(parse("run --io-read 10M --io-write=1M true"), 0);
    CHECK_EQ(args.options.io_read_bytes, 10U << 20);
    CHECK_EQ(args.options.io_write_bytes, 1U << 20);
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
            "optional unit ms, s, m, h or d, such as 300s");
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
    refused("run --env A true",
            "--env: 'A' is not NAME=VALUE with a NAME of letters, digits and _");
    refused("run --env =x true",
            "--env: '=' is not NAME=VALUE with a NAME of letters, digits and _");
    refused("run --hostname a_b true", "--hostname: expected 1 to 63 letters, digits, dots and "
                                       "dashes, such as build-1");
    refused("run --json --tty true", "--json and --tty cannot be combined");
    refused("run",
            "no program; expected 'carrel run [options] -- PROGRAM [ARG...]' or -c 'LINE'");
}

TEST(a_run_has_no_workspace_unless_an_option_asks_for_one)
{
    static const char *const asking[] = {
        "run --workspace true",
        "run --repo . true",
        "run --base main true",
        "run --task T-1 true",
        "run --run R-1 true",
        "run --dirty true",
        "run --include .env true",
        "run --history cut true",
        "run --setup make true",
        "run --tree copy true",
        "run --on-success commit true",
        "run --on-failure discard true",
    };

    CHECK_EQ(parse("run true"), 0);
    CHECK(!args.options.workspace);
    run_args_finish(&args);
    for (size_t i = 0; i < ARRAY_LEN(asking); i++) {
        CHECK_EQ(parse(asking[i]), 0);
        CHECK(args.options.workspace);
        CHECK(!args.options.workspace->is_folder);
        CHECK(!args.options.workspace->resume);
        run_args_finish(&args);
    }
}

TEST(every_option_of_a_workspace_arrives)
{
    CHECK_EQ(parse("run --repo src --base v1 --task T-1 --run R-2 --include .env --include "
                   "*.key "
                   "--history cut --setup install --setup-key a.lock --setup-key b.lock "
                   "--tree copy --on-success apply --on-failure discard true"),
            0);
    const struct carrel_workspace_options *ws = args.options.workspace;
    CHECK_STR(ws->repo, "src");
    CHECK_STR(ws->base, "v1");
    CHECK_STR(ws->task, "T-1");
    CHECK_STR(ws->run, "R-2");
    CHECK_STR(ws->include[0], ".env");
    CHECK_STR(ws->include[1], "*.key");
    CHECK(!ws->include[2]);
    CHECK_EQ(ws->history, CARREL_HISTORY_CUT);
    CHECK_STR(ws->setup, "install");
    CHECK_STR(ws->setup_keys[1], "b.lock");
    CHECK(!ws->setup_keys[2]);
    CHECK_EQ(ws->tree, CARREL_TREE_COPY);
    CHECK_EQ(ws->on_success, CARREL_APPLY);
    CHECK_EQ(ws->on_failure, CARREL_DISCARD);
    CHECK(!ws->is_dirty);
    run_args_finish(&args);

    CHECK_EQ(parse("run --dirty --quiet true"), 0);
    CHECK(args.options.workspace->is_dirty);
    run_args_finish(&args);
}

TEST(a_folder_with_cow_is_a_workspace_and_no_mount)
{
    CHECK_EQ(parse("run --mount a:/a --workdir f --mount b:/b --cow true"), 0);
    CHECK_EQ(args.options.n_mounts, 2);
    CHECK_STR(args.mounts[0].target, "/a");
    CHECK_STR(args.mounts[1].target, "/b");
    CHECK(args.options.workspace->is_folder);
    CHECK_STR(args.options.workspace->repo, "f");
    run_args_finish(&args);

    CHECK_EQ(parse("run --cow --workdir f --task t --on-success apply true"), 0);
    CHECK_EQ(args.options.n_mounts, 0);
    CHECK_STR(args.options.workspace->task, "t");
    run_args_finish(&args);
}

TEST(options_of_workspaces_that_contradict_are_refused)
{
    refused("run --workdir . --repo . true",
            "--workdir and --repo cannot be combined: both would be /workspace (a folder "
            "without git: --workdir DIR --cow)");
    refused("run --workdir . --on-success apply true",
            "--workdir and --on-success cannot be combined: both would be /workspace (a folder "
            "without git: --workdir DIR --cow)");
    refused("run --workspace --mount a:/workspace true",
            "the mount on /workspace and --workspace cannot be combined: both would be "
            "/workspace");
    refused("run --workdir a --workdir b --cow true",
            "the mount on /workspace and --cow cannot be combined: both would be /workspace");
    refused("run --cow true", "--cow needs --workdir DIR: the folder to work on");
    refused("run --workdir a:ro --cow true",
            "--workdir DIR:ro and --cow cannot be combined: the copy is writable");
    refused("run --workdir a --cow --base x true",
            "--base is for git repositories, --workdir DIR --cow for folders without git: give "
            "one of them");
    refused("run --workdir a --cow --on-success commit true",
            "--on-success commit needs git; a folder has keep, apply and discard");
    refused("run --setup-key a true",
            "--setup-key needs --setup LINE, the command to run when that file changes");
    refused("run --dirty --base x true", "--dirty and --base cannot be combined: uncommitted "
                                         "changes belong to the checked-out commit");
}

TEST(choices_of_workspaces_are_named)
{
    refused("run --history all true", "--history: 'all' is not one of full, cut");
    refused("run --tree btrfs true", "--tree: 'btrfs' is not one of auto, overlay, copy");
    refused("run --on-success merge true",
            "--on-success: 'merge' is not one of keep, commit, apply, discard");
    refused("run --on-failure apply true", "--on-failure: 'apply' is not one of keep, discard");
    refused("run --repo= true", "--repo: expected a directory in a git repository");
    refused("run --task= true", "--task: expected an id, such as T-123");
}

static const char *resumed;

static int parse_resume(const char *line)
{
    static char copy[512];
    static char *words[64];
    int n = 0;

    (void)strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[n++] = word;
    words[n] = NULL;
    return run_args_parse_resume(&args, n, words, &resumed, &err);
}

TEST(resume_takes_a_name_with_options_on_both_sides)
{
    static const char *const named[] = {
        "resume fix-1 -- make test",
        "resume fix-1 make test",
        "resume --timeout 5s fix-1 -- make test",
        "resume fix-1 --timeout 5s make test",
        "resume --pids 9 fix-1 --timeout 5s -- make test",
    };

    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        CHECK_EQ(parse_resume(named[i]), 0);
        CHECK_STR(resumed, "fix-1");
        CHECK_STR(args.options.argv[0], "make");
        CHECK_STR(args.options.argv[1], "test");
        CHECK(args.options.workspace);
        run_args_finish(&args);
    }
    CHECK_EQ(parse_resume("resume -- make test"), 0);
    CHECK(!resumed);
    CHECK_STR(args.options.argv[0], "make");
    run_args_finish(&args);
    CHECK_EQ(parse_resume("resume --quiet -- make test"), 0);
    CHECK(!resumed);
    run_args_finish(&args);
    CHECK_EQ(parse_resume("resume -c make"), 0);
    CHECK(!resumed);
    CHECK_STR(args.options.argv[2], "make");
    run_args_finish(&args);
    CHECK_EQ(parse_resume("resume T-1/R-1 --on-success commit -c make"), 0);
    CHECK_STR(resumed, "T-1/R-1");
    CHECK_EQ(args.options.workspace->on_success, CARREL_COMMIT);
    run_args_finish(&args);
}

TEST(resume_refuses_what_decides_how_a_workspace_is_made)
{
    CHECK_EQ(parse_resume("resume r --repo . -- true"), -EINVAL);
    CHECK_STR(err.message, "--repo applies only to a new workspace; leave it out, or create "
                           "one with 'carrel run'");
    run_args_finish(&args);
    CHECK_EQ(parse_resume("resume r --workdir . -- true"), -EINVAL);
    run_args_finish(&args);
    CHECK_EQ(parse_resume("resume r"), -EINVAL);
    CHECK_STR(err.message, "no program; expected 'carrel workspace resume NAME [options] -- "
                           "PROGRAM [ARG...]' or -c 'LINE'");
    run_args_finish(&args);
}
