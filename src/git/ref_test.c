#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "git/ref.h"
#include "workspace/git_fixture.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static struct carrel_error err;
static char first[OID_MAX], second[OID_MAX];

static void remember(const char *rev, char oid[static OID_MAX])
{
    (void)snprintf(oid, OID_MAX, "%s", printed("git -C repo rev-parse %s", rev));
}

static struct fixture open_repository(const char *init)
{
    struct fixture at = fixture_open();

    SHELL("git init -q %s repo; cd repo; echo one > file; git add .; git commit -q -m first;"
          "git tag -a -m tag annotated; echo two > file; git commit -q -a -m second",
            init);
    remember("HEAD^", first);
    remember("HEAD", second);
    return at;
}

static struct repo *open_at(const char *dir)
{
    struct repo *repo = NULL;

    CHECK_EQ(repo_open(dir, &repo, &err), 0);
    return repo;
}

static void check_reads(const struct repo *repo, const char *name, const char *expected)
{
    char oid[OID_MAX] = "";

    CHECK_EQ(ref_read(repo, name, oid, &err), 0);
    CHECK_STR(oid, expected);
}

TEST(a_name_that_git_would_refuse_is_refused)
{
    static const char *const good[] = { "HEAD", "refs/heads/x", "refs/heads/a/b-c_d.e",
        "refs/heads/\xc3\xa4", "refs/x", "refs/heads/@", "refs/heads/a@b" };
    static const char *const bad[] = { "", "x", "FETCH_HEAD", "refs", "refs/", "refs//x",
        "refs/heads/", "refs/heads//x", "refs/heads/.x", "refs/heads/x.lock", "refs/x.lock/y",
        "refs/heads/x.", "refs/heads/../../config", "refs/heads/a..b", "refs/heads/a b",
        "refs/heads/a\nb", "refs/heads/a\x7f", "refs/heads/a~b", "refs/heads/a^b",
        "refs/heads/a:b", "refs/heads/a?b", "refs/heads/a*b", "refs/heads/a[b",
        "refs/heads/a\\b", "refs/heads/a@{b", "/refs/heads/x" };
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    char oid[OID_MAX];

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK(ref_is_name(good[i]));
        if (strcmp(good[i], "HEAD") != 0)
            CHECK_EQ(shell("git check-ref-format '%s'", good[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK(!ref_is_name(bad[i]));
        CHECK_EQ(ref_read(repo, bad[i], oid, &err), -EINVAL);
        CHECK_EQ(ref_create(repo, bad[i], first, "made", &err), -EINVAL);
        CHECK_EQ(ref_delete(repo, bad[i], first, &err), -EINVAL);
    }
}

TEST(references_are_read_wherever_git_keeps_them)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    char oid[OID_MAX] = "untouched", tag[OID_MAX];

    remember("annotated", tag);
    SHELL("cd repo; git branch a/b HEAD^; git branch zz; git symbolic-ref refs/heads/sym "
          "refs/heads/a/b");
    for (int i = 0; i < 3; i++) {
        check_reads(repo, "HEAD", second);
        check_reads(repo, "refs/heads/main", second);
        check_reads(repo, "refs/heads/a/b", first);
        check_reads(repo, "refs/heads/zz", second);
        check_reads(repo, "refs/heads/sym", first);
        check_reads(repo, "refs/tags/annotated", tag);
        CHECK_EQ(ref_read(repo, "refs/heads/none", oid, &err), -ENOENT);
        CHECK_STR(err.message, "there is no reference 'refs/heads/none'");
        CHECK_EQ(ref_read(repo, "refs/heads/a", oid, &err), -ENOENT);
        CHECK_EQ(ref_read(repo, "refs/heads/zz/below", oid, &err), -ENOENT);
        CHECK_STR(oid, "untouched");
        if (i == 0)
            SHELL("git -C repo pack-refs --all");
        else /* as versions of git wrote it that did not promise an order */
            SHELL("cd repo/.git; { echo '# pack-refs with: peeled fully-peeled';"
                  "grep -v '^[#^]' packed-refs | sort; } > x; mv x packed-refs");
    }
}

TEST(a_reference_that_points_to_itself_is_an_error)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    char oid[OID_MAX];

    SHELL("cd repo/.git/refs/heads; echo 'ref: refs/heads/b' > a; echo 'ref: refs/heads/a' > b;"
          "echo nonsense > c; : > d; echo 'ref: ../../config' > e");
    CHECK_EQ(ref_read(repo, "refs/heads/a", oid, &err), -ELOOP);
    CHECK_EQ(ref_read(repo, "refs/heads/c", oid, &err), -EBADMSG);
    CHECK_EQ(ref_read(repo, "refs/heads/d", oid, &err), -EBADMSG);
    CHECK_EQ(ref_read(repo, "refs/heads/e", oid, &err), -EBADMSG);
}

