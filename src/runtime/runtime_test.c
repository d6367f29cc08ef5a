/* The front on its own; tests/contract tests the adapters behind it. */
#include "base/err.h"
#include "harness.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct carrel_error err;

TEST(limits_are_read_by_name_and_added_to_the_set)
{
    unsigned set = 0;

    CHECK_EQ(limit_parse_set("memory,pids", &set, &err), 0);
    CHECK_EQ(set, LIMIT_BIT(LIMIT_MEMORY) | LIMIT_BIT(LIMIT_PIDS));
    CHECK_EQ(limit_parse_set("files", &set, &err), 0);
    CHECK_EQ(set, LIMIT_BIT(LIMIT_MEMORY) | LIMIT_BIT(LIMIT_PIDS) | LIMIT_BIT(LIMIT_FILES));
    for (unsigned i = 0; i < LIMIT_COUNT; i++) {
        set = 0;
        CHECK_EQ(limit_parse_set(limit_name(i), &set, &err), 0);
        CHECK_EQ(set, LIMIT_BIT(i));
    }
}

TEST(an_unknown_limit_is_refused_with_the_known_ones)
{
    static const char *const wrong[] = { "", "memory,", ",memory", "memroy", "memory pids",
        "mem", "memoryx", "memory,memroy" };
    unsigned set = 4;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        CHECK_EQ(limit_parse_set(wrong[i], &set, &err), -EINVAL);
    CHECK_STR(err.message,
            "unknown limit 'memroy'; expected one of: memory pids cpu disk files "
            "io_read io_write");
    CHECK_EQ(set, 4);
}

TEST(names_of_isolation_and_holders)
{
    CHECK_STR(isolation_name(ISOLATION_NONE), "none");
    CHECK_STR(isolation_name(ISOLATION_KERNEL), "kernel");
    CHECK_STR(isolation_name(ISOLATION_VM), "vm");
    CHECK_STR(limit_holder_name(HELD_BY_NOTHING), "nothing");
    CHECK_STR(limit_holder_name(HELD_BY_RLIMIT), "rlimit");
    CHECK_STR(limit_holder_name(HELD_BY_FILESYSTEM), "filesystem");
    CHECK_STR(limit_holder_name(HELD_BY_CGROUP), "cgroup");
    CHECK_STR(limit_holder_name(HELD_BY_POLLING), "polling");
}

TEST(runtimes_are_found_by_name)
{
    struct runtime *rt = NULL;

    CHECK_EQ(runtime_find("local", &rt, &err), 0);
    CHECK_STR(runtime_name(rt), "local");
    CHECK_EQ(runtime_isolation(rt), ISOLATION_KERNEL);
    CHECK_EQ(runtime_find("process", &rt, &err), 0);
    CHECK_EQ(runtime_isolation(rt), ISOLATION_NONE);
    CHECK_EQ(runtime_find("doc\nker", &rt, &err), -EINVAL);
    CHECK_STR(err.message, "unknown runtime 'doc\\x0aker'; expected one of: local process");
}

/* A runtime that does as it is told, to test the front. */
struct puppet {
    struct sandbox base;
    struct runtime rt;
    int result;
    const char *message;
    int stops;
    int frees;
};

static struct puppet puppet;

static int answer(struct carrel_error *e)
{
    if (puppet.message)
        return err_set(e, puppet.result, "%s", puppet.message);
    return puppet.result;
}

static int puppet_create(struct runtime *rt, const struct sandbox_spec *spec,
        struct sandbox **out, struct carrel_error *e)
{
    (void)spec;
    puppet.base.ops = rt->ops;
    *out = &puppet.base;
    return answer(e);
}

static int puppet_start(struct sandbox *box, const struct process_spec *spec,
        struct process *out, struct carrel_error *e)
{
    (void)box;
    (void)spec;
    out->id = 5;
    return answer(e);
}

static int puppet_stop(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *e)
{
    (void)box;
    usage->cpu_ms = 7;
    puppet.stops++;
    return answer(e);
}

