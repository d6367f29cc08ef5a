#include "base/json.h"
#include "harness.h"

TEST(an_object_with_every_kind_of_value)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct json json = { .out = &out };

    json_object(&json, NULL);
    json_str(&json, "text", "a");
    json_null(&json, "nothing");
    json_bool(&json, "yes", true);
    json_bool(&json, "no", false);
    json_u64(&json, "most", UINT64_MAX);
    json_i64(&json, "least", INT64_MIN);
    json_milli(&json, "cpu", 1500);
    json_end_object(&json);
    CHECK_STR(out.data,
            "{\"text\":\"a\",\"nothing\":null,\"yes\":true,\"no\":false,"
            "\"most\":18446744073709551615,\"least\":-9223372036854775808,\"cpu\":1.5}");
}

TEST(commas_stand_between_values_only)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct json json = { .out = &out };

    json_object(&json, NULL);
    json_object(&json, "empty");
    json_end_object(&json);
    json_array(&json, "list");
    json_end_array(&json);
    json_array(&json, "deep");
    json_u64(&json, NULL, 1);
    json_array(&json, NULL);
    json_end_array(&json);
    json_object(&json, NULL);
    json_u64(&json, "a", 2);
    json_end_object(&json);
    json_u64(&json, NULL, 3);
    json_end_array(&json);
    json_u64(&json, "last", 4);
    json_end_object(&json);
    CHECK_STR(out.data, "{\"empty\":{},\"list\":[],\"deep\":[1,[],{\"a\":2},3],\"last\":4}");
}

static void check_text(const char *text, size_t len, const char *expected)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct json json = { .out = &out };

    json_bytes(&json, NULL, text, len);
    CHECK_STR(out.data, expected);
}

TEST(quotes_and_backslashes_are_escaped)
{
    check_text("\"\\/", 3, "\"\\\"\\\\/\"");
}

TEST(control_characters_are_escaped)
{
    check_text("\n\t\r\b\f", 5, "\"\\n\\t\\u000d\\u0008\\u000c\"");
    check_text("\0\x1f\x1b\x7f", 4, "\"\\u0000\\u001f\\u001b\\u007f\"");
}

TEST(what_a_terminal_obeys_is_escaped_in_every_encoding)
{
    check_text("\xc2\x9b"
               "31m",
            5, "\"\\u009b31m\"");
    check_text("\xc2\x80\xc2\x9f\xc2\xa0", 6, "\"\\u0080\\u009f\xc2\xa0\"");
    check_text("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae\xe2\x81\xa6", 12,
            "\"\\u2028\\u2029\\u202e\\u2066\"");
    check_text("\xe2\x80\xa7\xe2\x80\xaf", 6, "\"\xe2\x80\xa7\xe2\x80\xaf\"");
}

TEST(what_nobody_sees_is_escaped)
{
    check_text("a\xe2\x80\x8b\xef\xbb\xbf", 7, "\"a\\u200b\\ufeff\"");
    check_text("\xf3\xa0\x81\xa1\xf0\x9f\x98\x80", 8, "\"\\udb40\\udc61\xf0\x9f\x98\x80\"");
}

TEST(json_that_is_there_already_stays_as_it_is)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct json json = { .out = &out };

    json_object(&json, NULL);
    json_raw(&json, "a", "{\"b\": [1]}", 10);
    json_raw(&json, "c", "2xx", 1);
    json_end_object(&json);
    CHECK_STR(out.data, "{\"a\":{\"b\": [1]},\"c\":2}");
}

TEST(every_byte_below_a_space_leaves_escaped)
{
    for (int c = 0; c < 0x20; c++) {
        AUTO(buf_finish) struct buf out = BUF_INIT(100);
        struct json json = { .out = &out };
        const char byte = (char)c;

        json_bytes(&json, NULL, &byte, 1);
        CHECK_EQ(out.data[1], '\\');
        for (size_t i = 0; i < out.len; i++)
            CHECK(out.data[i] >= 0x20);
    }
}

TEST(valid_characters_pass_as_they_are)
{
    check_text("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
            "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

TEST(each_invalid_byte_becomes_a_replacement_character)
{
    check_text("\xff", 1, "\"\xef\xbf\xbd\"");
    check_text("a\xc0\xaf"
               "b",
            4,
            "\"a\xef\xbf\xbd\xef\xbf\xbd"
            "b\"");
    check_text("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    check_text("\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(no_text_is_null_and_empty_text_is_empty)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct json json = { .out = &out };

    json_array(&json, NULL);
    json_str(&json, NULL, NULL);
    json_str(&json, NULL, "");
    json_bytes(&json, NULL, NULL, 5);
    json_bytes(&json, NULL, "abc", 0);
    json_end_array(&json);
    CHECK_STR(out.data, "[null,\"\",null,\"\"]");
}

TEST(keys_are_escaped_like_any_text)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct json json = { .out = &out };

    json_object(&json, NULL);
    json_u64(&json, "a\"b\n", 1);
    json_end_object(&json);
    CHECK_STR(out.data, "{\"a\\\"b\\n\":1}");
}

TEST(thousandths_are_decimals_without_needless_zeros)
{
    static const struct {
        uint64_t milli;
        const char *text;
    } cases[] = {
        { 0, "0.0" },
        { 1, "0.001" },
        { 10, "0.01" },
        { 100, "0.1" },
        { 120, "0.12" },
        { 123, "0.123" },
        { 1000, "1.0" },
        { 1050, "1.05" },
        { 16000, "16.0" },
        { UINT64_MAX, "18446744073709551.615" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_finish) struct buf out = BUF_INIT(100);
        struct json json = { .out = &out };
        json_milli(&json, NULL, cases[i].milli);
        CHECK_STR(out.data, cases[i].text);
    }
}

TEST(an_object_that_does_not_fit_is_marked_short)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(10);
    struct json json = { .out = &out };

    json_object(&json, NULL);
    json_str(&json, "key", "a value that is too long");
    json_end_object(&json);
    CHECK(out.is_short);
    CHECK(out.len <= 10);
}

TEST(the_same_value_gives_the_same_bytes)
{
    AUTO(buf_finish) struct buf first = BUF_INIT(1000);
    AUTO(buf_finish) struct buf second = BUF_INIT(1000);

    for (int i = 0; i < 2; i++) {
        struct buf *out = i ? &second : &first;
        struct json json = { .out = out };
        json_object(&json, NULL);
        json_str(&json, "s", "x\x80y");
        json_milli(&json, "m", 250);
        json_end_object(&json);
    }
    CHECK_MEM(first.data, first.len, second.data, second.len);
}
