#include "base/err.h"
#include "core/request/spec.h"
#include "harness.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <string.h>

static const struct sandbox box = { .home = "/home/agent", .user_name = "agent" };

static const char *find(char **env, const char *key)
{
    size_t len = strlen(key);

    for (; *env; env++)
        if (strncmp(*env, key, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

TEST(nothing_of_the_caller_is_passed_on)
{
    AUTO(environment_free) char **env = NULL;
    struct carrel_error err;
    size_t n = 0;

    (void)setenv("SECRET_TOKEN", "x", 1);
    (void)setenv("LD_PRELOAD", "x", 1);
    CHECK_EQ(environment_make(&box, NULL, false, &env, &err), 0);
    while (env[n])
        n++;
    CHECK_EQ(n, 4);
    CHECK_STR(find(env, "HOME"), "/home/agent");
    CHECK_STR(find(env, "USER"), "agent");
    CHECK_STR(find(env, "LANG"), "C.UTF-8");
    CHECK(find(env, "PATH"));
}

TEST(a_terminal_has_a_type)
{
    AUTO(environment_free) char **env = NULL;
    struct carrel_error err;

    CHECK_EQ(environment_make(&box, NULL, true, &env, &err), 0);
    CHECK_STR(find(env, "TERM"), "xterm-256color");
}

TEST(a_later_value_replaces_an_earlier_one)
{
    static const char *const added[] = { "A=1", "PATH=/x", "A=2=3", "EMPTY=", NULL };
    AUTO(environment_free) char **env = NULL;
    struct carrel_error err;

    CHECK_EQ(environment_make(&box, added, false, &env, &err), 0);
    CHECK_STR(find(env, "A"), "2=3");
    CHECK_STR(find(env, "PATH"), "/x");
    CHECK_STR(find(env, "EMPTY"), "");
}

TEST(an_entry_that_is_no_assignment_is_refused_without_its_value)
{
    static const char *const bad[][2] = { { "A", NULL }, { "=x", NULL }, { "1A=x", NULL },
        { "A B=x", NULL } };
    char **env = NULL;
    struct carrel_error err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(environment_make(&box, bad[i], false, &env, &err), -EINVAL);
    CHECK_STR(err.message, "environment entry 'A B' is not NAME=VALUE");
}
