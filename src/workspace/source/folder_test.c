#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "git/combine.h"
#include "workspace/apply/apply.h"
#include "workspace/git_fixture.h"
#include "workspace/source/folder.h"
#include <errno.h>
#include <limits.h>
#include <string.h>
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
static char commit[OID_MAX];

#define SET_UP()                                                                               \
    AUTO(fixture_close) struct fixture at = fixture_open();                                    \
    AUTO(repo_free) struct repo *hidden = NULL;                                                \
    SHELL("mkdir -p folder/sub folder/empty/deep; echo a > folder/a; echo b > folder/sub/b;"   \
          "chmod +x folder/a; ln -s a folder/link")

static int snapshot_of(const char *state, const char *folder, struct repo **hidden)
{
    AUTO(fd_close) int dir = named_open(folder, NAMED_DIRECTORY, &err);

    return dir < 0 ? dir : folder_snapshot(state, dir, hidden, commit, &err);
}

static int snapshot(struct repo **hidden)
{
    char state[128];

    repo_free(ptr_steal(hidden));
    (void)snprintf(state, sizeof(state), "%s", printed("echo $PWD/state"));
    return snapshot_of(state, "folder", hidden);
}

static const char *listed(void)
{
    return printed("git --git-dir=$(echo state/folders/*/.git) ls-tree -r %s | "
                   "awk '{print $1 \" \" $4}' | tr '\\n' ';'",
            commit);
}

TEST(a_snapshot_has_every_file_as_it_is)
{
    SET_UP();
    SHELL("cd folder; echo '*.o' > .gitignore; echo o > x.o;"
          "printf '* text=auto eol=crlf filter=lfs ident working-tree-encoding=UTF-16\\n' >"
          ".gitattributes; printf 'one\\r\\ntwo $Id$\\n' > mixed; git config --global "
          "core.autocrlf true; git config --global filter.lfs.clean 'touch ../RAN; cat'");
    CHECK_EQ(snapshot(&hidden), 0);
    CHECK_STR(listed(), "100644 .gitattributes;100644 .gitignore;100755 a;120000 link;"
                        "100644 mixed;100644 sub/b;100644 x.o;");
    SHELL("git --git-dir=$(echo state/folders/*/.git) cat-file blob %s:mixed | cmp - "
          "folder/mixed;"
          "test ! -e RAN; test $(stat -c %%a state/folders/*/.git) = 700",
            commit);
    CHECK_STR(hidden->top, printed("cd folder; pwd"));
}

TEST(an_unchanged_folder_is_the_same_commit_and_a_changed_one_a_child)
{
    SET_UP();
    char first[OID_MAX];

    CHECK_EQ(snapshot(&hidden), 0);
    memcpy(first, commit, sizeof(first));
    CHECK_EQ(snapshot(&hidden), 0);
    CHECK_STR(commit, first);
    SHELL("rm folder/sub/b; echo c > folder/c");
    CHECK_EQ(snapshot(&hidden), 0);
    CHECK_STR(listed(), "100755 a;100644 c;120000 link;");
    CHECK_STR(
            printed("git --git-dir=$(echo state/folders/*/.git) rev-parse %s^", commit), first);
}

TEST(a_killed_snapshot_does_not_block_the_next)
{
    SET_UP();
    CHECK_EQ(snapshot(&hidden), 0);
    SHELL("cd state/folders/*/.git; touch index.lock; cd ../../../..; echo more >> folder/a");
    CHECK_EQ(snapshot(&hidden), 0);
}

TEST(empty_directories_come_back)
{
    SET_UP();
    CHECK_EQ(snapshot(&hidden), 0);
    CHECK_EQ(mkdir("tree", 0755), 0);
    AUTO(fd_close) int tree = open("tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(folder_make_empty(hidden, commit, tree, &err), 0);
    CHECK_EQ(folder_make_empty(hidden, commit, tree, &err), 0);
    CHECK_STR(printed("cd tree; find . | tr '\\n' ' '"), ". ./empty ./empty/deep ");
    CHECK_EQ(folder_make_empty(hidden, "no commit", tree, &err), -EINVAL);
}

TEST(a_repository_is_refused_with_what_to_do)
{
    SET_UP();
    SHELL("git init -q folder/sub");
    CHECK_EQ(snapshot(&hidden), -EEXIST);
    CHECK(strstr(err.message, "there is a git repository in it, 'sub'"));
    SHELL("rm -rf folder/sub/.git; git init -q folder");
    CHECK_EQ(snapshot(&hidden), -EEXIST);
    CHECK(strstr(err.message, "it is a git repository: use it as one (--repo)"));
    CHECK_EQ(snapshot_of("/nowhere/state", "missing", &hidden), -ENOENT);
}

TEST(a_folder_inside_a_repository_is_fine)
{
    SET_UP();
    SHELL("git init -q .; git add folder; git commit -qm base");
    int r = snapshot(&hidden);
    CHECK_STR(r < 0 ? err.message : "", "");
    SHELL("test -z \"$(git status --porcelain folder)\"");
}

TEST(the_state_directory_is_never_part_of_the_folder)
{
    SET_UP();
    char state[128];

    (void)snprintf(state, sizeof(state), "%s", printed("echo $PWD/folder/state"));
    CHECK_EQ(snapshot_of(state, "folder", &hidden), -EINVAL);
    SHELL("test ! -e folder/state");
}

TEST(a_path_of_any_bytes_works)
{
    SET_UP();
    AUTO(repo_free) struct repo *again = NULL;
    char state[128];

    SHELL("mv folder 'a \"b\" c\\d #;e\nf '");
    (void)snprintf(state, sizeof(state), "%s", printed("echo $PWD/state"));
    CHECK_EQ(snapshot_of(state, "a \"b\" c\\d #;e\nf ", &hidden), 0);
    CHECK(strstr(hidden->top, "/a \"b\" c\\d #;e\nf "));
    CHECK_EQ(repo_open(hidden->git_dir, &again, &err), 0); /* as one finds it later */
    CHECK_STR(again->top, NULL); /* the folder does not lead to it: its user names it */
}

/* The user edits files meanwhile; then a new snapshot, then apply. */
TEST(a_result_is_applied_to_the_folder)
{
    SET_UP();
    char base[OID_MAX];
    char tip[OID_MAX];
    struct apply_outcome outcome = { 0 };

    SHELL("seq 1 20 > folder/lines");
    CHECK_EQ(snapshot(&hidden), 0);
    memcpy(base, commit, sizeof(base));
    SHELL("cp -a folder run; cd run; sed -i 's/^20$/twenty/' lines; rm sub/b; echo n > n");
    (void)snprintf(tip, sizeof(tip), "%s",
            printed("export GIT_DIR=$(echo $PWD/state/folders/*/.git) GIT_INDEX_FILE=$PWD/i; "
                    "cd "
                    "run;"
                    "git --work-tree=. add -A; git commit-tree -p %s -m run $(git write-tree)",
                    base));
    SHELL("sed -i 's/^1$/one/' folder/lines");
    CHECK_EQ(snapshot(&hidden), 0);
    CHECK_EQ(apply_result(hidden, state_here(), NULL, base, tip, APPLY_FILES, &outcome, &err),
            0);
    CHECK_EQ(outcome.n_conflicts, 0);
    CHECK_EQ(outcome.n_files, 3);
    SHELL("cd folder; grep -qx one lines; grep -qx twenty lines; test ! -e sub/b; test -f n;"
          "test -z \"$(find . -name '.carrel*' -o -name .git)\"");
    apply_outcome_finish(&outcome);
}
