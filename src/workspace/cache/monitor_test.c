#include "base/buf.h"
#include "workspace/cache/monitor.h"
#include "workspace/git_fixture.h"
#include <string.h>

#define LOOK ".carrel-looked-here"

/*
 * A work tree with a git dir of its own, whose index has an answer of a monitor in it; and an
 * empty upper directory beside it, which the test fills as an overlay would.
 */
static void make(const char *init_options)
{
    CHECK_EQ(shell("git init -q %s tree && mkdir upper && cd tree && mkdir -p a/b c && "
                   "echo 1 >a/one && echo 2 >a/b/two && echo 3 >c/three && echo 4 >top && "
                   "touch -d @1700000000 top a/one a/b/two c/three && git add . && "
                   "git -c core.fsmonitor=\"printf 'token\\0/\\0'\" status >/dev/null && "
                   "cp -p .git/index .git/index.pristine",
                     init_options),
            0);
}

static bool ask(const char *token, struct buf *answer)
{
    AUTO(fd_close) int tree = open("tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int upper = open("upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int git = open("tree/.git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int layer = open("layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* if any */
    const struct monitor monitor = { tree, upper, layer, git, token };

    bool is_answer = monitor_list(&monitor, answer);
    for (size_t i = 0; is_answer && i < answer->len; i++)
        if (answer->data[i] == '\0')
            answer->data[i] = ' ';
    return is_answer;
}

#define CHECK_ANSWER(expected)                                                                 \
    do {                                                                                       \
        AUTO(buf_finish) struct buf answer = BUF_INIT(65536);                                  \
        CHECK(ask("token", &answer));                                                          \
        CHECK_STR(answer.data, expected);                                                      \
    } while (0)

#define CHECK_NO_ANSWER(token)                                                                 \
    do {                                                                                       \
        AUTO(buf_finish) struct buf answer = BUF_INIT(65536);                                  \
        CHECK(!ask(token, &answer));                                                           \
    } while (0)

TEST(in_an_unchanged_tree_git_reads_its_root_and_no_more)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    CHECK_ANSWER(LOOK " ");
}

TEST(a_directory_that_is_not_in_the_upper_one_is_not_looked_at)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    CHECK_EQ(shell("mkdir upper/c; echo other >tree/a/one; echo other >tree/c/three"), 0);
    CHECK_ANSWER("c/three " LOOK " c/" LOOK " ");
}

TEST(in_changed_directories_files_that_are_as_recorded_are_left_out)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    CHECK_EQ(shell("mkdir -p upper/a/b"), 0);
    CHECK_ANSWER(LOOK " a/" LOOK " a/b/" LOOK " ");
}

TEST(each_difference_that_lstat_shows_is_one)
{
    static const char *const ways[] = {
        "echo 22 >tree/a/b/two; touch -d @1700000000 tree/a/b/two", /* size */
        "touch tree/a/b/two",
        "chmod +x tree/a/b/two", /* also its ctime */
        "cp -p tree/a/b/two x; mv x tree/a/b/two",
        "rm tree/a/b/two",
        "rm tree/a/b/two; mkdir tree/a/b/two",
        "rm tree/a/b/two; ln -s one tree/a/b/two",
    };

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        AUTO(fixture_close) struct fixture at = fixture_open();
        (void)at;
        make("");
        CHECK_EQ(shell("mkdir -p upper/a/b; %s", ways[i]), 0);
        CHECK_ANSWER("a/b/two " LOOK " a/" LOOK " a/b/" LOOK " ");
    }
}

TEST(a_file_of_the_second_of_the_index_is_looked_at)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    CHECK_EQ(shell("mkdir -p upper/a; touch -d @1700000000 tree/.git/index"), 0);
    CHECK_ANSWER("a/one top " LOOK " a/" LOOK " ");
}

TEST(what_was_removed_with_its_directory_is_named)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    /* A whiteout is no directory; a directory that was in the upper one alone leaves nothing.
     */
    CHECK_EQ(shell("echo >upper/a; rm -r tree/a tree/c"), 0);
    CHECK_ANSWER("a/b/two a/one c/three " LOOK " ");
}

TEST(a_directory_below_one_that_hides_it_is_gone)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    CHECK_EQ(shell("mkdir upper/a; rm -r tree/a/b"), 0); /* removed and made again */
    CHECK_ANSWER("a/b/two " LOOK " a/" LOOK " ");
}

TEST(an_entry_that_is_not_the_pristine_one_is_looked_at)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    CHECK_EQ(shell("cd tree && export GIT_OPTIONAL_LOCKS=0 && "
                   "config=\"printf 'token\\0/\\0'\" && "
                   "blob=$(echo else | git hash-object -w --stdin) && "
                   "git -c core.fsmonitor=\"$config\" update-index "
                   "--cacheinfo 100644,$blob,a/b/two && "
                   "git -c core.fsmonitor=\"$config\" update-index --add "
                   "--cacheinfo 100644,$blob,a/new"),
            0);
    CHECK_ANSWER("a/b/two a/new " LOOK " ");
}

