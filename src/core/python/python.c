/*
 * python.c - the verb: a Python program, from code to result.
 *
 * It is a run of an interpreter. The task is a file in the sandbox, and two texts come back
 * through descriptors that carrel keeps: see python_report.h and python_guest.py.
 */
#include "core/python/python.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/named.h"
#include "core/python/interpreter.h"
#include "core/python/python_guest.h"
#include "core/python/python_report.h"
#include "core/python/python_rules.h"
#include "core/result/artifacts.h"
#include "core/result/result.h"
#include "core/run/run.h"
#include "core/state/state.h"
#include "policy/policy.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FINDINGS_MAX (1U << 20)
#define DEFAULT_RESULT_BYTES (1U << 20)
#define SHORT_REPORT 8192
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
    int task;   /* the task of the guest, and later its findings */
    int report; /* what it says at the end */
    char task_path[PATH_MAX];
    char report_path[PATH_MAX];
};

static void python_finish(struct python python)
{
    policy_free(python.policy);
    interpreter_finish(python.interpreter);
    free(python.argv);
    fd_close(python.task);
    fd_close(python.report);
}
DEFINE_AUTO(struct python, python_finish)

int python_check_inputs(
        const char *text, size_t len, const char *name, struct carrel_error *err)
{
    struct json_value value;

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
    if (o->size != sizeof(*o))
        return err_set(err, -EINVAL,
                "struct carrel_python_options has a different size in this library; start from "
                "CARREL_PYTHON_OPTIONS_INIT");
    if (!o->code)
        return err_set(err, -EINVAL, "no code to run");
    if (o->code_len > PYTHON_CODE_MAX)
        return err_set(err, -EFBIG, "the code is larger than %u bytes", PYTHON_CODE_MAX);
    if (o->result_bytes > RESULT_BYTES_MAX)
        return err_set(err, -EINVAL, "a result may have at most %u bytes", RESULT_BYTES_MAX);
    if (o->run && o->run->size != sizeof(*o->run))
        return err_set(err, -EINVAL,
                "struct carrel_run_options has a different size in this library; start from "
                "CARREL_RUN_OPTIONS_INIT");
    return o->inputs ? python_check_inputs(o->inputs, o->inputs_len, "inputs", err) : 0;
}

/* PYTHON -I -X utf8 -c GUEST TASK REPORT NAME WORD ARG... */
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
        python->task_path, /* filled in when the sandbox is ready */
        python->report_path,
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

/* A file in the sandbox, under a name that nothing there has. */
static int make_file(
        struct sandbox *box, const char *what, char *path, struct carrel_error *err)
{
    char id[32];

    int r = state_new_id('P', id, err);
    if (r < 0)
        return r;
    int n = snprintf(path, PATH_MAX, "%s/.carrel-%s-%s", box->home, what, id);
    if (n < 0 || n >= PATH_MAX)
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", box->home);
    r = sandbox_open_file(box, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, err);
    return r < 0 ? err_wrap(err, r, "pass the code to the sandbox") : r;
}

static int prepare(void *context, struct sandbox *box, struct carrel_error *err)
{
    struct python *python = context;
    const struct carrel_python_options *o = python->options;
    AUTO(buf_finish) struct buf head = BUF_INIT(16U << 20);
    struct json json = { .out = &head };

    json_object(&json, NULL);
    json_u64(&json, "code_bytes", o->code_len);
    json_u64(&json, "result_bytes", python->result_bytes);
    python_rules_write(o, python->policy, &json);
    json_end_object(&json);
    buf_add_str(&head, "\n");
    if (head.is_short)
        return err_set_errno(err, -ENOMEM, "import rules");

    fd_close(fd_steal(&python->task)); /* of a runtime that could not do it */
    fd_close(fd_steal(&python->report));
    int r = python->task = make_file(box, "task", python->task_path, err);
    if (r >= 0)
        r = python->report = make_file(box, "report", python->report_path, err);
    if (r < 0)
        return r;
    r = fd_write_all(python->task, head.data, head.len);
    if (r == 0)
        r = fd_write_all(python->task, o->code, o->code_len);
    if (r == 0)
        r = o->inputs ? fd_write_all(python->task, o->inputs, o->inputs_len)
                      : fd_write_all(python->task, "{}", 2);
    if (r < 0)
        return err_set_errno(err, r, "pass the code to the sandbox");
    /* A program that fills the disk can still report; without the space it says less. */
    (void)fallocate(python->report, FALLOC_FL_KEEP_SIZE, 0, SHORT_REPORT);
    return 0;
}

/* Nothing runs any more, so nothing changes; but the size is still what the program made it. */
static bool read_text(int fd, size_t max, struct buf *out)
{
    struct stat st;
    char chunk[16384];
    off_t at = 0;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)max)
        return false;
    while (at < (off_t)max && (n = pread(fd, chunk, sizeof(chunk), at)) > 0) {
        buf_add(out, chunk, (size_t)n);
        at += n;
    }
    return !out->is_short;
}

/* The guest unlinks the task when its findings are in it; nothing can give it a name again. */
static bool has_findings(int task)
{
    struct stat st;

    return task >= 0 && fstat(task, &st) == 0 && st.st_nlink == 0;
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

static void read_report(void *context, struct carrel_run_result *result)
{
    const struct python *python = context;
    size_t report_max = python->result_bytes + PYTHON_REPORT_EXTRA;
    AUTO(buf_finish) struct buf findings = BUF_INIT(FINDINGS_MAX);
    AUTO(buf_finish) struct buf report = BUF_INIT(report_max);
    bool is_found =
            has_findings(python->task) && read_text(python->task, FINDINGS_MAX, &findings);
    bool is_read = read_text(python->report, report_max, &report);
    const struct python_texts texts = {
        .findings = is_found ? findings.data : NULL,
        .findings_len = findings.len,
        .report = is_read ? report.data : "?", /* more than a guest writes: not readable */
        .report_len = is_read ? report.len : 1,
        .is_warning = python_rules_mode(python->options, python->policy) == CARREL_IMPORTS_WARN,
    };

    python_report_apply(&texts, result);
    note_installations(&python->interpreter, result);
}

int carrel_python(const struct carrel_python_options *o, struct carrel_run_result **out,
        struct carrel_error *err)
{
    struct carrel_error ignored;
    struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;
    AUTO(python_finish) struct python python = { .options = o, .task = -1, .report = -1 };

    if (!err)
        err = &ignored;
    int r = check_options(o, err);
    if (r < 0)
        return r;
    if (o->run)
        run = *o->run;
    r = run_load_policy(&run, &python.policy, err);
    if (r == 0)
        r = python_rules_check(o, python.policy, err);
    if (r == 0)
        r = interpreter_find(o, python.policy, &python.interpreter, err);
    if (r == 0)
        r = build_argv(&python, err);
    if (r < 0)
        return r;
    python.result_bytes = o->result_bytes ? o->result_bytes : DEFAULT_RESULT_BYTES;
    run.argv = python.argv;
    run.has_no_entrypoint = true;
    run.mounts = python.interpreter.mounts;
    run.n_mounts = python.interpreter.n_mounts;
    const struct run_guest guest = {
        .prepare = prepare, .read_report = read_report, .context = &python
    };
    const struct artifact_code code = {
        .language = "python", .text = o->code, .len = o->code_len, .argv = python.words
    };
    const struct run_request request = {
        .options = &run, .policy = python.policy, .guest = &guest, .code = &code
    };
    return run_execute(&request, out, err);
}