TEST(any_of_many_packed_references_is_found)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");

    SHELL("cd repo; for i in $(seq 1 700); do echo \"create refs/tags/t$i %s\";"
          "echo \"create refs/tags/a$i $(git rev-parse annotated)\"; done "
          "| git update-ref --stdin; git pack-refs --all",
            first);
    for (int i = 1; i <= 700; i++) {
        char name[64], oid[OID_MAX];
        (void)snprintf(name, sizeof(name), "refs/tags/t%d", i);
        check_reads(repo, name, first);
        (void)snprintf(name, sizeof(name), "refs/tags/a%d", i);
        CHECK_EQ(ref_read(repo, name, oid, &err), 0);
        (void)snprintf(name, sizeof(name), "refs/tags/t%dx", i);
        CHECK_EQ(ref_read(repo, name, oid, &err), -ENOENT);
    }
}

TEST(a_new_reference_is_one_for_git_too)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");

    CHECK_EQ(ref_create(repo, "refs/heads/task-1-run-1", first, "made", &err), 0);
    CHECK_EQ(ref_create(repo, "refs/heads/deep/er/x", second, "made", &err), 0);
    CHECK_STR(printed("git -C repo rev-parse refs/heads/task-1-run-1"), first);
    CHECK_STR(printed("git -C repo rev-parse refs/heads/deep/er/x"), second);
    SHELL("cd repo; git fsck --strict 2>/dev/null; test -z \"$(find .git -name '*.lock')\"");
    SHELL("cd repo; git switch -q task-1-run-1; git commit -q --allow-empty -m more");
}

TEST(a_reference_that_exists_is_not_made_again)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");

    CHECK_EQ(ref_create(repo, "refs/heads/x", first, "made", &err), 0);
    CHECK_EQ(ref_create(repo, "refs/heads/x", second, "made", &err), -EEXIST);
    CHECK_STR(err.message, "the reference 'refs/heads/x' exists already");
    SHELL("git -C repo pack-refs --all; test ! -e repo/.git/refs/heads/x");
    CHECK_EQ(ref_create(repo, "refs/heads/x", second, "made", &err), -EEXIST);
    check_reads(repo, "refs/heads/x", first);
    SHELL("test -z \"$(find repo/.git -name '*.lock')\"");
}

TEST(a_name_cannot_be_a_reference_and_a_directory_of_references)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");

    SHELL("cd repo; git branch a/b; git branch c; git branch d/e/f");
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        CHECK_EQ(ref_create(repo, "refs/heads/a", first, "made", &err), -EIO);
        CHECK_EQ(ref_create(repo, "refs/heads/d", first, "made", &err), -EIO);
        CHECK_EQ(ref_create(repo, "refs/heads/d/e", first, "made", &err), -EIO);
        CHECK_EQ(ref_create(repo, "refs/heads/c/x", first, "made", &err), -EIO);
        CHECK_EQ(ref_create(repo, "refs/heads/c/x/y", first, "made", &err), -EIO);
        SHELL("git -C repo pack-refs --all");
    }
    /* Names that only begin alike are in nobody's way, nor are empty directories. */
    CHECK_EQ(ref_create(repo, "refs/heads/a-b", first, "made", &err), 0);
    CHECK_EQ(ref_create(repo, "refs/heads/cx", first, "made", &err), 0);
    CHECK_EQ(ref_create(repo, "refs/heads/d/e/g", first, "made", &err), 0);
    SHELL("mkdir -p repo/.git/refs/heads/empty/er/est repo/.git/refs/heads/empty/x");
    CHECK_EQ(ref_create(repo, "refs/heads/empty", first, "made", &err), 0);
    SHELL("cd repo; git fsck --strict 2>/dev/null; test -z \"$(find .git -name '*.lock')\"");
}

