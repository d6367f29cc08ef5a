#include "base/buf.h"
#include "core/request/request.h"
#include "harness.h"
#include <carrel/error.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

static struct carrel_error err;
static struct request *request; /* one per test, which is a process */

static int parse(const char *text)
{
    return request_parse(text, strlen(text), &request, &err);
}

TEST(options_come_back_as_they_were)
{
    static const char *const argv[] = { "sh", "-c", "echo \"\xc3\xa4\" | wc\n", "", NULL };
    static const char *const env[] = { "A=1", "BYTES=\xff\xfe", NULL };
    static const char *const labels[] = { "team=red", NULL };
    static const struct carrel_mount mounts[] = {
        { "/data", "/data", false },
        { "/out", "/workspace/out", true },
    };
    const struct carrel_workspace_options workspace = {
        .repo = "/src",
        .is_dirty = true,
        .history = CARREL_HISTORY_CUT,
        .on_success = CARREL_APPLY,
        .on_failure = CARREL_DISCARD,
    };
    struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;
    struct carrel_sandbox_options sandbox = CARREL_SANDBOX_OPTIONS_INIT;
    AUTO(buf_finish) struct buf text = BUF_INIT(REQUEST_MAX);

    run.argv = argv;
    run.env = env;
    run.mounts = mounts;
    run.n_mounts = 2;
    run.workspace = &workspace;
    run.network = CARREL_NETWORK_HOST;
    run.has_user = true;
    run.uid = UINT32_MAX - 1;
    run.memory_bytes = UINT64_MAX;
    run.rows = UINT16_MAX;
    run.store_code = CARREL_STORE_ALWAYS;
    sandbox.name = "desk";
    sandbox.labels = labels;
    sandbox.lease_ms = CARREL_NEVER;
    CHECK_EQ(request_write(&run, &sandbox, NULL, &text, &err), 0);
    CHECK_EQ(request_parse(text.data, text.len, &request, &err), 0);
    for (size_t i = 0; i < 5; i++)
        CHECK_STR(request->run.argv[i], argv[i]);
    CHECK_STR(request->run.env[1], "BYTES=\xff\xfe");
    CHECK(!request->run.env[2]);
    CHECK_EQ(request->run.n_mounts, 2);
    CHECK_STR(request->run.mounts[1].target, "/workspace/out");
    CHECK(request->run.mounts[1].is_writable && !request->run.mounts[0].is_writable);
    CHECK_STR(request->run.workspace->repo, "/src");
    CHECK(request->run.workspace->is_dirty && !request->run.workspace->is_folder);
    CHECK_EQ(request->run.workspace->history, CARREL_HISTORY_CUT);
    CHECK_EQ(request->run.workspace->on_success, CARREL_APPLY);
    CHECK_EQ(request->run.workspace->on_failure, CARREL_DISCARD);
    CHECK_EQ(request->run.network, CARREL_NETWORK_HOST);
    CHECK_EQ(request->run.uid, UINT32_MAX - 1);
    CHECK_EQ(request->run.memory_bytes, UINT64_MAX);
    CHECK_EQ(request->run.rows, UINT16_MAX);
    CHECK_EQ(request->run.store_code, CARREL_STORE_ALWAYS);
    CHECK_EQ(request->run.stdin_fd, -1);
    CHECK_STR(request->sandbox.name, "desk");
    CHECK_STR(request->sandbox.labels[0], "team=red");
    CHECK_EQ(request->sandbox.lease_ms, CARREL_NEVER);
    request_free(request);
}

TEST(what_has_its_default_is_left_out)
{
    const struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;
    AUTO(buf_finish) struct buf text = BUF_INIT(REQUEST_MAX);

    CHECK_EQ(request_write(&run, NULL, NULL, &text, &err), 0);
    CHECK_STR(text.data, "{\"version\":1,\"run\":{}}");
}

TEST(an_empty_list_is_not_a_missing_one)
{
    CHECK_EQ(parse("{\"version\":1,\"run\":{\"argv\":[]}}"), 0);
    CHECK(request->run.argv && !request->run.argv[0]);
    CHECK(!request->run.env && !request->run.workspace);
    request_free(request);
}

TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *text;
        int code;
        const char *message;
    } cases[] = {
        { "{\"version\":1,\"run\":{\"memroy_bytes\":1}}", -EINVAL,
                "request: run has an unknown member \"memroy_bytes\"" },
        { "{\"version\":1,\"run\":{\"pids\":1,\"pids\":2}}", -EINVAL,
                "request: run has a second member \"pids\"" },
        { "{\"version\":1,\"run\":{\"pids\":-1}}", -EINVAL,
                "request: run.pids: expected a whole number in its range" },
        { "{\"version\":1,\"run\":{\"rows\":65536}}", -EINVAL,
                "request: run.rows: expected a whole number in its range" },
        { "{\"version\":1,\"run\":{\"network\":\"all\"}}", -EINVAL,
                "request: run.network: expected one of default, none, host" },
        { "{\"version\":1,\"run\":{\"cwd\":\"/a\\u0000b\"}}", -EINVAL,
                "request: run.cwd: expected a text without NUL bytes" },
        { "{\"version\":1,\"run\":{\"cwd\":{\"base64\":\"AA==\"}}}", -EINVAL,
                "request: run.cwd: expected a text without NUL bytes" },
        { "{\"version\":1,\"run\":{\"cwd\":{\"base64\":\"?\"}}}", -EINVAL,
                "request: run.cwd: expected a text without NUL bytes" },
        { "{\"version\":1,\"run\":{\"argv\":\"sh\"}}", -EINVAL,
                "request: run.argv: expected a list" },
        { "{\"version\":1,\"run\":{\"mounts\":[{\"source\":\"/\"}]}}", -EINVAL,
                "request: run.mounts: expected source and target" },
        { "{\"version\":1,\"run\":{\"workspace\":{\"is_dirty\":1}}}", -EINVAL,
                "request: workspace.is_dirty: expected true or false" },
        { "{\"version\":1,\"run\":[]}", -EINVAL, "request: run: expected an object" },
        { "{\"version\":1,\"other\":{}}", -EINVAL,
                "request: expected version, run, sandbox and layers" },
        { "{\"version\":2,\"run\":{}}", -EPROTO,
                "request: version 2; this carrel has version 1" },
        { "{\"run\":{}}", -EINVAL, "request: expected an object with a version" },
        { "[]", -EINVAL, "request: expected an object with a version" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_EQ(parse(cases[i].text), cases[i].code);
        CHECK_STR(err.message, cases[i].message);
    }
    CHECK_EQ(parse("{\"version\":1,"), -EINVAL);
    CHECK(strncmp(err.message, "request: ", 9) == 0);
}

TEST(a_fork_has_layers)
{
    static const char *const locks[] = { "5", "6", NULL };
    const struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;
    static const char *const mounts[] = { "801:2a", NULL };
    const struct request_layers layers = { "L-1 L-2", "T-1/R-1", "L-3", mounts, locks };
    AUTO(buf_finish) struct buf text = BUF_INIT(REQUEST_MAX);

    CHECK_EQ(request_write(&run, NULL, &layers, &text, &err), 0);
    CHECK_EQ(request_parse(text.data, text.len, &request, &err), 0);
    CHECK_STR(request->layers.files, "L-1 L-2");
    CHECK_STR(request->layers.workspace, "T-1/R-1");
    CHECK_STR(request->layers.workspace_files, "L-3");
    CHECK_STR(request->layers.mounts[0], "801:2a");
    CHECK_STR(request->layers.locks[1], "6");
    request_free(request);
}

TEST(a_request_that_is_too_large_is_refused)
{
    AUTO(free) char *large = malloc(REQUEST_MAX + 1);
    const char *const argv[] = { large, NULL };
    struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;
    AUTO(buf_finish) struct buf text = BUF_INIT(2 * REQUEST_MAX);

    CHECK(large);
    memset(large, 'x', REQUEST_MAX);
    large[REQUEST_MAX] = '\0';
    run.argv = argv;
    CHECK_EQ(request_write(&run, NULL, NULL, &text, &err), -E2BIG);
    CHECK_EQ(request_parse(text.data, text.len, &request, &err), -E2BIG);
}
