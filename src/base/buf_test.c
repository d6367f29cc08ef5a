#include "base/buf.h"
#include "harness.h"
#include <stdint.h>
#include <wchar.h>

TEST(a_new_buffer_is_empty_and_may_be_finished)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(10);

    CHECK_EQ(buf.len, 0);
    CHECK(!buf.data);
    CHECK(!buf.is_short);
}

TEST(additions_follow_each_other_and_stay_terminated)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(100);

    buf_add_str(&buf, "one");
    buf_addf(&buf, " %d ", 2);
    buf_add(&buf, "three", 5);
    CHECK_STR(buf.data, "one 2 three");
    CHECK_EQ(buf.len, 11);
    CHECK(!buf.is_short);
}

TEST(adding_nothing_gives_an_empty_text)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(0);

    buf_add(&buf, NULL, 0);
    buf_add_str(&buf, "");
    buf_addf(&buf, "%s", "");
    CHECK_STR(buf.data, "");
    CHECK_EQ(buf.len, 0);
    CHECK(!buf.is_short);
}

TEST(zero_bytes_are_data_like_any_other)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(10);

    buf_add(&buf, "a\0b", 3);
    buf_add(&buf, "\0", 1);
    CHECK_MEM(buf.data, buf.len + 1, "a\0b\0", 5);
}

TEST(exactly_the_maximum_fits)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(5);

    buf_add_str(&buf, "12");
    buf_addf(&buf, "%03d", 345);
    CHECK_STR(buf.data, "12345");
    CHECK(!buf.is_short);
}

TEST(one_byte_over_the_maximum_is_dropped_whole)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(5);

    buf_add_str(&buf, "123");
    buf_add_str(&buf, "456");
    CHECK_STR(buf.data, "123");
    CHECK_EQ(buf.len, 3);
    CHECK(buf.is_short);
}

TEST(a_format_over_the_maximum_is_dropped_whole)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(5);

    buf_add_str(&buf, "123");
    buf_addf(&buf, "%s", "456");
    CHECK_STR(buf.data, "123");
    CHECK(buf.is_short);
}

TEST(after_something_was_dropped_everything_is)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(5);

    buf_add_str(&buf, "123");
    buf_add_str(&buf, "456");
    buf_add_str(&buf, "7");
    buf_addf(&buf, "8");
    CHECK_STR(buf.data, "123");
    CHECK(buf.is_short);
}

TEST(a_cleared_buffer_is_empty_text_again)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(5);

    buf_clear(&buf);
    buf_add_str(&buf, "123456");
    CHECK(buf.is_short);
    buf_clear(&buf);
    CHECK(!buf.is_short);
    buf_add_str(&buf, "1234");
    buf_clear(&buf);
    CHECK_EQ(buf.len, 0);
    CHECK_STR(buf.data, "");
    buf_add_str(&buf, "abc");
    CHECK_STR(buf.data, "abc");
}

TEST(it_grows_past_every_size_it_had)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(100000);

    for (int i = 0; i < 20000; i++)
        buf_addf(&buf, "%05d", i);
    CHECK_EQ(buf.len, 100000);
    CHECK(!buf.is_short);
    CHECK_EQ(strlen(buf.data), 100000);
    for (size_t i = 0; i < 20000; i++) {
        char digits[6] = "";
        memcpy(digits, buf.data + 5 * i, 5);
        CHECK_EQ(strtoul(digits, NULL, 10), i);
    }
    buf_add_str(&buf, "x");
    CHECK(buf.is_short);
}

TEST(the_sizes_around_each_reallocation_keep_room_for_the_end)
{
    for (size_t len = 250; len < 1030; len++) {
        AUTO(buf_finish) struct buf buf = BUF_INIT(2000);
        for (size_t i = 0; i < len; i++)
            buf_add(&buf, "x", 1);
        CHECK_EQ(strlen(buf.data), len);
        CHECK(buf.room > buf.len);
    }
}

TEST(a_length_that_no_memory_can_hold_is_short_and_not_an_endless_loop)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(SIZE_MAX);
    const volatile size_t huge[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 + 1, SIZE_MAX / 2 };

    for (size_t i = 0; i < ARRAY_LEN(huge); i++) {
        buf_clear(&buf);
        buf_add_str(&buf, "x");
        CHECK(!buf.is_short);
        buf_add(&buf, "x", huge[i]);
        CHECK(buf.is_short);
        CHECK_STR(buf.data, "x");
    }
}

TEST(a_format_that_cannot_be_written_is_short_and_not_a_silence)
{
    AUTO(buf_finish) struct buf buf = BUF_INIT(SIZE_MAX);

    buf_addf(&buf, "a %lc", (wint_t)0x7fffffff); /* no such character: vsnprintf fails */
    CHECK(buf.is_short);
    CHECK_EQ(buf.len, 0);
}

TEST(finishing_through_a_stolen_pointer_frees_nothing_twice)
{
    AUTO(free) char *kept = NULL;
    {
        AUTO(buf_finish) struct buf buf = BUF_INIT(10);
        buf_add_str(&buf, "kept");
        kept = ptr_steal(&buf.data);
        CHECK(!buf.data);
    }
    CHECK_STR(kept, "kept");
}