static int puppet_next_event(
        struct sandbox *box, struct sandbox_event *event, struct carrel_error *e)
{
    (void)box;
    (void)e;
    *event = (struct sandbox_event){ .kind = EVENT_GONE, .why = GONE_LOST };
    return 0;
}

static void puppet_free(struct sandbox *box)
{
    (void)box;
    puppet.frees++;
}

static const struct runtime_ops puppet_ops = {
    .name = "puppet",
    .create = puppet_create,
    .start = puppet_start,
    .next_event = puppet_next_event,
    .stop = puppet_stop,
    .free = puppet_free,
};

static const struct sandbox_spec plain = { .id = "x" };

static struct sandbox *make(void)
{
    struct sandbox *box = NULL;

    puppet.rt.ops = &puppet_ops;
    CHECK_EQ(sandbox_create(&puppet.rt, &plain, &box, &err), 0);
    return box;
}

TEST(an_error_carries_the_runtimes_name_whatever_stood_there_before)
{
    struct sandbox *box = make();
    const char *const argv[] = { "x", NULL };
    const char *const env[] = { NULL };
    const struct process_spec spec = { .argv = argv, .env = env };
    struct process process = PROCESS_INIT;

    (void)err_set(&err, -EIO, "an old story");
    puppet.result = -EPERM;
    CHECK_EQ(sandbox_start(box, &spec, &process, &err), -EPERM);
    CHECK_STR(err.message, "runtime puppet: Operation not permitted");
    CHECK_EQ(err.code, -EPERM);
    CHECK_EQ(process.id, 0); /* written on success only */
    puppet.message = "no luck";
    CHECK_EQ(sandbox_start(box, &spec, &process, &err), -EPERM);
    CHECK_STR(err.message, "runtime puppet: no luck");
    CHECK_EQ(sandbox_start(box, &spec, &process, NULL), -EPERM);
}

TEST(what_is_wrong_with_the_program_is_said_without_the_runtime)
{
    struct sandbox *box = make();
    const char *const argv[] = { "x", NULL };
    const char *const env[] = { NULL };
    const struct process_spec spec = { .argv = argv, .env = env };
    struct process process = PROCESS_INIT;

    puppet.result = -ENOENT;
    puppet.message = "'x': not found";
    CHECK_EQ(sandbox_start(box, &spec, &process, &err), -ENOENT);
    CHECK_STR(err.message, "'x': not found");
    puppet.message = NULL;
    CHECK_EQ(sandbox_start(box, &spec, &process, &err), -ENOENT);
    CHECK_STR(err.message, "runtime puppet: No such file or directory");
}

TEST(an_empty_slot_is_a_refusal_with_the_runtimes_name)
{
    struct sandbox *box = make();
    struct sandbox_usage usage;
    struct sandbox_process process;
    pid_t pid;

    CHECK_EQ(sandbox_ps(box, &process, 1, &err), -ENOTSUP);
    CHECK_STR(err.message, "runtime puppet: cannot list the processes of a sandbox");
    CHECK_EQ(sandbox_pids(box, &pid, 1, &err), -ENOTSUP);
    CHECK_STR(err.message,
            "runtime puppet: cannot number the processes of a sandbox on this host");
    CHECK_EQ(sandbox_pause(box, &err), -ENOTSUP);
    CHECK_STR(err.message, "runtime puppet: cannot pause a sandbox");
    CHECK_EQ(sandbox_resume(box, &err), -ENOTSUP);
    CHECK_EQ(sandbox_usage(box, &usage, &err), -ENOTSUP);
    CHECK_EQ(sandbox_open_file(box, "/file", O_RDONLY, 0, &err), -ENOTSUP);
}

