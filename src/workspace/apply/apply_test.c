#include "base/err.h"
#include "workspace/apply/apply.h"
#include "workspace/apply/swap.h"
#include "workspace/git_fixture.h"
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

/* A state directory in the current one. */
static const char *state_here(void)
{
    static char path[PATH_MAX];

    CHECK(getcwd(path, sizeof(path) - sizeof("/state")));
    strcat(path, "/state"); /* fits: see above */
    return path;
}

static struct carrel_error err;
static struct apply_outcome outcome;

/*
 * user/ is the user's repository, run/ a clone in which the run works: what it commits on
 * branch `run` is fetched into user/ as task-T-run-R.
 */
static struct repo *set_up(void)
{
    struct repo *repo = NULL;

    SHELL("git init -q user; cd user; mkdir -p dir/sub; seq 1 20 > a; echo b > dir/b;"
          "echo c > dir/sub/c; ln -s a link; echo x > tool; chmod +x tool; git add .;"
          "git commit -q -m base; git tag base; cd ..; git clone -q user run; cd run;"
          "git checkout -q -b run");
    CHECK_EQ(repo_open("user", &repo, &err), 0);
    return repo;
}

static void oid_of(const char *rev, char oid[static OID_MAX])
{
    (void)snprintf(oid, OID_MAX, "%s", printed("git -C user rev-parse %s^{commit}", rev));
}

/* Commits what is in run/, and fetches it into the repository as a branch. */
static void deliver(void)
{
    SHELL("cd run; git add -A; git commit -q -m 'work of the run' || :;"
          "cd ../user; git fetch -q ../run +run:task-T-run-R");
}

static int apply(struct repo *repo, enum apply_how how)
{
    char base[OID_MAX];
    char tip[OID_MAX];

    oid_of("base", base);
    oid_of("task-T-run-R", tip);
    apply_outcome_finish(&outcome);
    return apply_result(repo, state_here(), NULL, base, tip, how, &outcome, &err);
}

static void check_conflict(const char *path, const char *why)
{
    CHECK_EQ(outcome.n_conflicts, 1);
    CHECK_STR(outcome.conflicts[0].path, path);
    CHECK_STR(outcome.conflicts[0].why, why);
    CHECK_EQ(outcome.n_files, 0);
    apply_outcome_finish(&outcome);
}

/* No file of ours is left, and git fsck succeeds. */
static void check_tidy(void)
{
    SHELL("cd user; test ! -e .git/carrel-apply; test ! -e .git/index.lock;"
          "test -z \"$(find . -name '.carrel*')\"; git fsck --strict 2>&1 | grep -v dangling "
          "|| :");
}

static const char *status_of(void)
{
    return printed("cd user; git status --porcelain | tr '\\n' ';'");
}

#define SET_UP()                                                                               \
    AUTO(fixture_close) struct fixture at = fixture_open();                                    \
    AUTO(repo_free) struct repo *repo = set_up()

TEST(files_get_the_result_and_nothing_is_committed)
{
    SET_UP();
    SHELL("cd run; echo more >> a; rm dir/b; mkdir new; echo n > new/file; chmod -x tool;"
          "ln -sf tool link; echo run > dir/exe; chmod +x dir/exe");
    deliver();
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_EQ(outcome.n_files, 6);
    CHECK_STR(outcome.commit, "");
    CHECK_STR(status_of(), " M a; D dir/b; M link; M tool;?? dir/exe;?? new/;");
    SHELL("cd user; git add -A; test $(git write-tree) = $(git rev-parse task-T-run-R^{tree})");
    check_tidy();
    CHECK_EQ(apply(repo, APPLY_FILES), 0); /* again: everything is applied already */
    CHECK_EQ(outcome.n_files, 0);
    CHECK_EQ(outcome.n_conflicts, 0);
}

/* Permission bits of paths in user/. */
static const char *modes_of(const char *paths)
{
    return printed("cd user; stat -c %%a %s | paste -sd' '", paths);
}