#define WRITERS 8
#define EACH 10

TEST(no_reference_is_lost_or_made_twice_while_git_packs_them)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    pid_t writers[WRITERS];
    int status;

    pid_t packer = fork();
    CHECK(packer >= 0);
    if (packer == 0) {
        (void)execl("/bin/sh", "sh", "-c",
                "cd repo; until test -e ../stop; do git pack-refs --all 2>> ../pack-errors; "
                "done",
                (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        CHECK(writers[i] >= 0);
        if (writers[i] != 0)
            continue;
        for (int k = 0; k < EACH; k++) {
            char name[64], oid[OID_MAX];
            (void)snprintf(name, sizeof(name), "refs/heads/dir%d/task-%d-run-%d", k % 3, i, k);
            CHECK_EQ(ref_create(repo, name, first, "made", &err), 0);
            CHECK_EQ(ref_read(repo, name, oid, &err), 0);
            CHECK_STR(oid, first);
            CHECK_EQ(ref_create(repo, name, second, "made", &err), -EEXIST);
            /* One name that all want: exactly one of them gets it. */
            (void)snprintf(name, sizeof(name), "refs/heads/wanted/%d", k);
            int r = ref_create(repo, name, first, "made", &err);
            CHECK(r == 0 || r == -EEXIST);
            if (r == 0) {
                (void)snprintf(name, sizeof(name), "won-%d-%d", k, i);
                AUTO(fd_close) int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                CHECK(fd >= 0);
            }
        }
        _exit(0);
    }
    for (int i = 0; i < WRITERS; i++) {
        CHECK_EQ(waitpid(writers[i], &status, 0), writers[i]);
        CHECK_EQ(status, 0);
    }
    SHELL(": > stop");
    CHECK_EQ(waitpid(packer, &status, 0), packer);
    SHELL("test \"$(ls | grep -c '^won-')\" = %d", EACH);
    SHELL("cd repo; test \"$(git for-each-ref refs/heads | wc -l)\" = %d",
            WRITERS * EACH + EACH + 1);
    SHELL("cd repo; test \"$(git for-each-ref --format='%%(objectname)' refs/heads/dir0 "
          "refs/heads/dir1 refs/heads/dir2 | "
          "sort -u)\" = %s",
            first);
    SHELL("cd repo; git fsck --strict 2>/dev/null; test -z \"$(find .git -name '*.lock')\"");
}

TEST(a_branch_is_moved_with_its_reflog_and_only_from_where_it_was)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");

    CHECK_EQ(ref_create(repo, "refs/heads/x", first, "made", &err), 0);
    CHECK_EQ(ref_move(repo, "refs/heads/x", second, first, "carrel: import", &err), 0);
    check_reads(repo, "refs/heads/x", second);
    CHECK_STR(printed("cd repo; git reflog show --format=%%gs refs/heads/x"),
            "carrel: import\nmade");
    CHECK_EQ(ref_move(repo, "refs/heads/x", second, first, "again", &err), -ESTALE);
    CHECK(strstr(err.message, "has moved"));
    CHECK_EQ(ref_move(repo, "refs/heads/none", second, first, "x", &err), -ESTALE);
    CHECK_EQ(ref_move(repo, "refs/heads/x", "nonsense", first, "x", &err), -EINVAL);
    SHELL(": > repo/.git/refs/heads/x.lock");
    CHECK_EQ(ref_move(repo, "refs/heads/x", first, second, "x", &err), -EBUSY);
}

