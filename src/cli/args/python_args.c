/* python_args.c - a table in front of that of `carrel run`, and the files that it names. */
#include "cli/args/python_args.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

static struct python_args *args_of(void *target)
{
    return target;
}

static int take_code(void *t, const char *v, struct carrel_error *err)
{
    if (args_of(t)->code)
        return err_set(err, -EINVAL, "given twice");
    args_of(t)->code = v;
    return 0;
}

static int take_inputs(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected a file that holds a JSON object");
    args_of(t)->inputs = v;
    return 0;
}

static int take_python(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected an interpreter, such as /usr/bin/python3");
    args_of(t)->options.python = v;
    return 0;
}

static int take_venv(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected the directory of a virtual environment");
    args_of(t)->options.venv = v;
    return 0;
}

static int take_imports(void *t, const char *v, struct carrel_error *err)
{
    static const struct {
        const char *name;
        enum carrel_imports mode;
    } modes[] = { { "off", CARREL_IMPORTS_OFF }, { "warn", CARREL_IMPORTS_WARN },
        { "block", CARREL_IMPORTS_BLOCK } };
    char shown[64];

    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (strcmp(v, modes[i].name) == 0) {
            args_of(t)->options.imports = modes[i].mode;
            return 0;
        }
    }
    return err_set(err, -EINVAL, "'%s' is not a mode; expected off, warn or block",
            str_escape(v, strlen(v), shown, sizeof(shown)));
}

static bool is_module(const char *name)
{
    size_t len = strlen(name);

    /* Names may have letters of any script, so these are the characters they may not have. */
    return len > 0 && len <= 200 && name[0] != '.' && name[len - 1] != '.' &&
           !strstr(name, "..") &&
           strcspn(name, " \t\r\n\\/'\"()[]{}=:;*+-<>!?@#$%^&|~`") == len;
}

static int add_module(char **list[static 1], size_t *n, const char *name, size_t len,
        struct carrel_error *err)
{
    char shown[64];
    AUTO(free) char *copy = strndup(name, len);
    char **longer = reallocarray(*list, *n + 2, sizeof(*longer));

    if (longer)
        *list = longer;
    if (!copy || !longer)
        return err_set_errno(err, -ENOMEM, "modules");
    if (!is_module(copy))
        return err_set(err, -EINVAL, "'%s' is not the name of a module, such as os or os.path",
                str_escape(copy, strlen(copy), shown, sizeof(shown)));
    longer[(*n)++] = ptr_steal(&copy);
    longer[*n] = NULL;
    return 0;
}

/* "a,b"; may be given more than once. */
static int add_modules(
        char **list[static 1], size_t *n, const char *v, struct carrel_error *err)
{
    int r;

    do {
        size_t len = strcspn(v, ",");
        r = add_module(list, n, v, len, err);
        v += len;
    } while (r == 0 && *v++ == ',');
    return r;
}

static int take_block(void *t, const char *v, struct carrel_error *err)
{
    return add_modules(&args_of(t)->block, &args_of(t)->n_block, v, err);
}

static int take_allow(void *t, const char *v, struct carrel_error *err)
{
    return add_modules(&args_of(t)->allow, &args_of(t)->n_allow, v, err);
}

#define FLAG(name, help, member) OPTION_FLAG(name, help, struct python_args, member)

static const struct option_row own_rows[] = {
    { "c", "CODE", "run CODE instead of a file", .take = take_code },
    { "inputs", "FILE", "file with a JSON object: the dict `inputs`", .take = take_inputs },
    { "python", "PATH", "interpreter (default: python3 in the sandbox)", .take = take_python },
    { "venv", "DIR", "virtual environment of the host, mounted read-only", .take = take_venv },
    { "imports", "MODE", "how import rules act: off, warn (default) or block",
            .take = take_imports },
    { "block-import", "NAME[,NAME]", "more modules to warn about or block",
            .take = take_block },
    { "allow-import", "NAME[,NAME]", "warn about or block every module but these",
            .take = take_allow },
    FLAG("trusted", "skip the import rules", options.is_trusted),
};

/* Our rows, then those of `carrel run` that ours do not replace; *n is how many. */
static struct option_row *make_rows(size_t *n)
{
    struct option_row *rows = calloc(ARRAY_LEN(own_rows) + n_run_rows, sizeof(*rows));

    *n = 0;
    for (size_t i = 0; rows && i < ARRAY_LEN(own_rows); i++)
        rows[(*n)++] = own_rows[i];
    for (size_t i = 0; rows && i < n_run_rows; i++)
        if (strcmp(run_rows[i].name, "c") != 0)
            rows[(*n)++] = run_rows[i];
    return rows;
}

void python_args_print(void)
{
    size_t n;
    AUTO(free) struct option_row *rows = make_rows(&n);

    options_print(rows, n);
}

