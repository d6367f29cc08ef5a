#include "core/result/result.h"
#include "harness.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct carrel_run_result *make(int wait_status)
{
    struct carrel_run_result *r = calloc(1, sizeof(*r));

    CHECK(r);
    (void)strcpy(r->run, "R-test");
    r->has_status = true;
    r->wait_status = wait_status;
    r->usage = USAGE_INIT;
    r->limits[LIMIT_MEMORY] = 512U << 20;
    r->limits[LIMIT_PIDS] = 256;
    r->limits[LIMIT_DISK] = 1U << 30;
    r->timeout_ms = 1000;
    r->json = BUF_INIT(1 << 20);
    r->runtime = "local";
    return r;
}

static int exited(int code)
{
    return code << 8;
}

static void check(
        struct carrel_run_result *r, enum carrel_reason reason, int status, const char *message)
{
    result_set_reason(r);
    CHECK_EQ(r->reason, reason);
    CHECK_EQ(carrel_run_result_status(r), status);
    CHECK_STR(carrel_run_result_message(r), message);
    carrel_run_result_free(r);
}

TEST(an_exit_is_the_programs_own)
{
    check(make(exited(0)), CARREL_EXITED, 0, "");
    check(make(exited(7)), CARREL_EXITED, 7, "");
    check(make(exited(255)), CARREL_EXITED, 255, "");
}

TEST(a_signal_is_128_and_its_number)
{
    check(make(SIGSEGV), CARREL_SIGNALED, 139, "Ended by signal 11 (Segmentation fault)");
}

TEST(the_filter_kills_with_sigsys)
{
    check(make(SIGSYS), CARREL_DENIED, 128 + SIGSYS,
            "Ended by the system call filter: 32-bit and x32 system calls are refused");
}

TEST(a_timeout_is_124_however_the_program_died)
{
    struct carrel_run_result *r = make(SIGKILL);

    r->reason = CARREL_TIMEOUT;
    r->usage.oom_kills = 3;
    check(r, CARREL_TIMEOUT, 124, "Code execution timed out after 1s");
}

TEST(a_timeout_is_said_in_seconds_whatever_unit_it_was_given_in)
{
    static const struct {
        uint64_t ms;
        const char *message;
    } times[] = {
        { 300, "Code execution timed out after 0.3s" },
        { 1, "Code execution timed out after 0.001s" },
        { 1500, "Code execution timed out after 1.5s" },
        { 300000, "Code execution timed out after 300s" },
    };

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct carrel_run_result *r = make(SIGKILL);
        r->reason = CARREL_TIMEOUT;
        r->timeout_ms = times[i].ms;
        check(r, CARREL_TIMEOUT, 124, times[i].message);
    }
}

TEST(a_limit_is_the_reason_only_when_the_program_failed)
{
    struct carrel_run_result *r = make(exited(0));
    r->usage.oom_kills = 1;
    r->usage.pids_refused = 1;
    r->usage.is_disk_full = true;
    check(r, CARREL_EXITED, 0, "");

    r = make(SIGKILL);
    r->usage.oom_kills = 1;
    check(r, CARREL_MEMORY_LIMIT, 137,
            "Memory limit of 512M reached: the kernel ended 1 process (files in /tmp and the "
            "private workspace count as memory)");

    r = make(SIGKILL);
    (void)snprintf(r->sandbox, sizeof(r->sandbox), "S-1");
    r->usage.oom_kills = 1;
    check(r, CARREL_MEMORY_LIMIT, 137,
            "Memory limit of 512M reached: the kernel ended 1 process (files in /run and "
            "/dev/shm count as memory)");

    r = make(exited(2));
    r->usage.pids_refused = 5;
    check(r, CARREL_PIDS_LIMIT, 2, "Process limit of 256 reached: refused 5 times");

    r = make(exited(1));
    r->usage.is_disk_full = true;
    check(r, CARREL_DISK_LIMIT, 1, "Disk limit of 1G reached: no space left in the sandbox");
}

TEST(unknown_figures_are_no_reason)
{
    check(make(exited(1)), CARREL_EXITED, 1, ""); /* USAGE_UNKNOWN is not "many" */
}

TEST(a_sandbox_that_vanished_is_ours_unless_memory_explains_it)
{
    struct carrel_run_result *r = make(0);
    r->has_status = false;
    check(r, CARREL_INFRASTRUCTURE, 125, "The sandbox ended before the program did");

    r = make(0);
    r->has_status = false;
    r->usage.oom_kills = 2;
    check(r, CARREL_MEMORY_LIMIT, 137,
            "Memory limit of 512M reached: the kernel ended 2 processes (files in /tmp and the "
            "private workspace count as memory)");
}

TEST(what_is_unknown_is_null_in_json)
{
    struct carrel_run_result *r = make(SIGKILL);

    r->held_by[LIMIT_CPU] = HELD_BY_NOTHING;
    result_set_reason(r);
    CHECK_EQ(result_write_json(r), 0);
    const char *json = carrel_run_result_json(r);
    CHECK(strstr(json, "\"exit_code\":null,\"signal\":9"));
    CHECK(strstr(json, "\"cpu_ms\":null"));
    CHECK(strstr(json, "\"cpu\":null"));
    CHECK(strstr(json, "\"stdout\":\"\""));
    CHECK(strstr(json, "\"output_file\":null"));
    carrel_run_result_free(r);
}

TEST(a_limit_that_was_not_asked_for_is_null_and_not_missing)
{
    struct carrel_run_result *r = make(0);

    r->limits[LIMIT_IO_READ] = 1U << 20;
    r->held_by[LIMIT_IO_READ] = HELD_BY_CGROUP;
    result_note_limits(r);
    CHECK(!strstr(r->note, "io_"));
    CHECK_EQ(result_write_json(r), 0);
    CHECK(strstr(
            carrel_run_result_json(r), "\"io_read_bytes\":1048576,\"io_write_bytes\":null,"));
    CHECK(strstr(carrel_run_result_json(r), "\"io_read\":\"cgroup\"}"));
    carrel_run_result_free(r);
    r = make(0);
    r->limits[LIMIT_IO_WRITE] = 1U << 20;
    result_note_limits(r);
    CHECK(strstr(r->note, "io_write is not limited"));
    CHECK_EQ(result_write_json(r), 0);
    CHECK(strstr(carrel_run_result_json(r), "\"io_write_bytes\":null,"));
    CHECK(strstr(carrel_run_result_json(r), "\"io_write\":\"nothing\"}"));
    carrel_run_result_free(r);
}

TEST(a_failure_has_the_same_json_form)
{
    struct carrel_error err = { .code = -22, .message = "a \"quoted\" reason" };
    struct carrel_run_result *r = NULL;

    CHECK_EQ(carrel_run_result_from_error(&err, 0, &r, NULL), 0);
    CHECK(strstr(carrel_run_result_json(r), "\"reason\":\"infrastructure\""));
    CHECK(strstr(carrel_run_result_json(r), "\"message\":\"a \\\"quoted\\\" reason\""));
    CHECK(strstr(carrel_run_result_json(r), "\"runtime\":null,\"isolation\":null"));
    CHECK(strstr(carrel_run_result_json(r), "\"limits\":null,\"held_by\":null"));
    carrel_run_result_free(r);
}
