#include "workspace/cache/expiry.h"
#include "workspace/git_fixture.h"
#include <carrel/error.h>
#include <errno.h>
#include <sys/file.h>

#define COMMIT "1234567890123456789012345678901234567890"
#define KEY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DAY (24U * 60 * 60)

static struct carrel_error err;

static int sweep(void)
{
    return expiry_sweep("state", DAY, &err);
}

#define SET_UP()                                                                               \
    AUTO(fixture_close) struct fixture at = fixture_open();                                    \
    SHELL("mkdir -p state/cuts/repo/" COMMIT "/pack state/layers/" KEY "/upper state/layers/"  \
          "L-1234567890123456 state/folders/x-1/.git/objects")

#define AGE() SHELL("find state -exec touch -d '2 days ago' {} +")

TEST(what_is_old_goes_and_what_is_young_stays)
{
    SET_UP();
    CHECK_EQ(sweep(), 0);
    AGE();
    CHECK_EQ(sweep(), 3);
    CHECK_STR(printed("cd state; echo $(find . -mindepth 1 | sort)"),
            "./cuts ./folders ./layers ./layers/L-1234567890123456");
    CHECK_EQ(sweep(), 0);
}

TEST(use_keeps_it)
{
    SET_UP();
    AGE();
    CHECK_EQ(cached_use(AT_FDCWD, "state/cuts/repo/" COMMIT), 0);
    CHECK_EQ(cached_use(AT_FDCWD, "state/layers/" KEY), 0);
    CHECK_EQ(cached_use(AT_FDCWD, "state/folders/x-1/.git"), 0);
    CHECK_EQ(sweep(), 0);
    CHECK_EQ(cached_use(AT_FDCWD, "state/cuts/repo/none"), -ENOENT);
}

/* Whoever has the lock is about to say that it is used, or uses it. */
TEST(what_somebody_holds_stays)
{
    static const char *const names[] = { "state/cuts/repo/" COMMIT, "state/layers/" KEY,
        "state/folders/x-1/.git" };
    int held[ARRAY_LEN(names)];

    SET_UP();
    AGE();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        held[i] = open(names[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK_EQ(flock(held[i], LOCK_SH), 0);
    }
    CHECK_EQ(sweep(), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        fd_close(held[i]);
    CHECK_EQ(sweep(), 3);
}

TEST(what_crashes_left_goes)
{
    SET_UP();
    SHELL("mkdir state/layers/." KEY " state/cuts/repo/.old-" COMMIT " state/cuts/repo/." COMMIT
          "-77 state/folders/.old-y-2");
    CHECK_EQ(sweep(), 3); /* the draft of a cut may have a maker */
    SHELL("touch -d '2 days ago' state/cuts/repo/.[0-9]*");
    CHECK_EQ(sweep(), 1);
    SHELL("mkdir state/layers/." KEY);
    AUTO(fd_close) int layers = open("state/layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(flock(layers, LOCK_EX), 0); /* as a setup does that is going on */
    CHECK_EQ(sweep(), 0);
}
