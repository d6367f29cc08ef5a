#include "base/utf8.h"
#include "core/result/result.h"
#include "core/result/text_form.h"
#include "harness.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct carrel_run_result *make(const char *out, const char *errors)
{
    struct carrel_run_result *r = calloc(1, sizeof(*r));

    CHECK(r);
    (void)strcpy(r->run, "R-test");
    r->has_status = true;
    r->duration_ms = 1500;
    r->guest = GUEST_ANSWER_INIT;
    r->stdout_text = r->stderr_text = BUF_INIT(64U << 20);
    buf_add_str(&r->stdout_text, out);
    buf_add_str(&r->stderr_text, errors);
    r->stdout_bytes = r->stdout_text.len;
    r->stderr_bytes = r->stderr_text.len;
    return r;
}

/* The text; it stays until the next call. The result is freed. */
static const char *text(struct carrel_run_result *r, uint64_t budget)
{
    static struct buf out;

    buf_finish(out);
    out = BUF_INIT(64U << 20);
    text_form_write(r, budget, &out);
    carrel_run_result_free(r);
    CHECK(!out.is_short);
    CHECK(out.len <= budget);
    return out.data ? out.data : "";
}

TEST(what_fits_is_whole)
{
    CHECK_STR(text(make("", ""), 1000), "status: ok (exit 0, 1.5s)\n");
    CHECK_STR(text(make("hello\n", ""), 1000), "status: ok (exit 0, 1.5s)\nstdout:\nhello\n");
    CHECK_STR(text(make("no end", "bad\n"), 1000),
            "status: ok (exit 0, 1.5s)\nstdout:\nno end\nstderr:\nbad\n");
}

TEST(the_status_line_says_how_it_ended)
{
    struct carrel_run_result *r = make("", "");
    r->wait_status = 3 << 8;
    (void)strcpy(r->message, "Execution failed: bad\x1b[2J");
    CHECK_STR(text(r, 1000), "status: failed (exit 3, 1.5s): Execution failed: bad\\x1b[2J\n");

    r = make("", "");
    r->reason = CARREL_TIMEOUT;
    r->wait_status = SIGKILL;
    (void)strcpy(r->message, "Code execution timed out after 1s");
    CHECK_STR(text(r, 1000), "status: timeout (1.5s): Code execution timed out after 1s\n");

    r = make("", "");
    r->run[0] = '\0';
    r->has_status = false;
    r->reason = CARREL_INFRASTRUCTURE;
    (void)strcpy(r->message, "no such thing");
    CHECK_STR(text(r, 1000), "status: infrastructure: no such thing\n");
}

TEST(a_result_comes_before_the_output)
{
    struct carrel_run_result *r = make("printed\n", "");
    buf_add_str(&r->guest.value, "{\"a\":1}");
    CHECK_STR(
            text(r, 1000), "status: ok (exit 0, 1.5s)\nresult: {\"a\":1}\nstdout:\nprinted\n");

    r = make("", "");
    buf_add_str(&r->guest.value, "null");
    CHECK_STR(text(r, 1000), "status: ok (exit 0, 1.5s)\n");

    r = make("", "");
    buf_add_str(&r->guest.value, "null");
    buf_add_str(&r->guest.value_error, "\"no JSON\"");
    CHECK_STR(text(r, 1000), "status: ok (exit 0, 1.5s)\nresult_error: \"no JSON\"\n");
}

TEST(a_terminal_obeys_nothing_in_it)
{
    CHECK_STR(text(make("a\tb\\n\r\nc\x1b]0;t\x07\xff\xe2\x80\xae\n", ""), 1000),
            "status: ok (exit 0, 1.5s)\nstdout:\n"
            "a\tb\\n\nc\\x1b]0;t\\x07\\xff\\xe2\\x80\\xae\n");
}

static struct carrel_run_result *make_long(size_t n_out, size_t n_err)
{
    struct carrel_run_result *r = make("", "");

    for (size_t i = 0; i < n_out; i++)
        buf_addf(&r->stdout_text, "out %zu\n", i);
    for (size_t i = 0; i < n_err; i++)
        buf_addf(&r->stderr_text, "err %zu\n", i);
    r->stdout_bytes = r->stdout_text.len;
    r->stderr_bytes = r->stderr_text.len;
    return r;
}