TEST(a_submodule_is_always_looked_at)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    CHECK_EQ(shell("cd tree && git -c core.fsmonitor=\"printf 'token\\0/\\0'\" update-index "
                   "--add --cacheinfo 160000,1111111111111111111111111111111111111111,c/sub && "
                   "cp -p .git/index .git/index.pristine; mkdir ../upper/c"),
            0);
    CHECK_ANSWER("c/sub " LOOK " c/" LOOK " ");
}

TEST(ids_of_64_digits_are_understood)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("--object-format=sha256");
    CHECK_EQ(shell("mkdir upper/c; echo other >tree/c/three"), 0);
    CHECK_ANSWER("c/three " LOOK " c/" LOOK " ");
}

TEST(names_between_a_directory_and_what_is_in_it)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    /* "a-b" and "a.b/x" stand before "a/one" in the index. */
    CHECK_EQ(shell("mkdir -p tree/a.b tree/a0; echo 1 >tree/a-b; echo 1 >tree/a.b/x; "
                   "echo 1 >tree/a0/x; touch -d @1700000000 tree/a-b tree/a.b/x tree/a0/x"),
            0);
    make("");
    CHECK_EQ(shell("mkdir upper/a; echo other | tee tree/a/b/two tree/a/one tree/a.b/x "
                   "tree/a0/x >tree/a-b"),
            0);
    CHECK_ANSWER("a-b a/one " LOOK " a/" LOOK " ");
}

TEST(directories_that_a_setup_layer_has_too_are_looked_at)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    /* It may have been made over another commit: what it added may be tracked in this one. */
    CHECK_EQ(shell("mkdir -p layer/a layer/own/below; echo other >tree/a/one; "
                   "rm -r tree/a/b; echo other >tree/a/b; echo other >tree/c/three"),
            0);
    CHECK_ANSWER("a/" LOOK " a/b/two a/one " LOOK " ");
}

TEST(another_index_than_git_has_read_gets_no_answer)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    CHECK_NO_ANSWER("another");
    CHECK_NO_ANSWER("toke");
    CHECK_NO_ANSWER("");
}

TEST(an_index_of_another_form_gets_no_answer)
{
    static const char *const forms[] = {
        "rm tree/.git/index.pristine",
        "rm tree/.git/index",
        "git -C tree -c core.fsmonitor=false status >/dev/null", /* no token in it */
        "git -C tree -c core.fsmonitor=\"printf 'token\\0/\\0'\" update-index --split-index",
        "git -C tree -c core.fsmonitor=\"printf 'token\\0/\\0'\" update-index "
        "--index-version 4",
        "truncate -s -30 tree/.git/index",
        "truncate -s 200 tree/.git/index",
        "truncate -s 200 tree/.git/index.pristine; printf X | "
        "dd of=tree/.git/index.pristine conv=notrunc status=none",
        "printf X | dd of=tree/.git/index bs=1 seek=73 conv=notrunc status=none",
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        AUTO(fixture_close) struct fixture at = fixture_open();
        (void)at;
        make("");
        CHECK_EQ(shell("%s", forms[i]), 0);
        CHECK_NO_ANSWER("token");
    }
}

TEST(a_tree_deeper_than_we_go_gets_no_answer)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    make("");
    CHECK_EQ(shell("cd upper; i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i + 1)); done"),
            0);
    CHECK_NO_ANSWER("token");
}

TEST(an_answer_that_becomes_too_long_is_none)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    (void)at;
    AUTO(buf_finish) struct buf answer = BUF_INIT(24);
    make("");
    CHECK_EQ(shell("mkdir upper/a"), 0);
    CHECK(!ask("token", &answer));
}

/* A literal with inner NULs, as the kernel shows a command line. */
#define HELPS(text) monitor_helps(text, sizeof(text))

TEST(commands_that_never_compare_a_commit_with_the_tree_get_an_answer)
{
    CHECK(HELPS("git\0status"));
    CHECK(HELPS("/usr/bin/git\0-C\0diff\0-c\0a=b\0--no-pager\0status\0--short"));
    CHECK(HELPS("git\0add\0-A"));
    CHECK(HELPS("git\0commit\0-a\0-m\0HEAD"));
    CHECK(HELPS("git\0diff"));
    CHECK(HELPS("git\0diff\0--stat\0--\0HEAD"));
}

TEST(other_commands_get_none)
{
    CHECK(!HELPS("git\0diff\0HEAD"));
    CHECK(!HELPS("git\0diff\0--stat\0main"));
    CHECK(!HELPS("git\0diff-index\0HEAD"));
    CHECK(!HELPS("git\0stash"));
    CHECK(!HELPS("git\0checkout\0status"));
    CHECK(!HELPS("git\0-C\0status"));
    CHECK(!HELPS("git"));
    CHECK(!HELPS(""));
    CHECK(!monitor_helps("git\0status", 10)); /* cut short */
    CHECK(!monitor_helps("git", 0));
}