TEST(a_file_that_is_there_keeps_who_may_read_it)
{
    for (enum apply_how how = APPLY_FILES; how <= APPLY_CHERRY_PICK; how++) {
        SET_UP();
        SHELL("cd user; chmod 600 a; chmod 640 dir/b; chmod 700 tool; chmod 444 dir/sub/c;"
              "cd ../run; echo r >> a; echo r >> dir/b; echo r >> tool; echo r >> dir/sub/c");
        deliver();
        CHECK_EQ(apply(repo, how), 0);
        CHECK_EQ(outcome.n_files, 4);
        CHECK_STR(modes_of("a dir/b tool dir/sub/c"), "600 640 700 444");
    }
}

TEST(of_a_mode_the_executable_bit_is_the_results_where_it_changed_that)
{
    SET_UP();
    SHELL("cd user; chmod 600 a; chmod 640 dir/b; chmod 711 tool;"
          "cd ../run; chmod +x a dir/b; chmod -x tool");
    deliver();
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_files, 3);
    CHECK_STR(modes_of("a dir/b tool"), "700 750 600");
}

TEST(an_executable_bit_that_git_does_not_look_at_stays)
{
    SET_UP();
    SHELL("cd user; git config core.fileMode false; chmod 755 a; cd ../run; echo r >> a");
    deliver();
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_STR(modes_of("a"), "755");
}

TEST(a_new_file_has_what_the_umask_leaves)
{
    SET_UP();
    SHELL("cd run; echo n > n; mkdir d; echo x > d/x; chmod +x d/x; rm link; echo f > link");
    deliver();
    mode_t old = umask(027);
    int r = apply(repo, APPLY_FILES);
    (void)umask(old);
    CHECK_EQ(r, 0);
    CHECK_STR(modes_of("n d d/x link"), "640 750 750 640");
}

