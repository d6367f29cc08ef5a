#include "base/err.h"
#include "harness.h"
#include <errno.h>
#include <string.h>

enum { LONGEST = sizeof(((struct carrel_error *)0)->message) - 1 };

TEST(a_message_is_set_and_its_code_returned)
{
    struct carrel_error err = { 0 };

    CHECK_EQ(err_set(&err, -EINVAL, "bad number %d", 7), -EINVAL);
    CHECK_EQ(err.code, -EINVAL);
    CHECK_STR(err.message, "bad number 7");
}

TEST(a_second_message_replaces_the_first)
{
    struct carrel_error err = { 0 };

    err_set(&err, -EINVAL, "a long first message");
    err_set(&err, -EPERM, "short");
    CHECK_EQ(err.code, -EPERM);
    CHECK_STR(err.message, "short");
}

TEST(the_text_of_an_errno_follows_the_message)
{
    struct carrel_error err = { 0 };

    CHECK_EQ(err_set_errno(&err, -ENOENT, "open '%s'", "/x"), -ENOENT);
    CHECK_EQ(err.code, -ENOENT);
    CHECK_STR(err.message, "open '/x': No such file or directory");
}

TEST(an_errno_without_a_text_is_still_a_message)
{
    struct carrel_error err = { 0 };

    CHECK_EQ(err_set_errno(&err, -4000, "odd"), -4000);
    CHECK_STR(err.message, "odd: unknown error");
}

TEST(context_goes_before_what_is_there)
{
    struct carrel_error err = { 0 };

    err_set_errno(&err, -EACCES, "open 'objects/info'");
    CHECK_EQ(err_wrap(&err, -EACCES, "create run '%s'", "fix-42"), -EACCES);
    CHECK_EQ(err_wrap(&err, -EACCES, "carrel"), -EACCES);
    CHECK_STR(
            err.message, "carrel: create run 'fix-42': open 'objects/info': Permission denied");
    CHECK_EQ(err.code, -EACCES);
}

TEST(wrapping_may_change_the_code)
{
    struct carrel_error err = { 0 };

    err_set(&err, -ENOENT, "no file");
    CHECK_EQ(err_wrap(&err, -ENOTSUP, "feature"), -ENOTSUP);
    CHECK_EQ(err.code, -ENOTSUP);
    CHECK_STR(err.message, "feature: no file");
}

TEST(a_message_may_be_made_from_itself)
{
    struct carrel_error err = { 0 };

    err_set(&err, -EINVAL, "inner");
    err_set(&err, -EINVAL, "outer (%s)", err.message);
    CHECK_STR(err.message, "outer (inner)");
    err_wrap(&err, -EINVAL, "%s", err.message);
    CHECK_STR(err.message, "outer (inner): outer (inner)");
}

TEST(nobody_needs_to_listen)
{
    CHECK_EQ(err_set(NULL, -EINVAL, "x"), -EINVAL);
    CHECK_EQ(err_set_errno(NULL, -EPERM, "x"), -EPERM);
    CHECK_EQ(err_wrap(NULL, -EIO, "x"), -EIO);
}

TEST(a_long_message_loses_its_end_and_stays_terminated)
{
    struct carrel_error err = { 0 };
    char text[2 * LONGEST];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CHECK_EQ(err_set(&err, -EINVAL, "%s", text), -EINVAL);
    CHECK_EQ(strlen(err.message), LONGEST);
    CHECK_EQ(err_set_errno(&err, -ENOENT, "%s", text), -ENOENT);
    CHECK_EQ(strlen(err.message), LONGEST);
    CHECK_EQ(err_wrap(&err, -ENOENT, "%s", text), -ENOENT);
    CHECK_EQ(strlen(err.message), LONGEST);
    CHECK_EQ(strspn(err.message, "a"), LONGEST);
}

TEST(exactly_the_longest_message_is_kept)
{
    struct carrel_error err = { 0 };
    char text[LONGEST + 1];

    memset(text, 'a', LONGEST);
    text[LONGEST] = '\0';
    err_set(&err, -EINVAL, "%s", text);
    CHECK_STR(err.message, text);
}

