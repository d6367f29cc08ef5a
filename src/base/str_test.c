#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "harness.h"
#include <errno.h>
#include <stdio.h>

static const uint64_t K = 1024;

TEST(digits_are_a_number)
{
    uint64_t n = 7;

    CHECK_EQ(str_parse_u64("0", &n), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(str_parse_u64("0042", &n), 0);
    CHECK_EQ(n, 42);
    CHECK_EQ(str_parse_u64("18446744073709551615", &n), 0);
    CHECK_EQ(n, UINT64_MAX);
}

TEST(anything_else_is_not_a_number_and_changes_nothing)
{
    static const char *const bad[] = { "", " ", "-1", "+1", " 1", "1 ", "1a", "a1", "0x10",
        "1.0", "1e3", "1,000", "\xd9\xa1", "--", "1\n", "one" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t n = 7;
        CHECK_EQ(str_parse_u64(bad[i], &n), -EINVAL);
        CHECK_EQ(n, 7);
    }
}

TEST(a_number_past_64_bits_is_out_of_range_and_does_not_wrap)
{
    static const char *const bad[] = { "18446744073709551616", "18446744073709551620",
        "99999999999999999999", "100000000000000000000000000000000000000000000000" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t n = 7;
        CHECK_EQ(str_parse_u64(bad[i], &n), -ERANGE);
        CHECK_EQ(n, 7);
    }
}

static uint64_t size_of(const char *text)
{
    uint64_t bytes = 7;
    struct carrel_error err = { 0 };

    CHECK_EQ(str_parse_size(text, &bytes, &err), 0);
    return bytes;
}

TEST(sizes_take_units_of_1024)
{
    CHECK_EQ(size_of("0"), 0);
    CHECK_EQ(size_of("4096"), 4096);
    CHECK_EQ(size_of("10K"), 10 * K);
    CHECK_EQ(size_of("512M"), 512 * K * K);
    CHECK_EQ(size_of("1G"), K * K * K);
    CHECK_EQ(size_of("2T"), 2 * K * K * K * K);
}

TEST(every_spelling_of_a_unit_means_the_same)
{
    static const char *const megabyte[] = { "1m", "1M", "1mb", "1MB", "1MiB", "1mib", "1.0M" };

    for (size_t i = 0; i < ARRAY_LEN(megabyte); i++)
        CHECK_EQ(size_of(megabyte[i]), K * K);
    CHECK_EQ(size_of("12b"), 12);
    CHECK_EQ(size_of("1KiB"), K);
    CHECK_EQ(size_of("1GiB"), K * K * K);
    CHECK_EQ(size_of("1TB"), K * K * K * K);
}

TEST(a_fraction_of_a_unit_is_exact)
{
    CHECK_EQ(size_of("1.5K"), 1536);
    CHECK_EQ(size_of("0.5M"), 512 * K);
    CHECK_EQ(size_of("0.125K"), 128);
    CHECK_EQ(size_of("0.0G"), 0);
}

TEST(a_fraction_of_a_byte_is_refused)
{
    uint64_t bytes = 7;
    struct carrel_error err = { 0 };

    CHECK_EQ(str_parse_size("0.5", &bytes, &err), -EINVAL);
    CHECK_STR(err.message, "'0.5' is not a whole number of bytes");
    CHECK_EQ(str_parse_size("0.001K", &bytes, &err), -EINVAL);
    CHECK_STR(err.message, "'0.001K' is not a whole number of bytes");
    CHECK_EQ(err.code, -EINVAL);
    CHECK_EQ(bytes, 7);
}

TEST(what_is_not_a_size_is_refused_with_what_was_expected)
{
    static const char *const bad[] = { "", " ", "M", "-1", "-1M", "+1M", "1 M", " 1M", "1M ",
        "1X", "1MM", "1.M", ".5M", "1..5M", "1.5.5M", "1,5M", "1e6", "0x10", "1.0001M", "inf",
        "nan", "1P", "1Ki", "1\n" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t bytes = 7;
        struct carrel_error err = { 0 };
        char expected[200];
        char shown[64];

        CHECK_EQ(str_parse_size(bad[i], &bytes, &err), -EINVAL);
        CHECK_EQ(bytes, 7);
        snprintf(expected, sizeof(expected),
                "'%s' is not a size; expected a number with an optional unit K, M, G or T, "
                "such as 512M",
                str_escape(bad[i], strlen(bad[i]), shown, sizeof(shown)));
        CHECK_STR(err.message, expected);
    }
}

TEST(a_size_that_overflows_is_refused_and_does_not_wrap)
{
    static const char *const bad[] = { "18446744073709551615", "18446744073709551616",
        "99999999999999999999999999", "18446744073709552K", "17592186044416M", "16777216T",
        "18014398509481984T", "18446744073709551615T", "17000T" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t bytes = 7;
        struct carrel_error err = { 0 };
        char expected[100];

        CHECK_EQ(str_parse_size(bad[i], &bytes, &err), -ERANGE);
        CHECK_EQ(bytes, 7);
        snprintf(expected, sizeof(expected), "'%s' is larger than any size", bad[i]);
        CHECK_STR(err.message, expected);
    }
    CHECK_EQ(size_of("16000T"), 16000 * K * K * K * K);
    CHECK_EQ(size_of("18446744073709551"), UINT64_C(18446744073709551));
}

static uint64_t ms_of(const char *text)
{
    uint64_t ms = 7;
    struct carrel_error err = { 0 };

    CHECK_EQ(str_parse_duration(text, &ms, &err), 0);
    return ms;
}

TEST(times_take_units_and_a_bare_number_is_seconds)
{
    CHECK_EQ(ms_of("0"), 0);
    CHECK_EQ(ms_of("300"), 300000);
    CHECK_EQ(ms_of("300s"), 300000);
    CHECK_EQ(ms_of("1500ms"), 1500);
    CHECK_EQ(ms_of("5m"), 300000);
    CHECK_EQ(ms_of("5min"), 300000);
    CHECK_EQ(ms_of("2h"), 7200000);
    CHECK_EQ(ms_of("30d"), UINT64_C(2592000000));
    CHECK_EQ(ms_of("1.5s"), 1500);
    CHECK_EQ(ms_of("0.001"), 1);
    CHECK_EQ(ms_of("0.5m"), 30000);
    CHECK_EQ(ms_of("1S"), 1000);
}

TEST(what_is_not_a_time_is_refused_with_what_was_expected)
{
    static const char *const bad[] = { "", "s", "-1s", "+1", "1 s", "1s ", "1w", "1us", "1.s",
        ".5s", "1.0001s", "1s5", "1m30s", "forever", "1e3", "0x1" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t ms = 7;
        struct carrel_error err = { 0 };
        char expected[200];

        CHECK_EQ(str_parse_duration(bad[i], &ms, &err), -EINVAL);
        CHECK_EQ(ms, 7);
        snprintf(expected, sizeof(expected),
                "'%s' is not a time; expected a number with an optional unit ms, s, m, h or d, "
                "such as 300s",
                bad[i]);
        CHECK_STR(err.message, expected);
    }
}

TEST(a_fraction_of_a_millisecond_is_refused)
{
    uint64_t ms = 7;
    struct carrel_error err = { 0 };

    CHECK_EQ(str_parse_duration("1.5ms", &ms, &err), -EINVAL);
    CHECK_STR(err.message, "'1.5ms' is finer than a millisecond");
    CHECK_EQ(ms, 7);
}

TEST(a_time_that_overflows_is_refused_and_does_not_wrap)
{
    /* The longest one that nanoseconds in 64 signed bits can hold. */
    CHECK_EQ(ms_of("9223372036854ms"), UINT64_C(9223372036854));
    CHECK_EQ(ms_of("9223372036.854"), UINT64_C(9223372036854));

    static const char *const bad[] = { "9223372036855ms", "9223372036.855", "2562048h",
        "18446744073709551615ms", "18446744073709551616", "18446744073709551615h",
        "99999999999999999999999" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t ms = 7;
        struct carrel_error err = { 0 };
        char expected[100];

        CHECK_EQ(str_parse_duration(bad[i], &ms, &err), -ERANGE);
        CHECK_EQ(ms, 7);
        snprintf(expected, sizeof(expected), "'%s' is longer than any time", bad[i]);
        CHECK_STR(err.message, expected);
    }
}

TEST(thousandths_come_from_decimals)
{
    static const struct {
        const char *text;
        uint64_t milli;
    } good[] = { { "1", 1000 }, { "0.5", 500 }, { "16", 16000 }, { "0.001", 1 }, { "0", 0 },
        { "1.250", 1250 }, { "18446744073709551.615", UINT64_MAX } };

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        uint64_t milli = 7;
        struct carrel_error err = { 0 };
        CHECK_EQ(str_parse_milli(good[i].text, &milli, &err), 0);
        CHECK_EQ(milli, good[i].milli);
    }
}