/* Only root can change owners, and only root can meet a group that it is not in. */
TEST(owner_and_group_stay_and_another_group_gets_no_more_than_anybody)
{
    struct stat st;

    if (geteuid() != 0)
        SKIP("needs root");
    SET_UP();
    SHELL("cd run; echo r >> a; echo r >> tool");
    deliver();
    SHELL("chown -R 1234:1234 .; cd user; chown 1234:2345 a tool; chmod 640 a; chmod 775 tool");
    pid_t child = fork();
    if (child == 0) {
        bool is_user = setgroups(0, NULL) == 0 && setgid(1234) == 0 && setuid(1234) == 0;
        _exit(is_user && apply(repo, APPLY_FILES) == 0 && outcome.n_files == 2 ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_STR(modes_of("a tool"), "600 755");

    SHELL("cd user; git config --global safe.directory '*'; git checkout -q a; chmod 640 a;"
          "chown 1234:2345 a");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(stat("user/a", &st), 0);
    CHECK_EQ(st.st_uid, 1234);
    CHECK_EQ(st.st_gid, 2345);
    CHECK_EQ(st.st_mode & 07777, 0640);
}

TEST(a_file_becomes_a_directory_and_a_directory_a_file)
{
    SET_UP();
    SHELL("cd run; rm a; mkdir -p a/deep; echo 1 > a/deep/er; rm -r dir; echo 2 > dir;"
          "rm link; mkdir link; echo 3 > link/x");
    deliver();
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    SHELL("cd user; git add -A; test $(git write-tree) = $(git rev-parse task-T-run-R^{tree})");
    check_tidy();
}

TEST(changes_that_the_user_committed_meanwhile_are_merged)
{
    SET_UP();
    SHELL("cd run; sed -i 's/^20$/twenty/' a; echo r > r");
    deliver();
    SHELL("cd user; sed -i 's/^1$/one/' a; git commit -qam 'the user goes on'");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    SHELL("cd user; grep -qx one a; grep -qx twenty a; test -f r");
    check_tidy();
}

TEST(changes_of_both_to_one_line_are_a_conflict_and_nothing_happens)
{
    SET_UP();
    SHELL("cd run; sed -i 's/^1$/eins/' a; echo r > r");
    deliver();
    SHELL("cd user; sed -i 's/^1$/one/' a; git commit -qam 'the user goes on'");
    static const enum apply_how all[] = { APPLY_FILES, APPLY_MERGE, APPLY_SQUASH,
        APPLY_CHERRY_PICK };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        CHECK_EQ(apply(repo, all[i]), 0);
        check_conflict("a", "does not apply");
        CHECK_STR(status_of(), "");
        check_tidy();
    }
}

TEST(a_dirty_file_is_never_overwritten)
{
    SET_UP();
    SHELL("cd run; echo r >> a; echo r > r");
    deliver();
    SHELL("cd user; echo mine >> a");
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    check_conflict("a", "changed in your tree");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    check_conflict("a", "changed in your tree");
    SHELL("cd user; git add a");
    CHECK_EQ(apply(repo, APPLY_SQUASH), 0);
    check_conflict("a", "changed in your index");
    SHELL("cd user; git reset -q; git update-index --assume-unchanged a");
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    check_conflict("a", "changed in your tree");
    SHELL("cd user; tail -1 a | grep -qx mine; test ! -e r");
    check_tidy();
}

TEST(a_dirty_file_that_merges_by_lines_is_still_dirty)
{
    SET_UP();
    SHELL("cd run; sed -i 's/^20$/twenty/' a");
    deliver();
    SHELL("cd user; sed -i 's/^1$/one/' a");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    check_conflict("a", "changed in your tree");
}

TEST(a_dirty_file_elsewhere_does_no_harm_and_stays)
{
    SET_UP();
    SHELL("cd run; echo r >> a; echo r > r");
    deliver();
    SHELL("cd user; echo mine >> dir/b; echo staged > tool; git add tool; echo u > untracked");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_STR(status_of(), " M a; M dir/b;M  tool;?? r;?? untracked;");
    SHELL("cd user; git checkout -q a; rm r");
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_STR(status_of(), " M dir/b;M  tool;?? untracked;");
    check_tidy();
}

TEST(uncommitted_work_that_the_run_started_from_is_taken_further)
{
    SET_UP();
    SHELL("cd user; echo mine >> a; git commit -qam dirty; git tag -f base; git reset -q HEAD~;"
          "cd ../run; git fetch -q -f --tags ../user; git reset -q --hard base; echo r >> a");
    deliver();
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_EQ(outcome.n_files, 1);
    SHELL("cd user; tail -2 a | tr '\\n' ' ' | grep -qx 'mine r '");
}

TEST(an_untracked_or_ignored_file_in_the_way_stays)
{
    SET_UP();
    SHELL("cd run; echo r > r; echo s > s");
    deliver();
    SHELL("cd user; echo mine > r; echo s > s; echo r > .git/info/exclude");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    check_conflict("r", "untracked file in the way");
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    check_conflict("r", "untracked file in the way");
    SHELL("cd user; grep -qx mine r; rm r"); /* s is as in the result: no conflict */
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_STR(status_of(), "");
}

TEST(an_untracked_directory_in_the_way_stays)
{
    SET_UP();
    SHELL("cd run; echo r > r; echo q > q");
    deliver();
    SHELL("cd user; mkdir -p r/mine q; echo precious > r/mine/file");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    check_conflict("r", "blocked by something in your tree");
    SHELL("cd user; test -f r/mine/file; test ! -f q");
    check_tidy();
    SHELL("cd user; rm -r r"); /* q is an empty directory, which git ignores */
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_files, 2);
}

/* git ignores pipes and sockets, so it would not report one as missing. */
TEST(a_pipe_in_the_way_stays)
{
    SET_UP();
    SHELL("cd run; echo r > r");
    deliver();
    SHELL("cd user; mkfifo r");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    check_conflict("r", "not a file in your tree");
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    check_conflict("r", "not a file in your tree");
    SHELL("test -p user/r");
    check_tidy();
}

TEST(another_file_system_in_the_users_tree_is_not_written_to)
{
    SET_UP();
    SHELL("cd run; echo r >> dir/b");
    deliver();
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", "user/dir", "tmpfs", 0, NULL) < 0)
        SKIP("no file system may be mounted here");
    SHELL("cd user/dir; echo b > b; mkdir sub; echo c > sub/c");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_conflicts, 1); /* git says that it does not apply */
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    check_conflict("dir/b", "another file system is mounted there");
    CHECK_STR(printed("cat user/dir/b"), "b");
    CHECK_EQ(umount2("user/dir", MNT_DETACH), 0);
    check_tidy();
}