TEST(a_sandbox_without_a_required_protection_is_taken_back)
{
    struct sandbox_spec spec = plain;
    struct sandbox *box = NULL;

    puppet.rt.ops = &puppet_ops;
    puppet.base.protections = PROTECT_BIT(PROTECT_USERNS);
    spec.require = PROTECT_BIT(PROTECT_USERNS) | PROTECT_BIT(PROTECT_SECCOMP) |
                   PROTECT_BIT(PROTECT_LANDLOCK);
    CHECK_EQ(sandbox_create(&puppet.rt, &spec, &box, &err), -ENOTSUP);
    CHECK_STR(
            err.message, "runtime puppet: required protections are missing: seccomp landlock");
    CHECK(!box);
    CHECK_EQ(puppet.stops, 1);
    CHECK_EQ(puppet.frees, 1);
}

TEST(a_sandbox_that_does_not_hold_a_demanded_limit_is_taken_back)
{
    struct sandbox_spec spec = plain;
    struct sandbox *box = NULL;

    puppet.rt.ops = &puppet_ops;
    puppet.base.held_by[LIMIT_FILES] = HELD_BY_RLIMIT;
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        spec.limits.value[i] = 1;
    spec.limits.demanded = LIMIT_BIT(LIMIT_COUNT) - 1;
    spec.limits.best_effort = LIMIT_BIT(LIMIT_CPU);
    CHECK_EQ(sandbox_create(&puppet.rt, &spec, &box, &err), -ENOTSUP);
    CHECK_STR(err.message,
            "runtime puppet: demanded limits cannot be enforced: memory pids disk "
            "io_read io_write");
    CHECK_EQ(puppet.frees, 1);
}

TEST(a_sandbox_that_isolates_less_than_its_runtime_is_taken_back)
{
    static const struct runtime_ops strong = {
        .name = "puppet",
        .isolation = ISOLATION_VM,
        .create = puppet_create,
        .stop = puppet_stop,
        .free = puppet_free,
    };
    struct sandbox_spec spec = plain;
    struct sandbox *box = NULL;

    puppet.rt.ops = &strong;
    puppet.base.isolation = ISOLATION_KERNEL;
    spec.isolation = ISOLATION_VM;
    CHECK_EQ(sandbox_create(&puppet.rt, &spec, &box, &err), -ENOTSUP);
    CHECK_STR(err.message,
            "runtime puppet: the sandbox has isolation kernel, less than the minimum vm");
    CHECK_EQ(puppet.frees, 1);
    puppet.base = (struct sandbox){ .isolation = ISOLATION_KERNEL };
    spec.isolation = ISOLATION_KERNEL;
    CHECK_EQ(sandbox_create(&puppet.rt, &spec, &box, &err), 0);
}

static int puppet_ready(
        struct sandbox *box, uint64_t deadline_ns, int cancel_fd, struct carrel_error *e)
{
    (void)box;
    return err_set(e, puppet.result, "until %ju or %d", (uintmax_t)deadline_ns, cancel_fd);
}

TEST(a_wait_for_readiness_passes_deadline_and_cancel_on)
{
    static const struct runtime_ops slow = {
        .name = "puppet",
        .create = puppet_create,
        .ready = puppet_ready,
        .stop = puppet_stop,
        .free = puppet_free,
    };
    struct sandbox *box = NULL;

    puppet.rt.ops = &slow;
    CHECK_EQ(sandbox_begin(&puppet.rt, &plain, &box, &err), 0);
    puppet.result = -ECANCELED;
    CHECK_EQ(sandbox_ready(box, 17, 4, &err), -ECANCELED);
    CHECK_STR(err.message, "runtime puppet: until 17 or 4");
    puppet.result = 0;
    CHECK_EQ(sandbox_ready(box, 17, 4, &err), 0);
}

TEST(settings_are_those_that_the_runtime_lists)
{
    static const char *const keys[] = { "engine", "class", NULL };
    static const struct runtime_ops with_keys = {
        .name = "puppet",
        .can = CAN_IMAGE,
        .settings = keys,
        .create = puppet_create,
        .stop = puppet_stop,
        .free = puppet_free,
    };
    const char *const known[] = { "class=", "engine=unix:///run/x=y", NULL };
    const char *const unknown[] = { "engine=a", "engines=b", NULL };
    struct sandbox_spec spec = plain;
    struct sandbox *box = NULL;

    puppet.rt.ops = &with_keys;
    spec.image = "image";
    spec.settings = known;
    CHECK_EQ(sandbox_create(&puppet.rt, &spec, &box, &err), 0);
    spec.settings = unknown;
    CHECK_EQ(sandbox_create(&puppet.rt, &spec, &box, &err), -EINVAL);
    CHECK_STR(err.message,
            "runtime puppet: unknown setting 'engines'; expected one of: engine class");
}