TEST(what_is_not_a_decimal_is_refused)
{
    static const char *const bad[] = { "", "x", "-1", "1.", ".5", "1.0000", "1.5x", "1 ", "1,5",
        "1e1" };
    uint64_t milli = 7;
    struct carrel_error err = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_EQ(str_parse_milli(bad[i], &milli, &err), -EINVAL);
        CHECK_EQ(milli, 7);
    }
    CHECK_STR(err.message, "'1e1' is not a number; expected one such as 1.0 or 0.5");
    CHECK_EQ(str_parse_milli("18446744073709551.616", &milli, &err), -ERANGE);
    CHECK_EQ(str_parse_milli("18446744073709552", &milli, &err), -ERANGE);
    CHECK_EQ(str_parse_milli("18446744073709551616", &milli, &err), -ERANGE);
    CHECK_EQ(milli, 7);
}

TEST(a_refusal_needs_no_listener)
{
    uint64_t value = 7;

    CHECK_EQ(str_parse_size("x", &value, NULL), -EINVAL);
    CHECK_EQ(str_parse_duration("x", &value, NULL), -EINVAL);
    CHECK_EQ(str_parse_milli("x", &value, NULL), -EINVAL);
    CHECK_EQ(value, 7);
}

TEST(a_refusal_cannot_paint_the_terminal)
{
    uint64_t bytes;
    struct carrel_error err = { 0 };
    char flood[5000];

    CHECK_EQ(str_parse_size("\x1b[2J\n5", &bytes, &err), -EINVAL);
    CHECK(strstr(err.message, "'\\x1b[2J\\x0a5' is not a size"));
    memset(flood, 'a', sizeof(flood) - 1);
    flood[sizeof(flood) - 1] = '\0';
    CHECK_EQ(str_parse_size(flood, &bytes, &err), -EINVAL);
    CHECK(strstr(err.message, "such as 512M")); /* a long word does not push it out */
}