TEST(a_reference_is_deleted_only_from_where_it_was)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");

    for (int is_packed = 0; is_packed < 2; is_packed++) {
        CHECK_EQ(ref_create(repo, "refs/heads/x", first, "made", &err), 0);
        if (is_packed)
            SHELL("git -C repo pack-refs --all");
        CHECK_EQ(ref_delete(repo, "refs/heads/x", second, &err), -ESTALE);
        check_reads(repo, "refs/heads/x", first);
        CHECK_EQ(ref_delete(repo, "refs/heads/x", first, &err), 0);
        CHECK_EQ(ref_read(repo, "refs/heads/x", second, &err), -ENOENT);
        CHECK_EQ(ref_delete(repo, "refs/heads/x", first, &err), 0);
    }
}

TEST(a_shared_repository_keeps_its_modes)
{
    AUTO(fixture_close) struct fixture at = open_repository("--shared=group");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    struct stat st;

    (void)umask(077);
    CHECK_EQ(ref_create(repo, "refs/heads/x/y", first, "made", &err), 0);
    CHECK_EQ(ref_create(repo, "refs/heads/x/y", second, "made", &err), -EEXIST);
    CHECK_EQ(stat("repo/.git/refs/heads/x/y", &st), 0);
    CHECK_EQ(st.st_mode & 0060, 0060);
}

TEST(long_object_ids_work_the_same)
{
    AUTO(fixture_close) struct fixture at = open_repository("--object-format=sha256");
    AUTO(repo_free) struct repo *repo = open_at("repo");

    CHECK_EQ(strlen(first), 64);
    CHECK_EQ(ref_create(repo, "refs/heads/x", first, "made", &err), 0);
    CHECK_EQ(ref_create(repo, "refs/heads/y", "0123456789012345678901234567890123456789",
                     "made", &err),
            -EINVAL);
    CHECK_EQ(ref_move(repo, "refs/heads/x", second, first, "m", &err), 0);
    SHELL("git -C repo pack-refs --all; git -C repo fsck --strict 2>/dev/null");
    check_reads(repo, "refs/heads/x", second);
    CHECK_EQ(ref_delete(repo, "refs/heads/x", second, &err), 0);
}

/* A new repository with nothing but the snapshot must show what the old one shows. */
static void check_snapshot(const struct repo *repo)
{
    AUTO(buf_finish) struct buf packed = BUF_INIT((size_t)64 << 20);

    CHECK_EQ(ref_snapshot(repo, &packed, &err), 0);
    SHELL("rm -rf copy; git init -q --bare copy; echo %s > copy/objects/info/alternates",
            repo->objects[0]);
    AUTO(fd_close) int fd = open("copy/packed-refs", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, packed.data, packed.len), 0);
    SHELL("F='--format=%%(refname) %%(objectname) %%(*objectname)';"
          "git -C repo for-each-ref \"$F\" refs/heads refs/tags refs/remotes "
          "| { grep -v 'refs/heads/task-[^/]*-run-[^/ ]* ' || :; } > expected;"
          "git -C copy for-each-ref \"$F\" > actual; diff expected actual >&2;"
          "git -C repo show-ref -d --tags > expected || :; git -C copy show-ref -d --tags > "
          "actual || :; diff expected actual >&2");
    SHELL("cd copy; for name in $(git for-each-ref --format='%%(refname)'); do"
          " git rev-parse -q --verify $name >/dev/null; done");
}

TEST(a_snapshot_shows_what_the_repository_shows_but_runs)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");

    check_snapshot(repo);
    SHELL("cd repo; git pack-refs --all");
    check_snapshot(repo);
    SHELL("cd repo; for n in a a-b a/x task task- task-1 task-1-run-1 task-1-run-2 task.x "
          "task0 "
          "taska-run-1 task-1-run-b/c zz; do git branch $n 2>/dev/null || :; done;"
          "git tag light; git tag -a -m x heavy; git tag -a -m x task-1-run-1;"
          "git update-ref refs/remotes/origin/main HEAD; git update-ref refs/remotes/origin/a "
          "HEAD^; git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main;"
          "git update-ref refs/stash HEAD; git update-ref refs/pull/1/head HEAD;"
          "git update-ref refs/tagsx HEAD; git update-ref refs/headsx HEAD;"
          "git update-ref refs/zzz/1 HEAD");
    check_snapshot(repo);
    SHELL("cd repo; git pack-refs --all");
    check_snapshot(repo);
    SHELL("cd repo; git branch -f a HEAD^; git branch -f zz HEAD^; git branch b HEAD^;"
          "git tag -d light; git tag -f -a -m y annotated; git branch task-9-run-9;"
          "git branch task-1-run-0; git branch zzz; git branch -D task");
    check_snapshot(repo);
    SHELL("cd repo/.git; { grep -v '^[#^]' packed-refs | sort; } > x; mv x packed-refs");
    check_snapshot(repo);
}

