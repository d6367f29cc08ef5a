#include "workspace/fork_git.h"
#include "workspace/harvest/lower.h"
#include "workspace/place_fixture.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TIP "1111111111111111111111111111111111111111"
#define LONG_TIP TIP "0"
#define OLDER "2222222222222222222222222222222222222222"

/* Two layers, "layer0" on top, and a place for the fork's own "git", below the fixture's. */
struct fork {
    struct fixture fx;
    char paths[2][256];
    char git[256];
};

static void begin(struct fork *s)
{
    fixture_init(&s->fx);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(s->paths[i], sizeof(s->paths[i]), "%s/layer%d", s->fx.top, i);
        CHECK_EQ(mkdir(s->paths[i], 0755), 0);
    }
    (void)snprintf(s->git, sizeof(s->git), "%s/git", s->fx.top);
    CHECK_EQ(mkdir(s->git, 0755), 0);
}

static const char *in(const struct fork *s, const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", s->fx.top, name);
    return path;
}

static void put_dirs(struct fork *s, const char *layer)
{
    char name[128];

    (void)snprintf(name, sizeof(name), "%s/refs", layer);
    CHECK_EQ(mkdir(in(s, name), 0755), 0);
    (void)snprintf(name, sizeof(name), "%s/refs/heads", layer);
    CHECK_EQ(mkdir(in(s, name), 0755), 0);
}

static bool holds(const struct fork *s, const char *name, const char *text)
{
    char got[256];

    return fd_read_file(AT_FDCWD, in(s, name), got, sizeof(got)) >= 0 && strcmp(got, text) == 0;
}

/* The fork's branch "new" of one that had "old" is at `tip`. */
static void check_fork(struct fork *s, const char *tip, bool is_checked_out)
{
    const char *const list[] = { s->paths[0], s->paths[1], NULL };
    char line[OID_MAX + 2];
    struct lower below = { .n = 0 };
    AUTO(fd_close) int dir = open(s->git, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQ(lower_open(&below, list, &s->fx.err), 0);
    int r = fork_git_fill(&below, "old", "new", s->fx.base, dir, &s->fx.err);
    lower_close(&below);
    CHECK_STR(r < 0 ? s->fx.err.message : "", "");
    (void)snprintf(line, sizeof(line), "%s\n", tip ? tip : s->fx.base);
    CHECK(holds(s, "git/refs/heads/new", line));
    CHECK_EQ(holds(s, "git/HEAD", "ref: refs/heads/new\n"), is_checked_out);
    CHECK_EQ(access(in(s, "git/HEAD"), F_OK) == 0, is_checked_out);
}

static void end(struct fork *s)
{
    fixture_finish(&s->fx);
}

TEST(the_branch_of_a_fork_begins_where_the_other_stood)
{
    struct fork s;

    begin(&s);
    put_dirs(&s, "layer0");
    put_dirs(&s, "layer1");
    fixture_write(&s.fx, "layer1/HEAD", "ref: refs/heads/old\n");
    fixture_write(&s.fx, "layer1/refs/heads/old", OLDER "\n");
    fixture_write(&s.fx, "layer0/refs/heads/old", TIP "\n");
    check_fork(&s, TIP, true);
    end(&s);
}

TEST(a_packed_branch_is_found)
{
    struct fork s;

    begin(&s);
    fixture_write(&s.fx, "layer1/HEAD", "ref: refs/heads/old\n");
    fixture_write(&s.fx, "layer1/packed-refs",
            "# pack-refs with: peeled fully-peeled sorted \n" OLDER " refs/heads/old/er\n" OLDER
            " refs/heads/ol\n" TIP " refs/heads/old\n^" OLDER "\n");
    check_fork(&s, TIP, true);
    end(&s);
}

TEST(a_branch_that_was_packed_later_is_not_the_older_file)
{
    struct fork s;

    begin(&s);
    put_dirs(&s, "layer0");
    put_dirs(&s, "layer1");
    fixture_write(&s.fx, "layer1/refs/heads/old", OLDER "\n");
    CHECK_EQ(mknod(in(&s, "layer0/refs/heads/old"), S_IFCHR, 0), 0);
    fixture_write(&s.fx, "layer0/packed-refs", TIP " refs/heads/old\n");
    check_fork(&s, TIP, true);
    end(&s);
}

TEST(a_directory_that_was_made_anew_hides_the_older_file)
{
    struct fork s;

    begin(&s);
    put_dirs(&s, "layer0");
    put_dirs(&s, "layer1");
    if (setxattr(in(&s, "layer0/refs"), "user.overlay.opaque", "y", 1, 0) < 0)
        SKIP("no attributes of users on the file system of /tmp");
    fixture_write(&s.fx, "layer1/refs/heads/old", OLDER "\n");
    check_fork(&s, NULL, true);
    end(&s);
}

TEST(what_else_was_checked_out_stays_so)
{
    struct fork s;

    begin(&s);
    fixture_write(&s.fx, "layer0/HEAD", "ref: refs/heads/side\n");
    fixture_write(&s.fx, "layer1/HEAD", "ref: refs/heads/old\n");
    check_fork(&s, NULL, false);
    end(&s);
}

/* A run chose all of this: nothing of it is followed, waited for or believed. */
TEST(a_branch_in_any_other_form_is_none)
{
    static const char too_long[] = LONG_TIP "\n";
    static const char *const texts[] = { "", "\n", TIP, "ref: refs/heads/main\n", too_long,
        "../../../../etc/passwd\n" };

    for (size_t i = 0; i < ARRAY_LEN(texts) + 3; i++) {
        struct fork s;
        begin(&s);
        put_dirs(&s, "layer0");
        fixture_write(&s.fx, "outside", TIP "\n");
        if (i < ARRAY_LEN(texts))
            fixture_write(&s.fx, "layer0/refs/heads/old", texts[i]);
        else if (i == ARRAY_LEN(texts))
            CHECK_EQ(symlink("../../../outside", in(&s, "layer0/refs/heads/old")), 0);
        else if (i == ARRAY_LEN(texts) + 1)
            CHECK_EQ(mkfifo(in(&s, "layer0/refs/heads/old"), 0644), 0);
        else
            CHECK_EQ(mkdir(in(&s, "layer0/refs/heads/old"), 0755), 0);
        check_fork(&s, NULL, true);
        end(&s);
    }
}