TEST(a_full_message_keeps_the_context_when_wrapped)
{
    struct carrel_error err = { 0 };
    char text[LONGEST + 1];

    memset(text, 'a', LONGEST);
    text[LONGEST] = '\0';
    err_set(&err, -EINVAL, "%s", text);
    err_wrap(&err, -EINVAL, "outer");
    CHECK_MEM(err.message, 9, "outer: aa", 9);
    CHECK_EQ(strlen(err.message), LONGEST);
}

TEST(an_error_fits_one_atomic_write_to_a_pipe)
{
    CHECK_EQ(sizeof(struct carrel_error), 512); /* POSIX: writes up to 512 bytes are atomic */
}

TEST(errno_itself_is_left_alone)
{
    struct carrel_error err = { 0 };

    errno = EMLINK;
    err_set_errno(&err, -ENOENT, "x");
    err_wrap(&err, -ENOENT, "y %s", "z");
    CHECK_EQ(errno, EMLINK);
}

TEST(an_error_says_where_its_cause_lies)
{
    struct carrel_error err = { 0 };

    err_set(&err, -EINVAL, "no such option");
    CHECK_EQ(err.origin, CARREL_FROM_CALLER);
    CHECK_STR(err.reason, "invalid");
    err_set_errno(&err, -EINVAL, "mount");
    CHECK_EQ(err.origin, CARREL_FROM_CARREL);
    err_set(&err, -EACCES, "cannot be executed");
    CHECK_STR(err.reason, "denied");
    CHECK_EQ(err_from(&err, -EACCES, CARREL_FROM_PROGRAM), -EACCES);
    CHECK_STR(err.reason, "not_executable");
    CHECK_EQ(err_wrap(&err, -EACCES, "start"), -EACCES);
    CHECK_EQ(err.origin, CARREL_FROM_PROGRAM);
    CHECK_STR(err.reason, "not_executable");
    err_set(&err, -EPERM, "more than the maximum");
    (void)err_from(&err, -EPERM, CARREL_FROM_POLICY);
    CHECK_STR(err.reason, "forbidden");
    CHECK_EQ(err_from(NULL, -EPERM, CARREL_FROM_POLICY), -EPERM);
    CHECK_STR(carrel_origin_name(CARREL_FROM_POLICY), "policy");
}

TEST(what_another_process_says_may_be_any_bytes)
{
    struct carrel_error told;
    struct carrel_error err = { 0 };

    memset(&told, 'x', sizeof(told));
    CHECK_EQ(err_take(&err, &told), -EIO); /* no code of the kernel's is like this */
    CHECK_EQ(err.origin, CARREL_FROM_CARREL);
    CHECK_STR(err.reason, "failed");
    CHECK_EQ(strlen(err.message), LONGEST);
    (void)err_set(&told, -EPERM, "no");
    (void)err_from(&told, -EPERM, CARREL_FROM_POLICY);
    CHECK_EQ(err_take(&err, &told), -EPERM);
    CHECK_EQ(err.origin, CARREL_FROM_POLICY);
    CHECK_STR(err.reason, "forbidden");
    CHECK_STR(err.message, "no");
}

TEST(a_name_that_is_missing_is_the_callers)
{
    struct carrel_error err = { 0 };

    CHECK_EQ(err_from_name(&err, err_set_errno(&err, -ENOENT, "open 'x'")), -ENOENT);
    CHECK_EQ(err.origin, CARREL_FROM_CALLER);
    CHECK_EQ(err_from_name(&err, err_set_errno(&err, -EIO, "open 'x'")), -EIO);
    CHECK_EQ(err.origin, CARREL_FROM_CARREL);
    (void)err_set(&err, -ENOENT, "not in the sandbox");
    (void)err_from(&err, -ENOENT, CARREL_FROM_PROGRAM);
    CHECK_EQ(err_from_name(&err, -ENOENT), -ENOENT);
    CHECK_EQ(err.origin, CARREL_FROM_PROGRAM);
}

TEST(every_reason_is_in_the_list)
{
    struct carrel_error err = { 0 };

    for (int code = -1; code > -200; code--)
        for (int origin = CARREL_FROM_CARREL; origin <= CARREL_FROM_PROGRAM; origin++) {
            const char *const *known = carrel_error_reasons();
            (void)err_from(&err, code, (enum carrel_origin)origin);
            while (*known && strcmp(*known, err.reason) != 0)
                known++;
            CHECK(*known);
        }
}