TEST(where_references_are_not_files_git_does_it_all)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    char oid[OID_MAX];

    SHELL("cd repo; git branch x/y; git branch task-1-run-1; git tag light");
    repo->has_file_refs = false; /* as if: not every git has another kind */
    check_reads(repo, "HEAD", second);
    CHECK_EQ(ref_read(repo, "refs/heads/none", oid, &err), -ENOENT);
    CHECK_EQ(ref_create(repo, "refs/heads/x/z", first, "made", &err), 0);
    CHECK_EQ(ref_create(repo, "refs/heads/x/z", second, "made", &err), -EEXIST);
    CHECK_EQ(ref_create(repo, "refs/heads/x", first, "made", &err), -EIO);
    CHECK_EQ(ref_move(repo, "refs/heads/x/z", second, first, "m", &err), 0);
    check_reads(repo, "refs/heads/x/z", second);
    check_snapshot(repo);
    CHECK_EQ(ref_delete(repo, "refs/heads/x/z", first, &err), -ESTALE);
    CHECK_EQ(ref_delete(repo, "refs/heads/x/z", second, &err), 0);
    CHECK_EQ(repo_resolve(repo, "x/y", oid, &err), 0);
    CHECK_STR(oid, second);
}

TEST(a_snapshot_passes_over_what_is_damaged_or_being_made)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    AUTO(buf_finish) struct buf packed = BUF_INIT(10000);
    char expected[300];

    SHELL("cd repo; git tag -d annotated; cd .git/refs/heads; echo x > damaged; : > empty;"
          "echo %s > y.lock; echo 'ref: refs/heads/none' > dangling; mkdir -p a/b/c; mkfifo p",
            first);
    CHECK_EQ(ref_snapshot(repo, &packed, &err), 0);
    (void)snprintf(expected, sizeof(expected),
            "# pack-refs with: peeled fully-peeled sorted \n%s refs/heads/main\n", second);
    CHECK_STR(packed.data, expected);
}

TEST(a_snapshot_over_the_maximum_is_an_error)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    AUTO(buf_finish) struct buf packed = BUF_INIT(50);

    CHECK_EQ(ref_snapshot(repo, &packed, &err), -EFBIG);
}

TEST(a_hundred_thousand_references_take_milliseconds)
{
    AUTO(fixture_close) struct fixture at = open_repository("");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    AUTO(buf_finish) struct buf packed = BUF_INIT((size_t)64 << 20);
    uint64_t snapshot_ns = CLOCK_NEVER;

    SHELL("cd repo; git pack-refs --all; awk 'BEGIN { print \"# pack-refs with: peeled "
          "fully-peeled sorted \"; for (i = 0; i < 50000; i++) printf \"%s "
          "refs/heads/b%%06d\\n\","
          " i; for (i = 0; i < 50000; i++) printf \"%s refs/tags/v%%06d\\n^%s\\n\", i }' "
          "> .git/packed-refs",
            first, first, first);
    for (int i = 0; i < 5; i++) {
        uint64_t middle_ns = clock_ns();
        buf_clear(&packed);
        CHECK_EQ(ref_snapshot(repo, &packed, &err), 0);
        uint64_t end_ns = clock_ns();
        snapshot_ns = end_ns - middle_ns < snapshot_ns ? end_ns - middle_ns : snapshot_ns;
    }
    CHECK(packed.len > 100000 * 50);
    CHECK(snapshot_ns < 500000000);
}
