#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include "harness.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(what_goes_in_comes_out)
{
    static const char *const argv[] = { "prog", "", "a b", NULL };
    static const char *const env[] = { "A=1", NULL };
    struct carrel_error err;
    struct payload payload;
    AUTO(fd_close) int fd = payload_make("/work", argv, env, &err);

    CHECK(fd >= 0);
    CHECK_EQ(payload_map(fd, &payload), 0);
    CHECK_STR(payload.text, "/work");
    CHECK_STR(payload.argv[0], "prog");
    CHECK_STR(payload.argv[1], "");
    CHECK_STR(payload.argv[2], "a b");
    CHECK(!payload.argv[3]);
    CHECK_STR(payload.env[0], "A=1");
    CHECK(!payload.env[1]);
    payload_unmap(&payload);
    payload_unmap(&payload);
}

TEST(lists_may_be_absent)
{
    struct carrel_error err;
    struct payload payload;
    AUTO(fd_close) int fd = payload_make("", NULL, NULL, &err);

    CHECK(fd >= 0);
    CHECK_EQ(payload_map(fd, &payload), 0);
    CHECK_STR(payload.text, "");
    CHECK(!payload.argv[0]);
    CHECK(!payload.env[0]);
    payload_unmap(&payload);
}

static int map_bytes(const void *data, size_t len)
{
    struct payload payload;
    AUTO(fd_close) int fd = memfd_create("test", MFD_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, data, len), 0);
    return payload_map(fd, &payload);
}

TEST(a_block_that_lies_about_itself_is_refused)
{
    const uint64_t many[] = { UINT64_MAX, 1, 0, 0, 0 };
    const uint64_t sum[] = { 2, 2, 0, 0, 0 };
    const uint64_t unterminated[] = { 0, 0, 0, 0, UINT64_MAX };
    const uint64_t missing[] = { 1, 0, 0, 0, 0, 0x0061 };

    CHECK_EQ(map_bytes("", 0), -EPROTO);
    CHECK_EQ(map_bytes(many, sizeof(many)), -EPROTO);
    CHECK_EQ(map_bytes(sum, sizeof(sum)), -EPROTO);
    CHECK_EQ(map_bytes(unterminated, sizeof(unterminated)), -EPROTO);
    CHECK_EQ(map_bytes(missing, 5 * sizeof(missing[0]) + 1), -EPROTO);
}

TEST(a_copy_stays_as_it_was)
{
    static const char *const argv[] = { "prog", NULL };
    struct carrel_error err;
    struct payload payload;
    AUTO(fd_close) int fd = payload_make("/work", argv, NULL, &err);

    CHECK(fd >= 0);
    CHECK_EQ(payload_read(fd, &payload), 0);
    CHECK_EQ(ftruncate(fd, 0), 0);
    CHECK_STR(payload.text, "/work");
    CHECK_STR(payload.argv[0], "prog");
    CHECK(!payload.argv[1]);
    payload_unmap(&payload);
    CHECK_EQ(payload_read(fd, &payload), -EPROTO);
    CHECK_EQ(ftruncate(fd, (off_t)(64U << 20) + 1), 0);
    CHECK_EQ(payload_read(fd, &payload), -EPROTO);
}

TEST(only_memory_files_are_copied)
{
    struct payload payload;
    int ends[2];

    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(payload_read(ends[0], &payload), -ENOTSUP);
    CHECK_EQ(payload_read(-1, &payload), -ENOTSUP);
    fd_close(ends[0]);
    fd_close(ends[1]);
}

TEST(what_is_short_needs_no_file)
{
    static const char *const argv[] = { "prog", "a", NULL };
    static const char *const env[] = { "A=1", NULL };
    struct payload_near near;
    struct payload payload;
    struct carrel_error err;
    int fd = -2;

    CHECK_EQ(payload_make_near("/work", argv, env, &near, &fd, &err), 0);
    CHECK_EQ(fd, -1);
    CHECK(near.len > 0);
    CHECK_EQ(payload_unpack(&near, &payload), 0);
    CHECK_STR(payload.text, "/work");
    CHECK_STR(payload.argv[1], "a");
    CHECK(!payload.argv[2]);
    CHECK_STR(payload.env[0], "A=1");
    CHECK(!payload.env[1]);
    CHECK((char *)payload.argv > near.bytes &&
            payload.env[0] < near.bytes + sizeof(near.bytes));
    payload_unmap(&payload); /* which does nothing */
    CHECK_STR(payload.text, "/work");
}

TEST(what_is_one_byte_too_long_is_in_a_file)
{
    char text[sizeof((struct payload_near){ 0 }.bytes)];
    struct payload_near near;
    struct payload payload;
    struct carrel_error err;
    int fd;
    const size_t most = sizeof(text) - 4 * sizeof(uint64_t) - 1;

    memset(text, 'x', sizeof(text));
    text[most] = '\0';
    CHECK_EQ(payload_make_near(text, NULL, NULL, &near, &fd, &err), 0);
    CHECK_EQ(fd, -1);
    CHECK_EQ(near.len, sizeof(near.bytes));
    CHECK_EQ(payload_unpack(&near, &payload), 0);
    CHECK_EQ(strlen(payload.text), most);
    text[most] = 'x';
    text[most + 1] = '\0';
    CHECK_EQ(payload_make_near(text, NULL, NULL, &near, &fd, &err), 0);
    CHECK_EQ(near.len, 0);
    AUTO(fd_close) int made = fd;
    CHECK_EQ(payload_map(made, &payload), 0);
    CHECK_EQ(strlen(payload.text), most + 1);
    payload_unmap(&payload);
}