TEST(names_of_environment_variables)
{
    static const char *const good[] = { "A", "_", "PATH", "a1", "_1", "LC_ALL" };
    static const char *const bad[] = { "", "1", "1A", "A B", "A=B", "A-B", "A.B", "\xc3\xa9",
        "A\n", " A", "=" };

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK(str_is_env_name(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!str_is_env_name(bad[i], strlen(bad[i])));
    CHECK(str_is_env_name("PATH=/bin", 4));
    CHECK(!str_is_env_name("A\0B", 3));
}

TEST(a_size_is_printed_in_the_largest_unit_that_is_exact)
{
    char text[32];

    CHECK_STR(str_size(0, text), "0");
    CHECK_STR(str_size(1, text), "1");
    CHECK_STR(str_size(1023, text), "1023");
    CHECK_STR(str_size(1024, text), "1K");
    CHECK_STR(str_size(1025, text), "1025");
    CHECK_STR(str_size(1536, text), "1536");
    CHECK_STR(str_size(512 * K * K, text), "512M");
    CHECK_STR(str_size(K * K * K, text), "1G");
    CHECK_STR(str_size(2048 * K * K * K * K, text), "2048T");
    CHECK_STR(str_size(UINT64_MAX, text), "18446744073709551615");
}

TEST(a_printed_size_parses_to_the_same_size)
{
    char text[32];
    static const uint64_t sizes[] = { 0, 1, 1000, 1024, 1536, 10240, 536870912, 1073741824,
        UINT64_C(1) << 50, (UINT64_C(1) << 50) + 1 };

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        CHECK_EQ(size_of(str_size(sizes[i], text)), sizes[i]);
}

TEST(a_time_is_printed_without_needless_zeros)
{
    char text[32];

    CHECK_STR(str_duration(0, text), "0ms");
    CHECK_STR(str_duration(20, text), "20ms");
    CHECK_STR(str_duration(999, text), "999ms");
    CHECK_STR(str_duration(1000, text), "1s");
    CHECK_STR(str_duration(1500, text), "1.5s");
    CHECK_STR(str_duration(1050, text), "1.05s");
    CHECK_STR(str_duration(1005, text), "1.005s");
    CHECK_STR(str_duration(300000, text), "300s");
    CHECK_STR(str_duration(UINT64_MAX, text), "18446744073709551.615s");
}

TEST(a_printed_time_parses_to_the_same_time)
{
    char text[32];
    static const uint64_t times[] = { 0, 1, 999, 1000, 1001, 1500, 61050, 86400000 };

    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        CHECK_EQ(ms_of(str_duration(times[i], text)), times[i]);
}

static const char *escape(const char *text)
{
    static char out[200];

    return str_escape(text, strlen(text), out, sizeof(out));
}

TEST(ordinary_text_is_shown_as_it_is)
{
    CHECK_STR(escape(""), "");
    CHECK_STR(escape("hello, 'world' \"~\""), "hello, 'world' \"~\"");
    CHECK_STR(escape("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(what_a_terminal_would_obey_is_shown_as_bytes)
{
    CHECK_STR(escape("a\x1b[31m"), "a\\x1b[31m");
    CHECK_STR(escape("\r\n\t\x7f"), "\\x0d\\x0a\\x09\\x7f");
    CHECK_STR(escape("\xc2\x9b"
                     "2J"),
            "\\xc2\\x9b2J");                     /* the one-character form of ESC [ */
    CHECK_STR(escape("\xc2\x85"), "\\xc2\\x85"); /* next line */
    CHECK_STR(escape("a\xe2\x80\x8d\xd8\x9c"), "a\\xe2\\x80\\x8d\\xd8\\x9c"); /* invisible */
    CHECK_STR(escape("\xc2\xa0"), "\xc2\xa0");
    CHECK_STR(escape("a\\x1b"), "a\\x5cx1b"); /* text cannot pretend to be an escape */
}

TEST(what_breaks_or_reorders_a_line_is_shown_as_bytes)
{
    CHECK_STR(escape("\xe2\x80\xa8"), "\\xe2\\x80\\xa8"); /* line separator */
    CHECK_STR(escape("\xe2\x80\xa9"), "\\xe2\\x80\\xa9"); /* paragraph separator */
    CHECK_STR(escape("\xe2\x80\xae"), "\\xe2\\x80\\xae"); /* right-to-left override */
    CHECK_STR(escape("\xe2\x80\xaa"), "\\xe2\\x80\\xaa");
    CHECK_STR(escape("\xe2\x81\xa6"), "\\xe2\\x81\\xa6"); /* isolates */
    CHECK_STR(escape("\xe2\x81\xa9"), "\\xe2\\x81\\xa9");
    CHECK_STR(escape("\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\x9f\xe2\x81\xb0"),
            "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\x9f\xe2\x81\xb0"); /* their neighbours */
}

TEST(invalid_bytes_are_shown_as_bytes)
{
    CHECK_STR(escape("\xff\xc0\xaf"), "\\xff\\xc0\\xaf");
    CHECK_STR(escape("\xe2\x82"), "\\xe2\\x82");
}

TEST(zero_bytes_are_shown)
{
    char out[20];

    CHECK_STR(str_escape("a\0b", 3, out, sizeof(out)), "a\\x00b");
}

TEST(what_does_not_fit_is_cut_between_characters)
{
    char out[8];

    CHECK_STR(str_escape("12345678", 8, out, sizeof(out)), "1234567");
    CHECK_STR(str_escape("123456\xc3\xa9", 8, out, sizeof(out)), "123456");
    CHECK_STR(str_escape("12345\xc3\xa9", 7, out, sizeof(out)), "12345\xc3\xa9");
    CHECK_STR(str_escape("1234\x01", 5, out, sizeof(out)), "1234");
    CHECK_STR(str_escape("123\x01", 4, out, sizeof(out)), "123\\x01");
    CHECK_STR(str_escape("abc", 3, out, 1), "");
}

TEST(no_cut_ever_writes_past_the_end)
{
    static const char nasty[] = "a\x01\xc3\xa9\xff\xe2\x82\xac\\\xf0\x9f\x98\x80\xc2\x9b";

    for (size_t size = 1; size < 64; size++) {
        AUTO(free) char *out = malloc(size); /* exact: the sanitizer sees the next byte */
        CHECK(out);
        str_escape(nasty, sizeof(nasty), out, size);
        CHECK(strlen(out) < size);
    }
}

TEST(thousandths_are_written_without_empty_places)
{
    char text[32];

    CHECK_STR(str_milli(0, text), "0");
    CHECK_STR(str_milli(1, text), "0.001");
    CHECK_STR(str_milli(300, text), "0.3");
    CHECK_STR(str_milli(10000, text), "10");
    CHECK_STR(str_milli(1250, text), "1.25");
    CHECK_STR(str_milli(UINT64_MAX, text), "18446744073709551.615");
}
