/*
 * python.c - the verb: a Python program, from code to result.
 *
 * It is a run of an interpreter with a guest (run/guest.h): see python_guest.py for what it
 * gets and python_report.h for what it says.
 */
#include "base/err.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/named.h"
#include "base/options.h"
#include "core/python/interpreter.h"
#include "core/python/python_guest.h"
#include "core/python/python_report.h"
#include "core/python/python_rules.h"
#include "core/request/take.h"
#include "core/result/artifacts.h"
#include "core/result/result.h"
#include "core/run/run.h"
#include "policy/policy.h"
#include <carrel/python.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS_MAX (1U << 20)
#define DEFAULT_RESULT_BYTES (1U << 20)
#define RESULT_BYTES_MAX (256U << 20)

/* What code without a file is called. No angle brackets: Python shows no lines of such. */
#define NAMELESS "code.py"

struct python {
    const struct carrel_python_options *options;
    struct policy *policy;
    struct interpreter interpreter;
    const char **argv;
    const char *const *words; /* of argv, what is the caller's: name and arguments */
    uint64_t result_bytes;
    struct buf task;
    char task_bytes[24]; /* how many, for the guest */
};

static void python_finish(struct python python)
{
    policy_free(python.policy);
    interpreter_finish(python.interpreter);
    free(python.argv);
    buf_finish(python.task);
}
DEFINE_AUTO(struct python, python_finish)

int carrel_python_check_inputs(
        const char *text, size_t len, const char *name, struct carrel_error *err)
{
    struct json_value value;

    err = ERR_OR_IGNORED(err);
    int r = json_read_check(text, len, &value, err);
    if (r < 0)
        return err_wrap(err, r, "%s", name);
    if (json_read_kind(value) != JSON_OBJECT)
        return err_set(err, -EINVAL,
                "%s: expected a JSON object, such as {\"n\": 1}: its members become the "
                "dictionary `inputs`",
                name);
    return 0;
}

static int check_options(const struct carrel_python_options *o, struct carrel_error *err)
{
    if (!o->code)
        return err_set(err, -EINVAL, "no code to run");
    if (o->code_len > CARREL_PYTHON_CODE_MAX)
        return err_set(err, -EFBIG, "the code is larger than %u bytes", CARREL_PYTHON_CODE_MAX);
    if (o->result_bytes > RESULT_BYTES_MAX)
        return err_set(err, -EINVAL, "a result may have at most %u bytes", RESULT_BYTES_MAX);
    return o->inputs ? carrel_python_check_inputs(o->inputs, o->inputs_len, "inputs", err) : 0;
}

/* PYTHON -I -X utf8 -c GUEST BYTES NAME WORD ARG... */
static int build_argv(struct python *python, struct carrel_error *err)
{
    const struct carrel_python_options *o = python->options;
    size_t n = 0;

    while (o->args && o->args[n])
        n++;
    const char *const first[] = {
        python->interpreter.interpreter,
        "-I",
        "-X",
        "utf8",
        "-c",
        python_guest,
        python->task_bytes,
        o->name ? o->name : NAMELESS,
        o->name ? o->name : "-c",
    };
    python->argv = calloc(ARRAY_LEN(first) + n + 1, sizeof(*python->argv));
    if (!python->argv)
        return err_set_errno(err, -ENOMEM, "arguments");
    memcpy(python->argv, first, sizeof(first));
    python->words = python->argv + ARRAY_LEN(first) - 1;
    for (size_t i = 0; i < n; i++)
        python->argv[ARRAY_LEN(first) + i] = o->args[i];
    return 0;
}

