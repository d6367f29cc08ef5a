#include "base/err.h"
#include "base/json_read.h"
#include "harness.h"
#include <errno.h>
#include <stdio.h>

static struct json_value read_text(const char *text)
{
    struct carrel_error err = { 0 };
    struct json_value value = { 0 };

    if (json_read_check(text, strlen(text), &value, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    return value;
}

/* An exact copy on the heap: a read past the end is seen by the sanitizer. */
static int check(const char *text, size_t len, struct carrel_error *err)
{
    AUTO(free) char *copy = malloc(len + !len);
    struct json_value value = { 0 };

    CHECK(copy);
    memcpy(copy, text, len);
    int r = json_read_check(copy, len, &value, err);
    CHECK(r == 0 || !value.text);
    return r;
}

TEST(every_kind_of_value_is_known)
{
    CHECK_EQ(json_read_kind(read_text("null")), JSON_NULL);
    CHECK_EQ(json_read_kind(read_text(" true ")), JSON_BOOL);
    CHECK_EQ(json_read_kind(read_text("false")), JSON_BOOL);
    CHECK_EQ(json_read_kind(read_text("-1.5e+3")), JSON_NUMBER);
    CHECK_EQ(json_read_kind(read_text("\"\"")), JSON_STRING);
    CHECK_EQ(json_read_kind(read_text("[]")), JSON_ARRAY);
    CHECK_EQ(json_read_kind(read_text("\r\n\t{ }")), JSON_OBJECT);
    CHECK_EQ(json_read_kind((struct json_value){ 0 }), JSON_NULL);
}

TEST(a_value_is_a_slice_without_the_space_around_it)
{
    const char *text = "  [1, 2]\n";
    struct json_value value = read_text(text);

    CHECK(value.text == text + 2);
    CHECK_EQ(value.len, 6);
}

TEST(what_is_no_json_is_refused_with_its_place)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        { "", "line 1, column 1: expected a value" },
        { "  ", "line 1, column 3: expected a value" },
        { "nul", "line 1, column 1: expected a value" },
        { "NaN", "line 1, column 1: expected a value" },
        { "+1", "line 1, column 1: expected a value" },
        { "01", "line 1, column 2: expected nothing more" },
        { "1.", "line 1, column 3: expected a digit" },
        { ".5", "line 1, column 1: expected a value" },
        { "-", "line 1, column 2: expected a digit" },
        { "1e", "line 1, column 3: expected a digit" },
        { "1 2", "line 1, column 3: expected nothing more" },
        { "nullx", "line 1, column 5: expected nothing more" },
        { "[1,\n2,]", "line 2, column 3: expected a value" },
        { "[,1]", "line 1, column 2: expected a value" },
        { "[1", "line 1, column 3: expected ',' or ']'" },
        { "[1}", "line 1, column 3: expected ',' or ']'" },
        { "{\"a\":1]", "line 1, column 7: expected ',' or '}'" },
        { "{a:1}", "line 1, column 2: expected a string" },
        { "{\"a\" 1}", "line 1, column 6: expected ':'" },
        { "{\"a\":1,}", "line 1, column 8: expected a string" },
        { "{\"a\":}", "line 1, column 6: expected a value" },
        { "[1] // no", "line 1, column 5: expected nothing more" },
        { "'a'", "line 1, column 1: expected a value" },
        { "\"\xc3\xa9", "line 1, column 3: expected the end of the string" },
        { "\"\xc3\xa9\xc3\"", "line 1, column 3: expected valid UTF-8" },
        { "\"\xed\xa0\x80\"", "line 1, column 2: expected valid UTF-8" },
        { "\"a\nb\"", "line 1, column 3: expected a control character to be escaped" },
        { "\"\\x41\"", "line 1, column 2: expected a valid escape sequence" },
        { "\"\\u12g4\"", "line 1, column 2: expected a valid escape sequence" },
        { "\"\\ud800\"", "line 1, column 2: expected a valid escape sequence" },
        { "\"\\udc00\"", "line 1, column 2: expected a valid escape sequence" },
        { "\"\\ud800\\u0041\"", "line 1, column 2: expected a valid escape sequence" },
        { "\"\\", "line 1, column 2: expected a valid escape sequence" },
        { "\xef\xbb\xbf{}", "line 1, column 1: expected a value" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct carrel_error err = { 0 };
        CHECK_EQ(check(cases[i].text, strlen(cases[i].text), &err), -EINVAL);
        CHECK_STR(err.message, cases[i].message);
    }
}

TEST(a_zero_byte_is_no_space_and_no_end)
{
    struct carrel_error err = { 0 };

    CHECK_EQ(check("1\0", 2, &err), -EINVAL);
    CHECK_EQ(check("\0", 1, &err), -EINVAL);
    CHECK_EQ(check("\"a\0\"", 4, &err), -EINVAL);
    CHECK_EQ(check("\"\\\0\"", 4, &err), -EINVAL);
}

TEST(every_beginning_of_a_document_is_refused)
{
    static const char text[] = "{\"a\": [1, -2.5e3, \"\\u00e9\\ud83d\\ude00\xc3\xa9\"], "
                               "\"b\":{\"c\":[null,true,false,{}]}}";

    for (size_t len = 0; len < sizeof(text) - 1; len++)
        CHECK_EQ(check(text, len, NULL), -EINVAL);
    CHECK_EQ(check(text, sizeof(text) - 1, NULL), 0);
}

TEST(nesting_has_an_end)
{
    char text[2 * JSON_READ_DEPTH + 3];

    memset(text, '[', JSON_READ_DEPTH);
    memset(text + JSON_READ_DEPTH, ']', JSON_READ_DEPTH);
    CHECK_EQ(check(text, (size_t)2 * JSON_READ_DEPTH, NULL), 0);
    memset(text, '[', JSON_READ_DEPTH + 1);
    memset(text + JSON_READ_DEPTH + 1, ']', JSON_READ_DEPTH + 1);
    struct carrel_error err = { 0 };
    CHECK_EQ(check(text, (size_t)2 * JSON_READ_DEPTH + 2, &err), -EINVAL);
    CHECK_STR(err.message, "line 1, column 257: expected less nesting");
}

TEST(members_are_found_by_what_their_names_mean)
{
    struct json_value object =
            read_text("{\"a\":1,\"\\u0062\\\\\":{\"a\":2},\"\":3,\"a\":4,\"d\" : [ 5 ] }");
    uint64_t number = 0;

    CHECK_EQ(json_read_u64(json_read_member(object, "a"), &number), 0);
    CHECK_EQ(number, 1); /* the first counts */
    struct json_value inner = json_read_member(object, "b\\");
    CHECK_EQ(json_read_u64(json_read_member(inner, "a"), &number), 0);
    CHECK_EQ(number, 2);
    CHECK_EQ(json_read_u64(json_read_member(object, ""), &number), 0);
    CHECK_EQ(number, 3);
    CHECK_MEM(json_read_member(object, "d").text, 5, "[ 5 ]", 5);
    CHECK(!json_read_member(object, "c").text);
    CHECK(!json_read_member(object, "aa").text);
    CHECK(!json_read_member(json_read_member(object, "a"), "a").text);
    CHECK(!json_read_member(read_text("[\"a\",1]"), "a").text);
    CHECK(!json_read_member((struct json_value){ 0 }, "a").text);
}

TEST(the_parts_come_one_after_the_other)
{
    static const char *const expected[] = { "1", "[2,\"]\"]", "\"\\\"\"", "{}", "null", "-3" };
    struct json_value array = read_text("[1 , [2,\"]\"],\"\\\"\",{},null,-3 ]");
    struct json_value value;
    size_t n = 0;
    size_t at = 0;

    while (json_read_next(array, &at, NULL, &value)) {
        CHECK(n < ARRAY_LEN(expected));
        CHECK_MEM(value.text, value.len, expected[n], strlen(expected[n]));
        n++;
    }
    CHECK_EQ(n, ARRAY_LEN(expected));
    CHECK(!json_read_next(array, &at, NULL, &value)); /* and stays at its end */

    at = 0;
    CHECK(!json_read_next(read_text("[ ]"), &at, NULL, &value));
    at = 0;
    CHECK(!json_read_next(read_text("\"[1]\""), &at, NULL, &value));
    at = 0;
    CHECK(!json_read_next((struct json_value){ 0 }, &at, NULL, &value));
}

TEST(members_come_with_their_names)
{
    struct json_value object = read_text("{ \"a:\" : \"x\" ,\"b\":{\"c\":1}}");
    struct json_value key;
    struct json_value value;
    size_t at = 0;

    CHECK(json_read_next(object, &at, &key, &value));
    CHECK(json_read_equals(key, "a:"));
    CHECK(json_read_equals(value, "x"));
    CHECK(json_read_next(object, &at, &key, &value));
    CHECK(json_read_equals(key, "b"));
    CHECK_MEM(value.text, value.len, "{\"c\":1}", 7);
    CHECK(!json_read_next(object, &at, &key, &value));
}

TEST(strings_are_decoded)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(100);