TEST(what_a_caller_gets_wrong_does_not_reach_the_runtime)
{
    static const char *const ids[] = { NULL, "", ".", "..", "a/b" };
    const struct sandbox_mount relative = {
        .source = "source", .target = "/target", .access = ACCESS_READ_ONLY
    };
    struct sandbox_spec spec = plain;
    struct sandbox *box = NULL;

    puppet.rt.ops = &puppet_ops;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        spec.id = ids[i];
        CHECK_EQ(sandbox_create(&puppet.rt, &spec, &box, &err), -EINVAL);
    }
    spec = plain;
    spec.mounts = &relative;
    spec.n_mounts = 1;
    CHECK_EQ(sandbox_create(&puppet.rt, &spec, &box, &err), -EINVAL);
    CHECK_STR(err.message, "runtime puppet: mount: 'source' is not an absolute path");
    spec = plain;
    spec.root = "root";
    CHECK_EQ(sandbox_create(&puppet.rt, &spec, &box, &err), -EINVAL);
    CHECK(!puppet.base.ops);
}

TEST(an_environment_must_consist_of_names_with_values)
{
    static const char *const wrong[] = { "NAME", "=value", "" };
    struct sandbox *box = make();
    const char *const argv[] = { "x", NULL };
    struct process process = PROCESS_INIT;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *const env[] = { "A=", wrong[i], NULL };
        const struct process_spec spec = { .argv = argv, .env = env };
        CHECK_EQ(sandbox_start(box, &spec, &process, &err), -EINVAL);
    }
}

TEST(stop_asks_the_runtime_once_and_free_does_not_ask_again)
{
    struct sandbox *box = make();
    struct sandbox_usage usage;

    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    CHECK_EQ(usage.cpu_ms, 7);
    CHECK_EQ(usage.peak_pids, USAGE_UNKNOWN);
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    CHECK_EQ(usage.cpu_ms, USAGE_UNKNOWN);
    sandbox_free(box);
    CHECK_EQ(puppet.stops, 1);
    CHECK_EQ(puppet.frees, 1);
    sandbox_free(NULL);
}

TEST(a_stop_that_failed_can_be_tried_again_and_free_frees_all_the_same)
{
    struct sandbox *box = make();
    struct sandbox_usage usage = { .cpu_ms = 1 };

    puppet.result = -ETIMEDOUT;
    CHECK_EQ(sandbox_stop(box, &usage, &err), -ETIMEDOUT);
    CHECK_EQ(usage.cpu_ms, 1);
    CHECK(!box->is_stopped);
    sandbox_free(box);
    CHECK_EQ(puppet.stops, 2);
    CHECK_EQ(puppet.frees, 1);
}

TEST(a_lost_sandbox_is_stopped_whatever_the_runtime_says)
{
    struct sandbox *box = make();
    struct sandbox_usage usage;
    struct sandbox_event event;

    puppet.result = -ENOTCONN;
    puppet.message = "no way there";
    CHECK_EQ(sandbox_stop(box, &usage, &err), -ENOTCONN);
    CHECK_EQ(sandbox_next_event(box, &event, &err), 0);
    CHECK_EQ(event.why, GONE_LOST);
    CHECK_EQ(sandbox_end(box, &usage, &err), 0);
    CHECK_EQ(usage.cpu_ms, USAGE_UNKNOWN);
    CHECK_STR(err.message, "");
    CHECK(box->is_stopped);
    sandbox_free(box);
    CHECK_EQ(puppet.stops, 2);
    CHECK_EQ(puppet.frees, 1);
}