/* One line of JSON, the code, the inputs. */
static int write_task(struct python *python, struct carrel_error *err)
{
    const struct carrel_python_options *o = python->options;
    struct json json = { .out = &python->task };

    json_object(&json, NULL);
    json_u64(&json, "code_bytes", o->code_len);
    json_u64(&json, "result_bytes", python->result_bytes);
    python_rules_write(o, python->policy, &json);
    json_end_object(&json);
    buf_add_str(&python->task, "\n");
    buf_add(&python->task, o->code, o->code_len);
    if (o->inputs)
        buf_add(&python->task, o->inputs, o->inputs_len);
    else
        buf_add_str(&python->task, "{}");
    (void)snprintf(python->task_bytes, sizeof(python->task_bytes), "%zu", python->task.len);
    return python->task.is_short ? err_set_errno(err, -ENOMEM, "the task of the interpreter")
                                 : 0;
}

/* What of the host was shown beside what the caller named: pyvenv.cfg or a link said so. */
static void note_installations(
        const struct interpreter *interpreter, struct carrel_run_result *result)
{
    const size_t n = interpreter->n_installations;

    for (size_t i = 0; i < n; i++) {
        const char *target = interpreter->mounts[interpreter->n_mounts - n + i].target;
        char path[PATH_MAX] = "";
        size_t used = strlen(result->note);
        (void)named_path(interpreter->fds[interpreter->n_fds - n + i], path, sizeof(path));
        (void)snprintf(result->note + used, sizeof(result->note) - used, "%s'%.100s'%s%.100s",
                i > 0  ? ", "
                : used ? "; mounted for Python: "
                       : "mounted for Python: ",
                target, strcmp(path, target) == 0 ? "" : " is ",
                strcmp(path, target) == 0 ? "" : path);
    }
}

static void read_report(void *context, const struct buf *findings, const struct buf *report,
        struct carrel_run_result *result)
{
    const struct python *python = context;
    const struct python_texts texts = {
        .findings = findings && findings->data ? findings->data : NULL,
        .findings_len = findings ? findings->len : 0,
        .report = report->is_short ? "?" : report->data, /* a guest writes less: unreadable */
        .report_len = report->is_short ? 1 : report->len,
        .is_warning = python_rules_mode(python->options, python->policy) == CARREL_IMPORTS_WARN,
    };

    python_report_apply(&texts, result);
    note_installations(&python->interpreter, result);
}

static int execute(const struct carrel_python_options *o, struct carrel_run_options run,
        struct carrel_run_result **out, struct carrel_error *err)
{
    AUTO(python_finish)
    struct python python = { .options = o, .task = BUF_INIT(SIZE_MAX / 4) };

    int r = run_load_policy(&run, &python.policy, err);
    if (r == 0)
        r = python_rules_check(o, python.policy, err);
    if (r == 0)
        r = interpreter_find(o, python.policy, &python.interpreter, err);
    if (r == 0)
        r = build_argv(&python, err);
    python.result_bytes = o->result_bytes ? o->result_bytes : DEFAULT_RESULT_BYTES;
    if (r == 0)
        r = write_task(&python, err);
    if (r < 0)
        return r;
    run.argv = python.argv;
    run.has_no_entrypoint = true;
    run.mounts = python.interpreter.mounts;
    run.n_mounts = python.interpreter.n_mounts;
    const struct run_guest guest = {
        .task = python.task.data,
        .task_len = python.task.len,
        .findings_max = FINDINGS_MAX,
        .report_max = python.result_bytes + PYTHON_REPORT_EXTRA,
        .read_report = read_report,
        .context = &python,
    };
    const struct artifact_code code = {
        .language = "python", .text = o->code, .len = o->code_len, .argv = python.words
    };
    const struct run_request request = {
        .options = &run, .policy = python.policy, .guest = &guest, .code = &code
    };
    return run_execute(&request, out, err);
}

int carrel_python(const struct carrel_python_options *options, struct carrel_run_result **out,
        struct carrel_error *err)
{
    struct carrel_python_options own = CARREL_PYTHON_OPTIONS_INIT;
    struct taken_run run;

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_PYTHON_OPTIONS_INIT, err);
    if (r == 0)
        r = take_run(&run, own.run, err);
    if (r == 0)
        r = check_options(&own, err);
    return r < 0 ? r : execute(&own, run.options, out, err);
}