TEST(a_linked_directory_in_the_users_tree_leads_nowhere)
{
    SET_UP();
    SHELL("cd run; echo r > dir/sub/new; echo r >> dir/sub/c; mkdir out; echo r > out/file");
    deliver();
    SHELL("mkdir outside; echo precious > outside/c; cp -r user/dir/sub real; cd user;"
          "rm -r dir/sub; ln -s ../../real dir/sub; ln -s ../outside out");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK(outcome.n_conflicts > 0);
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    CHECK(outcome.n_conflicts > 0);
    CHECK_STR(printed("ls outside real | tr '\\n' ' '"), "outside: c  real: c ");
    SHELL("grep -qx c real/c; test -L user/dir/sub");
    check_tidy();
}

TEST(a_link_where_the_result_has_a_directory_stays)
{
    SET_UP();
    SHELL("cd run; mkdir new; echo r > new/file");
    deliver();
    SHELL("mkdir outside; cd user; ln -s ../outside new; echo new > .git/info/exclude");
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    check_conflict("new/file", "a file or link is where a directory should be");
    SHELL("test -L user/new; test -z \"$(ls outside)\"");
    check_tidy();
}

/*
 * Unmerged paths in the index are left for the user: git stash pop leaves them, without any
 * other sign of a merge.
 */
TEST(an_unmerged_index_is_left_alone)
{
    SET_UP();
    SHELL("cd run; echo r > new");
    deliver();
    SHELL("cd user; b=$(git rev-parse :dir/b); a=$(git rev-parse :a);"
          "printf '0 %%s\tdir/b\n100644 %%s 1\tdir/b\n100644 %%s 2\tdir/b\n100644 %%s "
          "3\tdir/b\n' $b $b $a $b | git update-index --index-info; git ls-files -s > "
          "../before");
    static const enum apply_how all[] = { APPLY_MERGE, APPLY_SQUASH, APPLY_CHERRY_PICK };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        CHECK(apply(repo, all[i]) < 0);
        CHECK(strstr(err.message, "is a merge unfinished?"));
        SHELL("cd user; git ls-files -s | cmp - ../before; test ! -e new;"
              "test $(git rev-parse HEAD) = $(git rev-parse base)");
        check_tidy();
    }
}

TEST(a_merge_moves_head_and_runs_no_hook)
{
    SET_UP();
    SHELL("cd run; echo r >> a; rm dir/sub/c");
    deliver();
    SHELL("cd user; for h in post-merge pre-commit commit-msg reference-transaction "
          "post-checkout post-index-change pre-merge-commit; do "
          "printf '#!/bin/sh\\ntouch %s/HOOK\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done",
            at.path);
    CHECK_EQ(apply(repo, APPLY_MERGE), 0); /* fast-forward */
    CHECK_STR(outcome.commit, printed("git -C user rev-parse task-T-run-R"));
    CHECK_EQ(access("HOOK", F_OK), -1);
    SHELL("rm -f user/.git/hooks/*");
    CHECK_STR(status_of(), "");
    CHECK_STR(printed("git -C user symbolic-ref HEAD"), "refs/heads/main");
    CHECK_STR(printed("git -C user rev-parse HEAD main | uniq | wc -l"), "1");
    SHELL("cd user; test ! -e dir/sub; git reflog -1 | grep -q 'carrel merge'");
    check_tidy();
    CHECK_EQ(apply(repo, APPLY_MERGE), 0); /* already there */
    CHECK_EQ(outcome.n_files, 0);
    CHECK_STR(outcome.commit, printed("git -C user rev-parse HEAD"));
}

TEST(a_merge_of_two_histories_has_two_parents)
{
    SET_UP();
    SHELL("cd run; echo r > r");
    deliver();
    SHELL("cd user; echo u > u; git add u; git commit -qm u; git rev-parse HEAD > ../before");
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_STR(printed("cd user; git log -1 --format='%%s|%%an|%%P'"),
            printed("cd user; echo \"Merge branch 'task-T-run-R'|Tester|$(cat ../before) "
                    "$(git rev-parse task-T-run-R)\""));
    CHECK_STR(status_of(), "");
    check_tidy();
}

