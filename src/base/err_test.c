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