TEST(of_a_long_output_head_and_tail_are_kept_and_of_errors_the_tail)
{
    const char *shown = text(make_long(1000, 1000), 1000);

    CHECK(strstr(shown, "stdout:\nout 0\nout 1\n"));
    CHECK(strstr(shown, "\nout 999\nstderr:\n[... 7890 bytes in all; cut ...]\n"));
    CHECK(!strstr(shown, "err 0\n"));
    CHECK(strstr(shown, "\nerr 999\n"));
    CHECK(strlen(shown) > 950);
}

TEST(a_part_that_needs_little_leaves_its_share_to_the_others)
{
    const char *shown = text(make_long(1000, 0), 1000);
    CHECK(strlen(shown) > 980);
    CHECK(!strstr(shown, "stderr"));

    shown = text(make_long(2, 1000), 1000);
    CHECK(strstr(shown, "stdout:\nout 0\nout 1\nstderr:\n[..."));
    CHECK(strlen(shown) > 980);
}

TEST(what_was_cut_before_has_one_marker_still)
{
    struct carrel_run_result *r = make("", "");
    buf_add_str(&r->stdout_text, "the head\n[... marker ...]\nthe tail\n");
    r->stdout_cut = (struct capture_cut){ .is_cut = true, .at = 9, .len = 17 };
    r->stdout_bytes = 123456;
    CHECK_STR(text(r, 1000), "status: ok (exit 0, 1.5s)\nstdout:\nthe head\n"
                             "[... 123456 bytes in all; cut ...]\nthe tail\n");
}

TEST(a_file_with_the_whole_output_is_named_where_there_is_room)
{
    struct carrel_run_result *r = make_long(1000, 0);
    r->stdout_file = strdup("/state/runs/R-1/stdout");
    CHECK(strstr(text(r, 4000), "cut, see /state/runs/R-1/stdout ...]\n"));

    r = make_long(1000, 0);
    r->stdout_file = strdup("/state/runs/R-1/stdout");
    CHECK(!strstr(text(r, 500), "/state"));
}

/* A small generator: the same figures every time. */
static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

static void add_noise(struct buf *out, uint32_t *seed, size_t n)
{
    static const char *const bits[] = { "a", "line\n", "\xc3\xa9", "\xe2\x82\xac",
        "\xf0\x9f\x98\x80", "\x1b[31m", "\xff", "\r\n", "\\", "\xe2\x80\xae", "\n", "\\x4" };

    for (size_t i = 0; i < n; i++)
        buf_add_str(out, bits[next(seed) % (sizeof(bits) / sizeof(bits[0]))]);
}

static void check_text(const struct buf *out, uint64_t budget)
{
    const unsigned char *at = (const unsigned char *)out->data;

    CHECK(out->len <= budget);
    for (size_t i = 0; i < out->len;) {
        size_t n = utf8_valid(at + i, out->len - i);
        CHECK(n > 0);
        CHECK(at[i] == '\n' || at[i] == '\t' || !utf8_is_control(at + i, n));
        i += n;
    }
}

TEST(the_budget_always_holds)
{
    for (uint32_t round = 0; round < 4000; round++) {
        uint32_t seed = round;
        struct carrel_run_result *r = make("", "");
        struct buf out = BUF_INIT(64U << 20);

        add_noise(&r->stdout_text, &seed, next(&seed) % 400);
        add_noise(&r->stderr_text, &seed, next(&seed) % 400);
        if (next(&seed) % 2)
            add_noise(&r->guest.value, &seed, next(&seed) % 300);
        r->stdout_bytes = r->stdout_text.len;
        r->stderr_bytes = UINT64_MAX;
        if (next(&seed) % 2 && r->stdout_text.len > 0) {
            size_t at = next(&seed) % r->stdout_text.len;
            r->stdout_cut = (struct capture_cut){
                .is_cut = true, .at = at, .len = next(&seed) % (r->stdout_text.len - at)
            };
        }
        if (next(&seed) % 3 == 0)
            r->stdout_file = strdup("/a/file/of/some/length/stdout");
        if (next(&seed) % 2)
            (void)strcpy(r->message, "Execution failed: \xe2\x82\xac\xe2\x82\xac\x1b");
        uint64_t budget = next(&seed) % (next(&seed) % 2 ? 300 : 5000);
        text_form_write(r, budget, &out);
        check_text(&out, budget);
        buf_finish(out);
        carrel_run_result_free(r);
    }
}