TEST(a_squash_is_staged)
{
    SET_UP();
    SHELL("cd run; echo r > r; git add r; git commit -qm one; rm -r dir; echo d > dir");
    deliver();
    SHELL("cd user; echo u > u; git add u; git commit -qm u; git rev-parse HEAD > ../before");
    CHECK_EQ(apply(repo, APPLY_SQUASH), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_STR(outcome.commit, "");
    CHECK_STR(status_of(), "A  dir;D  dir/b;D  dir/sub/c;A  r;");
    SHELL("cd user; test $(git rev-parse HEAD) = $(cat ../before)");
    check_tidy();
}

TEST(picked_commits_keep_their_authors)
{
    SET_UP();
    SHELL("cd run; echo 1 > one; git add one; git -c user.name=Agent commit -qm "
          "'first\n\nbody';"
          "echo 2 > two; git add two; git -c user.name=Agent commit -qm second;"
          "echo u > u; git add u; git commit -qm 'the user has that'");
    deliver();
    SHELL("cd user; echo u > u; git add u; git commit -qm u");
    CHECK_EQ(apply(repo, APPLY_CHERRY_PICK), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_EQ(outcome.n_files, 2);
    CHECK_STR(printed("cd user; git log -3 --format='%%s/%%an/%%cn' | tr '\\n' ' '"),
            "second/Agent/Tester first/Agent/Tester u/Tester/Tester ");
    CHECK_STR(printed("cd user; git log -1 --format=%%b HEAD~"), "body\n");
    CHECK_STR(status_of(), "");
    check_tidy();
}

TEST(a_merge_among_the_commits_cannot_be_picked)
{
    SET_UP();
    SHELL("cd run; git checkout -qb side; echo s > s; git add s; git commit -qm s;"
          "git checkout -q run; echo t > t; git add t; git commit -qm t; git merge -q -m m "
          "side");
    deliver();
    CHECK_EQ(apply(repo, APPLY_CHERRY_PICK), -ENOTSUP);
    CHECK(strstr(err.message, "is a merge, which cannot be picked"));
    check_tidy();
}

TEST(an_unfinished_merge_of_the_user_is_left_alone)
{
    SET_UP();
    SHELL("cd run; echo r > r");
    deliver();
    SHELL("cd user; git rev-parse HEAD > .git/MERGE_HEAD");
    CHECK_EQ(apply(repo, APPLY_FILES), -EBUSY);
    CHECK(strstr(err.message, "a merge is in progress"));
    check_tidy();
}

TEST(git_at_work_in_the_tree_is_waited_for_and_then_said)
{
    SET_UP();
    SHELL("cd run; echo r > r");
    deliver();
    SHELL("touch user/.git/index.lock");
    CHECK_EQ(apply(repo, APPLY_FILES), -EBUSY);
    CHECK(strstr(err.message, "git is at work in this tree"));
    SHELL("test -e user/.git/index.lock; rm user/.git/index.lock");
    check_tidy();
}

/* The user's files equal a checkout of the same result. */
static void check_form(void)
{
    SHELL("rm -rf form; cp -r user form; cd form; rm -f .git/index; rm -rf *;"
          "git reset -q --hard task-T-run-R; cd ..; for f in $(git -C run ls-files); do"
          " cmp form/$f user/$f; done");
}

/* Attributes of the result, of its directories, and the user's own. */
TEST(files_have_the_form_that_a_checkout_gives_them)
{
    SET_UP();
    SHELL("cd run; printf '*.txt text eol=crlf\n*.id ident\n*.u16 text "
          "working-tree-encoding=UTF-16LE-BOM\n' > .gitattributes; printf 'a\nb\n' > t.txt;"
          "printf '$Id$\n' > v.id; mkdir deep; echo '*.txt -text' > deep/.gitattributes;"
          "printf 'a\n' > deep/t.txt; git add -A; git commit -q -m attributes;"
          "cd ../user; git pull -q ../run run; git tag -f base > ../tagged; cd ../run;"
          "printf 'a\nb\nc\n' > t.txt; printf '$Id$\nmore\n' > v.id;"
          "printf 'w\303\266rd\n' | iconv -f UTF-8 -t UTF-16LE > w.u16; printf '\377\376' | "
          "cat - "
          "w.u16 > x; mv x w.u16; printf 'b\n' > deep/t.txt; echo x >> a; echo n > own.dat;"
          "printf 'one\n' > late.late; printf '*.late eol=crlf\n' >> .gitattributes");
    deliver();
    SHELL("cd user; echo '*.dat eol=crlf' > .git/info/attributes");
    static const enum apply_how all[] = { APPLY_FILES, APPLY_SQUASH, APPLY_CHERRY_PICK,
        APPLY_MERGE };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        CHECK_EQ(apply(repo, all[i]), 0);
        CHECK_EQ(outcome.n_conflicts, 0);
        CHECK_EQ(outcome.n_files, 8);
        check_form();
        SHELL("cd user; printf 'a\r\nb\r\nc\r\n' | cmp - t.txt; printf 'n\r\n' | cmp - "
              "own.dat; printf 'one\r\n' | cmp - late.late; grep -q 'Id: [0-9a-f]' v.id;"
              "git add -A; test $(git write-tree) = $(git rev-parse task-T-run-R^{tree});"
              "git reset -q --hard base; git clean -qfd");
    }
}

TEST(line_ends_are_those_of_the_users_configuration)
{
    SET_UP();
    SHELL("cd run; echo r >> a; printf 'x\r\ny\n' > mixed; cd ../user;"
          "git config core.autocrlf true; rm -rf *; git reset -q --hard");
    deliver();
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_STR(status_of(), "");
    check_form();
    SHELL("cd user; tail -n 1 a | od -c | grep -q 'r  *.r  *.n'");
}

/* Sentinels: the same attributes do run the programs if the user's git is used. */
TEST(no_filter_and_no_driver_sees_what_the_run_made)
{
    SET_UP();
    SHELL("cd user; git config filter.evil.clean 'touch %s/RAN; cat';"
          "git config filter.evil.smudge 'touch %s/RAN; cat'; git config filter.evil.required "
          "1;"
          "git config merge.evil.driver 'touch %s/RAN; true %%O %%A %%B'",
            at.path, at.path, at.path);
    SHELL("cd run; echo 'a filter=evil merge=evil' > .gitattributes; sed -i 's/^20$/twenty/' a;"
          "echo n > n");
    deliver();
    SHELL("cd user; sed -i 's/^1$/one/' a; git commit -qam 'the user goes on'; touch a");
    static const enum apply_how all[] = { APPLY_FILES, APPLY_SQUASH, APPLY_CHERRY_PICK,
        APPLY_MERGE };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        CHECK_EQ(apply(repo, all[i]), 0);
        CHECK_EQ(access("RAN", F_OK), -1);
        check_conflict("a",
                "a git filter of yours converts it, and carrel runs none: commit the run, then "
                "git merge its branch");
        CHECK_STR(status_of(), "");
        check_tidy();
    }
    SHELL("cd user; git merge -q task-T-run-R; test -e ../RAN"); /* the attack is real */
}

