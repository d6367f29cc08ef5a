#include "core/python/python_report.h"
#include "core/result/result.h"
#include "harness.h"
#include <carrel/python.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define RUNS "{\"python\":\"3.11.2\",\"imports\":[\"os\"],\"blocked\":[],\"runs\":true}"

static struct carrel_run_result *make(int wait_status, const char *errors)
{
    struct carrel_run_result *r = calloc(1, sizeof(*r));

    CHECK(r);
    r->has_status = true;
    r->wait_status = wait_status;
    r->reason = WIFEXITED(wait_status) ? CARREL_EXITED : CARREL_SIGNALED;
    r->guest = GUEST_ANSWER_INIT;
    r->json = BUF_INIT(1 << 20);
    r->stderr_text = BUF_INIT(1 << 20);
    buf_add_str(&r->stderr_text, errors);
    return r;
}

static int exited(int code)
{
    return code << 8;
}

static struct carrel_run_result *apply(
        int wait_status, const char *errors, const char *findings, const char *report)
{
    struct carrel_run_result *r = make(wait_status, errors);
    const struct python_texts texts = {
        .findings = findings,
        .findings_len = findings ? strlen(findings) : 0,
        .report = report,
        .report_len = strlen(report),
        .is_warning = true,
    };

    python_report_apply(&texts, r);
    return r;
}