/* Options, the file, options again; what follows "--" or another word is the program's. */
static int parse_words(
        struct python_args *args, int argc, char **argv, struct carrel_error *err)
{
    size_t n;
    AUTO(free) struct option_row *rows = make_rows(&n);

    if (!rows)
        return err_set_errno(err, -ENOMEM, "options");
    int at = options_parse(rows, n, argc, argv, args, err);
    if (at >= 0 && at < argc && !args->code && strcmp(argv[at - 1], "--") != 0) {
        args->file = argv[at];
        int more = options_parse(rows, n, argc - at, argv + at, args, err);
        at = more < 0 ? more : at + more;
    }
    return at;
}

int python_args_parse(struct python_args *args, int argc, char **argv, struct carrel_error *err)
{
    *args = (struct python_args){
        .run.options = CARREL_RUN_OPTIONS_INIT,
        .options = CARREL_PYTHON_OPTIONS_INIT,
        .code_text = BUF_INIT(CARREL_PYTHON_CODE_MAX),
        .inputs_text = BUF_INIT(CARREL_PYTHON_INPUTS_MAX),
    };
    int at = parse_words(args, argc, argv, err);
    if (at < 0 || args->run.wants_help)
        return at < 0 ? at : 0;
    args->options.args = (const char *const *)argv + at;
    args->options.block_imports = (const char *const *)args->block;
    args->options.allow_imports = (const char *const *)args->allow;
    args->options.run = &args->run.options;
    if (args->code && args->file)
        return err_set(err, -EINVAL, "-c and a file cannot be combined");
    bool reads_stdin = !args->code && (!args->file || strcmp(args->file, "-") == 0);
    if (reads_stdin && args->run.has_stdin)
        return err_set(err, -EINVAL,
                "the code comes from standard input: --stdin has nothing to pass on");
    return run_args_complete(&args->run, err);
}

/* To the end of the file; -EFBIG when it is more than fits. */
static int read_whole(int fd, struct buf *out)
{
    char chunk[16384];
    ssize_t n;

    do {
        n = read(fd, chunk, sizeof(chunk));
        if (n > 0)
            buf_add(out, chunk, (size_t)n);
    } while ((n > 0 && !out->is_short) || (n < 0 && errno == EINTR));
    return n < 0 ? -errno : out->is_short ? -EFBIG : 0;
}

static int load_file(const char *path, struct buf *out, struct carrel_error *err)
{
    AUTO(fd_close) int fd = named_open(path, NAMED_FILE, err);
    if (fd < 0)
        return fd;
    int r = read_whole(fd, out);
    if (r == -EFBIG)
        return err_set(err, r, "'%s' is larger than %zu bytes", path, out->max);
    return r < 0 ? err_set_errno(err, r, "'%s'", path) : 0;
}

static int load_stdin(struct python_args *args, struct carrel_error *err)
{
    if (!args->file && isatty(STDIN_FILENO))
        return err_set(err, -EINVAL,
                "no code; expected 'carrel python FILE', 'carrel python -c CODE', or '-' to "
                "read it from standard input");
    int r = read_whole(STDIN_FILENO, &args->code_text);
    if (r == -EFBIG)
        return err_set(err, r, "the code is larger than %zu bytes", args->code_text.max);
    return r < 0 ? err_set_errno(err, r, "standard input") : 0;
}

static int load_code(struct python_args *args, struct carrel_error *err)
{
    if (args->code) {
        args->options.code = args->code;
        args->options.code_len = strlen(args->code);
        return 0;
    }
    bool is_file = args->file && strcmp(args->file, "-") != 0;
    int r = is_file ? load_file(args->file, &args->code_text, err) : load_stdin(args, err);
    if (r == -ENOENT || r == -EACCES || r == -EISDIR)
        return err_from(err, r, CARREL_FROM_PROGRAM);
    if (r < 0)
        return r;
    args->options.name = is_file ? args->file : NULL;
    args->options.code = args->code_text.data ? args->code_text.data : "";
    args->options.code_len = args->code_text.len;
    return 0;
}

static int load_inputs(struct python_args *args, struct carrel_error *err)
{
    if (!args->inputs)
        return 0;
    int r = load_file(args->inputs, &args->inputs_text, err);
    const char *text = args->inputs_text.data ? args->inputs_text.data : "";
    if (r == 0)
        r = carrel_python_check_inputs(text, args->inputs_text.len, args->inputs, err);
    if (r < 0)
        return err_wrap(err, r, "--inputs");
    args->options.inputs = text;
    args->options.inputs_len = args->inputs_text.len;
    return 0;
}

int python_args_load(struct python_args *args, struct carrel_error *err)
{
    int r = load_code(args, err);

    return r < 0 ? r : load_inputs(args, err);
}

static void free_list(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

void python_args_finish(struct python_args *args)
{
    free_list(args->block, args->n_block);
    free_list(args->allow, args->n_allow);
    buf_finish(args->code_text);
    buf_finish(args->inputs_text);
    run_args_finish(&args->run);
}