/*
 * A filter without a driver, or with one for the other direction only, does not affect a
 * checkout.
 */
TEST(a_filter_that_does_nothing_on_checkout_is_in_nobodys_way)
{
    SET_UP();
    SHELL("cd user; git config filter.in.clean 'touch %s/RAN; cat';"
          "git config filter.off.smudge ''; git config filter.off.required false;"
          "git config filter.inn.smudge 'touch %s/RAN; cat'",
            at.path, at.path);
    SHELL("cd run; printf 'a filter=none\nn filter=in\no filter=off\n' > .gitattributes;"
          "echo x >> a; echo n > n; echo o > o");
    deliver();
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_EQ(outcome.n_files, 4);
    CHECK_EQ(access("RAN", F_OK), -1);
}

TEST(a_path_that_looks_like_a_git_dir_is_refused)
{
    SET_UP();
    SHELL("cd run; b=$(echo evil | git hash-object -w --stdin);"
          "s=$(printf '100644 blob %%s\\tconfig\\n' $b | git mktree);"
          "r=$( (git ls-tree HEAD; printf '040000 tree %%s\\t.GIT\\n' $s) | git mktree);"
          "c=$(git commit-tree -m evil -p HEAD $r); git update-ref refs/heads/run $c;"
          "cd ../user; git -c fetch.fsckObjects=false fetch -q ../run +run:task-T-run-R");
    static const enum apply_how all[] = { APPLY_FILES, APPLY_MERGE, APPLY_SQUASH,
        APPLY_CHERRY_PICK };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        CHECK(apply(repo, all[i]) < 0);
        CHECK_STR(status_of(), "");
    }
    SHELL("cd user; test ! -e .GIT");
}