static const char *text_of(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

TEST(a_result_comes_back_as_it_is_written)
{
    struct carrel_run_result *r = apply(exited(0), "", RUNS,
            "{\"result\":{\"a\":[1,2.50,\"x\"]},\"result_error\":null,\"error\":null}");

    CHECK_STR(text_of(&r->guest.value), "{\"a\":[1,2.50,\"x\"]}");
    CHECK_STR(text_of(&r->guest.value_error), "");
    CHECK_STR(text_of(&r->guest.error), "");
    CHECK_STR(text_of(&r->guest.meta),
            "{\"python\":\"3.11.2\",\"imports\":[\"os\"],\"blocked_imports\":[]}");
    CHECK_EQ(r->reason, CARREL_EXITED);
    CHECK_STR(r->message, "");
    carrel_run_result_free(r);
}

TEST(a_result_stays_on_one_line_and_harmless_on_a_terminal)
{
    struct carrel_run_result *r = apply(exited(0), "", RUNS,
            "{\"result\":\n\t[ 1,\r\n \"\xe2\x80\xae \xc2\x9b \x7f \xc3\xa9\"]}");

    CHECK_STR(text_of(&r->guest.value), "[ 1, \"\\u202e \\u009b \\u007f \xc3\xa9\"]");
    carrel_run_result_free(r);
}

TEST(what_is_no_json_is_no_result)
{
    struct carrel_run_result *r = apply(exited(0), "", RUNS, "{\"result\":[1,}");

    CHECK_STR(text_of(&r->guest.value), "");
    CHECK(strstr(
            text_of(&r->guest.value_error), "\"the result cannot be read: line 1, column"));
    CHECK_STR(carrel_run_result_message(r), "");
    carrel_run_result_free(r);
}

TEST(a_program_that_ended_the_interpreter_left_no_result)
{
    struct carrel_run_result *r = apply(exited(0), "", RUNS, "");
    CHECK(strstr(text_of(&r->guest.value_error), "the program ended the interpreter"));
    carrel_run_result_free(r);

    r = apply(SIGSEGV, "", RUNS, ""); /* the signal says it all */
    CHECK_STR(text_of(&r->guest.value_error), "");
    CHECK_EQ(r->reason, CARREL_SIGNALED);
    carrel_run_result_free(r);
}

TEST(an_error_has_four_members_of_the_right_kind)
{
    struct carrel_run_result *r = apply(exited(1), "Traceback\nKeyError: 'a'\n\n", RUNS,
            "{\"result\":null,\"error\":{\"type\":\"KeyError\",\"message\":\"'a'\",\"line\":7,"
            "\"traceback\":5,\"more\":{}}}");

    CHECK_STR(text_of(&r->guest.error),
            "{\"type\":\"KeyError\",\"message\":\"'a'\",\"traceback\":null,\"line\":7}");
    CHECK_STR(r->message, "Execution failed: KeyError: 'a'");
    CHECK_EQ(r->reason, CARREL_EXITED);
    carrel_run_result_free(r);

    r = apply(exited(1), "", RUNS, "{\"error\":{\"type\":\"KeyError\",\"message\":\"'a'\"}}");
    CHECK_STR(r->message, "Execution failed: KeyError: 'a'"); /* as on a terminal */
    carrel_run_result_free(r);

    r = apply(exited(1), "", RUNS, "{\"result\":null,\"error\":[\"KeyError\"]}");
    CHECK_STR(text_of(&r->guest.error), "");
    CHECK_STR(r->message, "Execution failed: exit status 1");
    carrel_run_result_free(r);
}

TEST(the_last_line_is_the_last_that_is_not_empty)
{
    struct carrel_run_result *r = apply(exited(3), "one\n  two  \r\n\t\n \n", RUNS, "{}");
    CHECK_STR(r->message, "Execution failed: two");
    carrel_run_result_free(r);

    r = apply(exited(3), " \n\n", RUNS, "{}");
    CHECK_STR(r->message, "Execution failed: exit status 3");
    carrel_run_result_free(r);

    r = apply(exited(0), "only words\n", RUNS, "{}");
    CHECK_STR(r->message, "");
    carrel_run_result_free(r);
}

TEST(a_long_last_line_is_cut_between_characters)
{
    char line[1200];
    for (size_t i = 0; i + 3 < sizeof(line); i += 3)
        memcpy(line + i, "\xe2\x82\xac", 4);

    struct carrel_run_result *r = apply(exited(1), line, RUNS, "{}");
    size_t len = strlen(r->message);
    CHECK(len > 500 && len < sizeof(r->message));
    CHECK_EQ((len - strlen("Execution failed: ")) % 3, 0);
    carrel_run_result_free(r);
}

TEST(a_syntax_error_has_line_and_column)
{
    struct carrel_run_result *r = apply(exited(1), "SyntaxError: x\n",
            "{\"python\":\"3.9.1\",\"runs\":false,\"syntax\":{\"message\":\"invalid syntax\","
            "\"line\":3,\"column\":9},\"error\":{\"type\":\"SyntaxError\",\"line\":3}}",
            "");

    CHECK_EQ(r->reason, CARREL_SYNTAX_ERROR);
    CHECK_EQ(carrel_run_result_status(r), 1);
    CHECK_STR(r->message, "Python syntax error: invalid syntax (line 3, column 9)");
    CHECK_STR(text_of(&r->guest.error),
            "{\"type\":\"SyntaxError\",\"message\":null,\"traceback\":null,\"line\":3}");
    CHECK_STR(text_of(&r->guest.value_error), "");
    carrel_run_result_free(r);

    r = apply(exited(1), "", "{\"runs\":false,\"syntax\":{\"message\":\"too deep\"}}", "");
    CHECK_STR(r->message, "Python syntax error: too deep");
    carrel_run_result_free(r);
}

TEST(the_first_blocked_import_is_named)
{
    struct carrel_run_result *r = apply(exited(126), "",
            "{\"runs\":false,\"imports\":[\"a\",\"os.path\"],\"blocked\":[\"os.path\",\"pty\"]"
            "}",
            "");

    CHECK_EQ(r->reason, CARREL_BLOCKED_IMPORT);
    CHECK_EQ(carrel_run_result_status(r), 126);
    CHECK_STR(r->message, "Security policy blocked import: os.path");
    CHECK_STR(text_of(&r->guest.meta), "{\"python\":null,\"imports\":[\"a\",\"os.path\"],"
                                       "\"blocked_imports\":[\"os.path\",\"pty\"]}");
    CHECK_STR(r->note, "");
    carrel_run_result_free(r);
}

TEST(a_report_cannot_say_that_nothing_ran)
{
    struct carrel_run_result *r = apply(exited(0), "", RUNS,
            "{\"runs\":false,\"syntax\":{\"message\":\"x\"},\"blocked\":[\"os\"]}");

    CHECK_EQ(r->reason, CARREL_EXITED);
    CHECK_STR(r->message, "");
    carrel_run_result_free(r);
}

TEST(what_would_have_been_blocked_is_a_note)
{
    struct carrel_run_result *r =
            apply(exited(0), "", "{\"runs\":true,\"blocked\":[\"os\",\"socket\"]}", "{}");

    CHECK_STR(r->note, "the import rules would block: os, socket");
    carrel_run_result_free(r);
}

TEST(an_interpreter_that_never_came_to_the_program_is_our_failure)
{
    struct carrel_run_result *r = apply(exited(0), "", NULL, "");
    CHECK_EQ(r->reason, CARREL_INFRASTRUCTURE);
    CHECK_EQ(carrel_run_result_status(r), 125);
    CHECK(strstr(r->message, "ended before the program began"));
    carrel_run_result_free(r);

    r = apply(exited(1), "no module named encodings\n", "[1]", "");
    CHECK_EQ(r->reason, CARREL_INFRASTRUCTURE);
    CHECK(strstr(r->message, "no module named encodings"));
    carrel_run_result_free(r);
}

TEST(an_end_that_was_not_the_programs_keeps_its_reason)
{
    struct carrel_run_result *r = make(SIGKILL, "half a line");
    const struct python_texts texts = { .findings = RUNS,
        .findings_len = strlen(RUNS),
        .report = "{\"result\":5}",
        .report_len = 12 };

    r->reason = CARREL_TIMEOUT;
    (void)strcpy(r->message, "Code execution timed out after 1s");
    python_report_apply(&texts, r);
    CHECK_EQ(r->reason, CARREL_TIMEOUT);
    CHECK_STR(r->message, "Code execution timed out after 1s");
    CHECK_STR(carrel_run_result_value(r), "5");
    carrel_run_result_free(r);
}
