/* health_test.c - the report, made up and real. */
#include "base/err.h"
#include "core/host/health.h"
#include "harness.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(a_protection_is_known_to_work_known_to_be_missing_or_unknown)
{
    const struct health_view view = {
        .works = PROTECT_BIT(PROTECT_USERNS),
        .missing = PROTECT_BIT(PROTECT_LANDLOCK),
    };

    CHECK_EQ(health_state(&view, PROTECT_USERNS), HEALTH_WORKS);
    CHECK_EQ(health_state(&view, PROTECT_LANDLOCK), HEALTH_MISSING);
    CHECK_EQ(health_state(&view, PROTECT_SECCOMP), HEALTH_UNKNOWN);
}

static struct health broken(void)
{
    struct health health = { .caller = HEALTH_ROOTLESS };
    struct health_view *view = &health.views[HEALTH_ROOTLESS];

    view->is_known = true;
    view->uid = 1000;
    view->missing = PROTECT_BIT(PROTECT_USERNS);
    (void)err_set(&view->error, -ENOTSUP, "no \"namespace\"");
    view->found.n_gaps = 1;
    view->found.gaps[0] = (struct health_gap){
        .set = PROTECT_BIT(PROTECT_USERNS),
        .why = "switched off",
        .remedy = "switch it on",
    };
    (void)err_set(&health.views[HEALTH_ROOT].error, -EPERM, "run as root to see");
    return health;
}

TEST(the_report_of_a_broken_machine_says_why_and_what_to_do)
{
    AUTO(buf_finish) struct buf json = BUF_INIT(1U << 20);
    const struct health health = broken();

    health_write_json(&health, &json);
    CHECK(!json.is_short);
    CHECK(strncmp(json.data, "{\"ok\":false,", 12) == 0);
    CHECK(strstr(json.data, "\"caller\":\"rootless\""));
    CHECK(strstr(json.data, "{\"name\":\"userns\",\"meaning\":"));
    CHECK(strstr(json.data, "\"root\":null,\"rootless\":false}"));
    CHECK(strstr(json.data, "\"error\":\"no \\\"namespace\\\"\",\"uid\":1000"));
    CHECK(strstr(json.data,
            "\"missing\":[{\"protections\":[\"userns\"],\"why\":\"switched off\","
            "\"remedy\":\"switch it on\"}]"));
    CHECK(strstr(json.data, "\"error\":\"run as root to see\",\"uid\":null"));
}

static size_t count_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    CHECK(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

TEST(a_check_of_this_machine_is_consistent_and_leaves_nothing)
{
    struct health health;
    size_t n_open = count_open();

    health_check(&health);
    CHECK_EQ(health.caller, geteuid() == 0 ? HEALTH_ROOT : HEALTH_ROOTLESS);
    for (enum health_user user = 0; user < HEALTH_USERS; user++) {
        const struct health_view *view = &health.views[user];
        CHECK_EQ(view->works & view->missing, 0);
        if (!view->is_known || !view->is_able)
            CHECK(view->error.message[0]);
        if (view->is_able)
            CHECK_EQ(view->works | view->missing, PROTECT_BIT(PROTECT_COUNT) - 1);
        if (view->is_known)
            CHECK_STR(view->found.facts[0].name, "kernel");
    }
    CHECK(health.views[health.caller].is_known);
    CHECK_EQ(health.views[health.caller].uid, geteuid());
    CHECK_EQ(count_open(), n_open);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    CHECK_EQ(errno, ECHILD);
}

TEST(root_sees_the_other_column_through_a_user_that_is_not_root)
{
    struct health health;

    if (geteuid() != 0)
        SKIP("needs root");
    health_check(&health);
    const struct health_view *view = &health.views[HEALTH_ROOTLESS];
    if (!view->is_known)
        SKIP("%s", view->error.message);
    CHECK(view->uid != 0);
    CHECK_EQ(geteuid(), 0);
}