TEST(a_linked_worktree_of_the_user_is_applied_to)
{
    SET_UP();
    SHELL("cd run; echo r >> a");
    deliver();
    SHELL("cd user; git worktree add -q ../linked -b linked");
    AUTO(repo_free) struct repo *linked = NULL;
    CHECK_EQ(repo_open("linked", &linked, &err), 0);
    CHECK_EQ(apply(linked, APPLY_MERGE), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_STR(printed("git -C user rev-parse linked"), outcome.commit);
    CHECK_STR(printed("cd linked; git status --porcelain; git log -1 --format=%%s"),
            "work of the run");
    CHECK_STR(printed("git -C user log -1 --format=%%s main"), "base");
}

TEST(objects_may_still_be_in_quarantine)
{
    SET_UP();
    char tip[OID_MAX];
    char base[OID_MAX];
    char objects[128];

    SHELL("cd run; echo r >> a; git commit -qam r");
    (void)snprintf(tip, sizeof(tip), "%s", printed("git -C run rev-parse HEAD"));
    (void)snprintf(objects, sizeof(objects), "%s/run/.git/objects", at.path);
    oid_of("base", base);
    CHECK_EQ(apply_result(repo, state_here(), objects, base, tip, APPLY_FILES, &outcome, &err),
            0);
    CHECK_EQ(outcome.n_files, 1);
    CHECK_EQ(shell("git -C user cat-file -e %s 2>/dev/null", tip), 1);
    CHECK_STR(status_of(), " M a;");
}

TEST(names_of_any_bytes_work)
{
    SET_UP();
    SHELL("cd run; printf x > \"$(printf 'new\\nline')\"; printf x > ' lead'; printf x > "
          "'\"q\"';"
          "printf x > \"$(printf 'tab\\there')\"; printf x > -- '-rf'; printf x > '*'");
    deliver();
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    SHELL("cd user; git add -A; test $(git write-tree) = $(git rev-parse task-T-run-R^{tree})");
}

TEST(what_a_sparse_checkout_leaves_out_stays_out)
{
    SET_UP();
    SHELL("cd run; echo r >> dir/sub/c; echo r >> a");
    deliver();
    SHELL("cd user; git sparse-checkout set --no-cone '/*' '!/dir/sub/'; test ! -e dir/sub");
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    check_conflict("dir/sub/c", "not in your sparse checkout");
    CHECK_EQ(apply(repo, APPLY_MERGE), 0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_EQ(outcome.n_files, 1);
    CHECK_STR(status_of(), "");
    SHELL("cd user; test ! -e dir/sub; git sparse-checkout disable; grep -qx r dir/sub/c");
}

TEST(a_branch_without_a_commit_takes_files_only)
{
    SET_UP();
    SHELL("cd run; echo r > r");
    deliver();
    SHELL("cd user; git checkout -q --orphan empty; git rm -qrf .");
    CHECK_EQ(apply(repo, APPLY_MERGE), -EINVAL);
    CHECK(strstr(err.message, "there is no commit yet"));
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_EQ(outcome.n_files, 1);
    CHECK_STR(status_of(), "?? r;");
}

TEST(a_detached_head_is_moved)
{
    SET_UP();
    SHELL("cd run; echo r > r");
    deliver();
    SHELL("cd user; git checkout -q --detach");
    CHECK_EQ(apply(repo, APPLY_CHERRY_PICK), 0);
    CHECK_STR(printed("git -C user rev-parse HEAD"), outcome.commit);
    CHECK_STR(printed("git -C user log -1 --format=%%s main"), "base");
    CHECK_STR(status_of(), "");
}

TEST(a_bare_repository_has_nothing_to_apply_to)
{
    SET_UP();
    deliver();
    SHELL("git clone -q --bare user bare");
    AUTO(repo_free) struct repo *bare = NULL;
    CHECK_EQ(repo_open("bare", &bare, &err), 0);
    CHECK_EQ(apply(bare, APPLY_FILES), -EINVAL);
    CHECK_EQ(apply_recover(bare, &err), 0);
}
