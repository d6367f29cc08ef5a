#include "base/store.h"
#include "workspace/cache/expiry.h"
#include "workspace/git_fixture.h"
#include <carrel/error.h>
#include <errno.h>

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
    SHELL("mkdir -p state/cuts/repo/" COMMIT "/objects state/setups/" KEY "/upper "            \
          "state/folders/x-1/.git/objects")

#define AGE() SHELL("find state -exec touch -d '2 days ago' {} +")

static int use(const char *path, const char *name)
{
    AUTO(store_finish) struct store store = STORE_INIT;

    CHECK_EQ(store_open(path, &store, &err), 0);
    return expiry_use(&store, name);
}

TEST(old_entries_are_removed_and_young_ones_stay)
{
    SET_UP();
    CHECK_EQ(sweep(), 0);
    AGE();
    CHECK_EQ(sweep(), 3);
    CHECK_STR(printed("cd state; echo $(find . -mindepth 1 ! -name .tmp | sort)"),
            "./cuts ./folders ./setups");
    CHECK_EQ(sweep(), 0);
}

TEST(an_entry_that_is_used_stays)
{
    SET_UP();
    AGE();
    CHECK_EQ(use("state/cuts", "repo/" COMMIT), 0);
    CHECK_EQ(use("state/setups", KEY), 0);
    CHECK_EQ(use("state/folders", "x-1"), 0);
    CHECK_EQ(sweep(), 0);
    CHECK_EQ(use("state/cuts", "repo/none"), -ENOENT);
}

TEST(drafts_of_crashed_makers_are_removed)
{
    SET_UP();
    SHELL("mkdir -p state/setups/.tmp/D-1/upper state/cuts/.tmp/D-2");
    CHECK_EQ(sweep(), 2);
}