    CHECK_EQ(json_read_string(read_text("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\xc3\xa9z\""), &out), 0);
    CHECK_STR(out.data, "a\"\\/\b\f\n\r\t\xc3\xa9z");
    buf_clear(&out);
    CHECK_EQ(
            json_read_string(read_text("\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\\u0000\""), &out),
            0);
    CHECK_MEM(out.data, out.len, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0", 11);
    CHECK_EQ(json_read_string(read_text("1"), &out), -EINVAL);
    CHECK_EQ(json_read_string((struct json_value){ 0 }, &out), -EINVAL);
}

TEST(a_string_equals_its_characters_only)
{
    CHECK(json_read_equals(read_text("\"\""), ""));
    CHECK(json_read_equals(read_text("\"a\\u0062\""), "ab"));
    CHECK(!json_read_equals(read_text("\"ab\""), "a"));
    CHECK(!json_read_equals(read_text("\"a\""), "ab"));
    CHECK(!json_read_equals(read_text("\"a\\u0000\""), "a"));
    CHECK(!json_read_equals(read_text("null"), "null"));
}

TEST(numbers_are_whole_and_fit_or_are_refused)
{
    uint64_t number = 7;

    CHECK_EQ(json_read_u64(read_text("18446744073709551615"), &number), 0);
    CHECK_EQ(number, UINT64_MAX);
    number = 7;
    CHECK_EQ(json_read_u64(read_text("18446744073709551616"), &number), -ERANGE);
    CHECK_EQ(json_read_u64(read_text("-1"), &number), -EINVAL);
    CHECK_EQ(json_read_u64(read_text("1.0"), &number), -EINVAL);
    CHECK_EQ(json_read_u64(read_text("1e3"), &number), -EINVAL);
    CHECK_EQ(json_read_u64(read_text("\"1\""), &number), -EINVAL);
    CHECK_EQ(json_read_u64((struct json_value){ 0 }, &number), -EINVAL);
    CHECK_EQ(number, 7);
}

TEST(only_true_and_false_are_truth_values)
{
    bool flag = false;

    CHECK_EQ(json_read_bool(read_text("true"), &flag), 0);
    CHECK(flag);
    CHECK_EQ(json_read_bool(read_text("false"), &flag), 0);
    CHECK(!flag);
    CHECK_EQ(json_read_bool(read_text("0"), &flag), -EINVAL);
    CHECK_EQ(json_read_bool(read_text("null"), &flag), -EINVAL);
    CHECK_EQ(json_read_bool((struct json_value){ 0 }, &flag), -EINVAL);
}
