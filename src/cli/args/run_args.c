/* run_args.c - one row per option, and a function for each that is more than a flag. */
#include "cli/args/run_args.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/args/env_file.h"
#include "cli/args/user_word.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

static struct run_args *args_of(void *target)
{
    return target;
}

static int positive(uint64_t value, struct carrel_error *err)
{
    return value > 0 ? 0 : err_set(err, -EINVAL, "must be more than 0");
}

static int take_timeout(void *t, const char *v, struct carrel_error *err)
{
    int r = str_parse_duration(v, &args_of(t)->options.timeout_ms, err);

    return r < 0 ? r : positive(args_of(t)->options.timeout_ms, err);
}

static int take_cpu(void *t, const char *v, struct carrel_error *err)
{
    int r = str_parse_milli(v, &args_of(t)->options.cpu_milli, err);

    return r < 0 ? r : positive(args_of(t)->options.cpu_milli, err);
}

static int take_size(const char *v, uint64_t *out, struct carrel_error *err)
{
    int r = str_parse_size(v, out, err);

    return r < 0 ? r : positive(*out, err);
}

static int take_memory(void *t, const char *v, struct carrel_error *err)
{
    return take_size(v, &args_of(t)->options.memory_bytes, err);
}

static int take_disk(void *t, const char *v, struct carrel_error *err)
{
    return take_size(v, &args_of(t)->options.disk_bytes, err);
}

static int take_io_read(void *t, const char *v, struct carrel_error *err)
{
    return take_size(v, &args_of(t)->options.io_read_bytes, err);
}

static int take_io_write(void *t, const char *v, struct carrel_error *err)
{
    return take_size(v, &args_of(t)->options.io_write_bytes, err);
}

static int take_max_output(void *t, const char *v, struct carrel_error *err)
{
    struct run_args *args = args_of(t);

    args->is_capped = true;
    int r = take_size(v, &args->options.output_bytes, err);
    if (r == 0 && args->options.output_bytes > 1U << 30)
        return err_set(err, -EINVAL, "must be at most 1G, since it is kept in memory");
    return r;
}

static int take_count(const char *v, uint64_t *out, struct carrel_error *err)
{
    char shown[64];

    if (str_parse_u64(v, out) < 0)
        return err_set(err, -EINVAL, "'%s' is not a number; expected one such as 256",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    return positive(*out, err);
}

static int take_pids(void *t, const char *v, struct carrel_error *err)
{
    return take_count(v, &args_of(t)->options.pids, err);
}

static int take_files(void *t, const char *v, struct carrel_error *err)
{
    return take_count(v, &args_of(t)->options.files, err);
}

static int add_env(void *t, const char *entry, size_t len, struct carrel_error *err)
{
    struct run_args *args = args_of(t);
    char **env = reallocarray(args->env, args->n_env + 2, sizeof(*env));

    if (!env)
        return err_set_errno(err, -ENOMEM, "environment");
    args->env = env;
    env[args->n_env] = strndup(entry, len);
    if (!env[args->n_env])
        return err_set_errno(err, -ENOMEM, "environment");
    env[++args->n_env] = NULL;
    return 0;
}

static int take_env(void *t, const char *v, struct carrel_error *err)
{
    const size_t len = strcspn(v, "=");
    char shown[64];

    if (!v[len] || !str_is_env_name(v, len)) /* the value may be a secret */
        return err_set(err, -EINVAL, ENV_EXPECTED,
                str_escape(v, len + (v[len] != '\0'), shown, sizeof(shown)));
    return add_env(t, v, strlen(v), err);
}

static int take_env_file(void *t, const char *v, struct carrel_error *err)
{
    AUTO(free) char *text = malloc(ENV_FILE_MAX + 1);

    if (!text)
        return err_set_errno(err, -ENOMEM, "'%s'", v);
    AUTO(fd_close) int fd = named_open(v, NAMED_FILE, err);
    if (fd < 0)
        return fd;
    ssize_t n = fd_read_all(fd, text, ENV_FILE_MAX);
    if (n < 0)
        return err_set_errno(err, (int)n, "'%s'", v);
    if (n == ENV_FILE_MAX)
        return err_set(err, -EFBIG, "'%s' is larger than %d bytes", v, ENV_FILE_MAX - 1);
    return env_file_parse(text, (size_t)n, v, add_env, t, err);
}

static int take_cwd(void *t, const char *v, struct carrel_error *err)
{
    char path[PATH_MAX];
    struct run_args *args = args_of(t);

    if (!v[0] || !path_absolute("/workspace", v, path, sizeof(path)))
        return err_set(err, -EINVAL, "expected a directory in the sandbox, such as /tmp");
    free(args->cwd_absolute);
    args->cwd_absolute = strdup(v[0] == '/' ? v : path);
    return args->cwd_absolute ? 0 : err_set_errno(err, -ENOMEM, "cwd");
}

/* Cuts ":ro" or ":rw" off. */
static bool take_access(char *text, bool *is_writable)
{
    char *colon = strrchr(text, ':');

    if (!colon || (strcmp(colon, ":ro") != 0 && strcmp(colon, ":rw") != 0))
        return false;
    *is_writable = strcmp(colon, ":rw") == 0;
    *colon = '\0';
    return true;
}

static int add_mount(struct run_args *args, const char *source, const char *target,
        bool is_writable, struct carrel_error *err)
{
    size_t n = args->options.n_mounts;
    struct carrel_mount *mounts = reallocarray(args->mounts, n + 1, sizeof(*mounts));

    if (!mounts)
        return err_set_errno(err, -ENOMEM, "mounts");
    args->mounts = mounts;
    mounts[n] = (struct carrel_mount){
        .source = strdup(source),
        .target = strdup(target),
        .is_writable = is_writable,
    };
    args->options.n_mounts++;
    args->options.mounts = mounts;
    return mounts[n].source && mounts[n].target ? 0 : err_set_errno(err, -ENOMEM, "mounts");
}

static int take_mount(void *t, const char *v, struct carrel_error *err)
{
    char shown[128];
    bool is_writable = false;
    AUTO(free) char *text = strdup(v);
    if (!text)
        return err_set_errno(err, -ENOMEM, "mounts");
    (void)take_access(text, &is_writable);
    char *colon = strchr(text, ':');
    if (!colon || colon == text || colon[1] != '/' || strchr(colon + 1, ':'))
        return err_set(err, -EINVAL,
                "'%s' is not SRC:DST[:ro|rw] with an absolute DST, such as ./data:/data:ro",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    *colon = '\0';
    return add_mount(args_of(t), text, colon + 1, is_writable, err);
}

static int take_workdir(void *t, const char *v, struct carrel_error *err)
{
    bool is_writable = true;
    AUTO(free) char *text = strdup(v);
    if (!text)
        return err_set_errno(err, -ENOMEM, "mounts");
    (void)take_access(text, &is_writable);
    if (!text[0])
        return err_set(err, -EINVAL, "expected a directory on the host");
    int r = add_mount(args_of(t), text, "/workspace", is_writable, err);
    args_of(t)->workdir = args_of(t)->options.n_mounts;
    return r;
}

static int take_root(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected a directory that holds a root filesystem");
    args_of(t)->options.root = v;
    return 0;
}

static int take_image(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected the name of an image, or none");
    args_of(t)->options.image = v;
    return 0;
}

static int take_network(void *t, const char *v, struct carrel_error *err)
{
    char shown[64];

    if (strcmp(v, "none") == 0)
        args_of(t)->options.network = CARREL_NETWORK_NONE;
    else if (strcmp(v, "host") == 0)
        args_of(t)->options.network = CARREL_NETWORK_HOST;
    else
        return err_set(err, -EINVAL, "'%s' is not a network; expected none or host",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    return 0;
}

static int take_user(void *t, const char *v, struct carrel_error *err)
{
    struct carrel_run_options *o = &args_of(t)->options;
    uid_t uid;
    gid_t gid;

    int r = user_word_parse(v, &uid, &gid, err);
    if (r < 0)
        return r;
    o->has_user = true;
    o->uid = uid;
    o->gid = gid;
    return 0;
}

static int take_ids(void *t, const char *v, struct carrel_error *err)
{
    char shown[64];

    if (strcmp(v, "own") == 0)
        args_of(t)->options.ids = CARREL_IDS_OWN;
    else if (strcmp(v, "sub") == 0)
        args_of(t)->options.ids = CARREL_IDS_SUB;
    else
        return err_set(err, -EINVAL, "'%s' is not valid; expected own or sub",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    return 0;
}

static int take_hostname(void *t, const char *v, struct carrel_error *err)
{
    size_t len = strlen(v);

    if (len == 0 || len > 63 ||
            strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") !=
                    len ||
            v[0] == '-' || v[0] == '.')
        return err_set(err, -EINVAL,
                "expected 1 to 63 letters, digits, dots and dashes, such as build-1");
    args_of(t)->options.hostname = v;
    return 0;
}

static int take_format(void *t, const char *v, struct carrel_error *err)
{
    char shown[64];

    if (strcmp(v, "json") == 0)
        args_of(t)->is_json = true;
    else if (strcmp(v, "text") == 0)
        args_of(t)->is_text = true;
    else
        return err_set(err, -EINVAL, "'%s' is not a format; expected text or json",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    return 0;
}

static int take_output(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected a file name");
    args_of(t)->output = v;
    return 0;
}

static int take_runtime(void *t, const char *v, struct carrel_error *err)
{
    (void)err;
    args_of(t)->options.runtime = v; /* the registry knows the names, and says so */
    return 0;
}

/* Lists may be given more than once: "a" and "b" become "a,b". */
static int join(const char **list, const char *v, struct carrel_error *err)
{
    char *joined = NULL;

    if (!*list) {
        *list = strdup(v);
        return *list ? 0 : err_set_errno(err, -ENOMEM, "list");
    }
    if (asprintf(&joined, "%s,%s", *list, v) < 0)
        return err_set_errno(err, -ENOMEM, "list");
    free((void *)(uintptr_t)*list);
    *list = joined;
    return 0;
}

static int take_require(void *t, const char *v, struct carrel_error *err)
{
    return join(&args_of(t)->options.require, v, err);
}

static int take_best_effort(void *t, const char *v, struct carrel_error *err)
{
    return join(&args_of(t)->options.best_effort, v, err);
}

static int take_shell_line(void *t, const char *v, struct carrel_error *err)
{
    if (args_of(t)->shell_line)
        return err_set(err, -EINVAL, "given twice");
    args_of(t)->shell_line = v;
    return 0;
}

#define FLAG(group, name, help, member)                                                        \
    {                                                                                          \
        name, NULL, help, group, NULL, OPTION_MEMBER(struct run_args, member)                  \
    }

const struct option_row run_rows[] = {
    { "c", "LINE", "run LINE with /bin/sh instead of PROGRAM", NULL, .take = take_shell_line },
    { "env", "NAME=VALUE", "set a variable; the caller's are not inherited", NULL,
            .take = take_env },
    { "env-file", "FILE", "set variables from a file with lines NAME=VALUE", NULL,
            .take = take_env_file },
    { "cwd", "DIR", "working directory (default: /workspace)", NULL, .take = take_cwd },
    { "user", "UID[:GID]", "user in the sandbox: ids, or root, agent, nobody", NULL,
            .take = take_user },
    { "hostname", "NAME", "host name in the sandbox (default: carrel)", NULL,
            .take = take_hostname },
    { "timeout", "TIME", "time limit: 500ms, 90s, 5m (default: 300s)", RUN_LIMITS,
            .take = take_timeout },
    { "cpu", "CORES", "CPU time per second, in cores (default: 1.0)", RUN_LIMITS,
            .take = take_cpu },
    { "memory", "SIZE", "memory of all processes together (default: 512M)", RUN_LIMITS,
            .take = take_memory },
    { "disk", "SIZE", "space for written files (default: 1G)", RUN_LIMITS, .take = take_disk },
    { "pids", "N", "processes and threads (default: 256)", RUN_LIMITS, .take = take_pids },
    { "files", "N", "open files per process (default: 4096)", RUN_LIMITS, .take = take_files },
    { "io-read", "SIZE", "read so much per second from each disk (default: no limit)",
            RUN_LIMITS, .take = take_io_read },
    { "io-write", "SIZE", "write so much per second to each disk (default: no limit)",
            RUN_LIMITS, .take = take_io_write },
    { "best-effort", "LIMIT[,LIMIT]", "accept weaker enforcement of these limits", RUN_LIMITS,
            .take = take_best_effort },
    { "mount", "SRC:DST[:ro|rw]", "mount a host path (default: read-only)", RUN_FILES,
            .take = take_mount },
    { "workdir", "DIR[:ro|rw]", "mount DIR as /workspace (default: read-write)", RUN_FILES,
            .take = take_workdir },
    FLAG(RUN_FILES, "git-writable", "let the program write to .git of --workdir and mounts",
            options.is_git_writable),
    { "root", "DIR", "root filesystem instead of the host's programs", RUN_FILES,
            .take = take_root },
    { "image", "NAME", "image as root filesystem; see carrel-image(1)", RUN_FILES,
            .take = take_image },
    FLAG(RUN_FILES, "no-entrypoint", "with --image: ignore the image's entrypoint",
            options.has_no_entrypoint),
    RUN_WORKSPACE_ROWS,
    { "network", "none|host", "none: loopback only (default); or the host's", RUN_ISOLATION,
            .take = take_network },
    { "runtime", "NAME", "local (default), or process: no isolation", RUN_ISOLATION,
            .take = take_runtime },
    { "require", "NAME[,NAME]", "refuse to run without these protections", RUN_ISOLATION,
            .take = take_require },
    { "ids", "own|sub",
            "ids to map without root: own (default), or sub: also your subordinate ids",
            RUN_ISOLATION, .take = take_ids },
    RUN_POLICY_ROWS,
    FLAG(RUN_OUTPUT, "stdin", "pass standard input on (default: none)", has_stdin),
    FLAG(RUN_OUTPUT, "tty", "give the program a terminal", options.has_tty),
    { "max-output", "SIZE", "print head and tail of each stream, at the end", RUN_OUTPUT,
            .take = take_max_output },
    FLAG(RUN_OUTPUT, "json", "print the result as JSON and nothing else", is_json),
    { "format", "text|json", "text: status and output in few words, for a model", RUN_OUTPUT,
            .take = take_format },
    { "output", "FILE", "also write the JSON result to FILE", RUN_OUTPUT, .take = take_output },
    FLAG(RUN_OUTPUT, "quiet", "print no notes on standard error", is_quiet),
    FLAG(RUN_OUTPUT, "help", "print this text", wants_help),
};
const size_t n_run_rows = ARRAY_LEN(run_rows);

/* sh -c LINE sh ARG...: the words after the options are the line's $1, $2 ... */
static int build_shell(struct run_args *args, int n, char **words, struct carrel_error *err)
{
    static char sh[] = "/bin/sh";
    static char flag[] = "-c";

    args->argv = calloc((size_t)n + 5, sizeof(*args->argv));
    if (!args->argv)
        return err_set_errno(err, -ENOMEM, "arguments");
    args->argv[0] = sh;
    args->argv[1] = flag;
    args->argv[2] = (char *)(uintptr_t)args->shell_line;
    args->argv[3] = sh;
    for (int i = 0; i < n; i++)
        args->argv[4 + i] = words[i];
    args->options.argv = (const char *const *)args->argv;
    args->options.has_no_entrypoint = true;
    return 0;
}

/* What is left to do when all options are read. */
static int settle(struct run_args *args, struct carrel_error *err)
{
    args->options.env = (const char *const *)args->env;
    args->options.cwd = args->cwd_absolute;
    if (args->is_json && args->is_text)
        return err_set(err, -EINVAL, "--format text and JSON cannot be combined");
    if (args->is_json && args->options.has_tty)
        return err_set(err, -EINVAL, "--json and --tty cannot be combined");
    if (args->is_text && args->options.has_tty)
        return err_set(err, -EINVAL, "--format text and --tty cannot be combined");
    if (args->is_capped && args->options.has_tty)
        return err_set(err, -EINVAL, "--max-output and --tty cannot be combined");
    return 0;
}

int run_args_complete(struct run_args *args, struct carrel_error *err)
{
    int r = run_workspace_complete(args, err);

    return r < 0 ? r : settle(args, err);
}

int run_args_program(
        struct run_args *args, int n, char **words, const char *usage, struct carrel_error *err)
{
    int r = settle(args, err);
    if (r < 0)
        return r;
    if (args->shell_line)
        return build_shell(args, n, words, err);
    if (n == 0 && !args->options.image)
        return err_set(err, -EINVAL, "no program; expected '%s' or -c 'LINE'", usage);
    args->options.argv = (const char *const *)words;
    return 0;
}

int run_args_parse(struct run_args *args, int argc, char **argv, struct carrel_error *err)
{
    *args = (struct run_args){ .options = CARREL_RUN_OPTIONS_INIT };
    int at = options_parse(run_rows, n_run_rows, argc, argv, args, err);
    if (at < 0 || args->wants_help)
        return at < 0 ? at : 0;
    int r = run_workspace_complete(args, err);
    return r < 0 ? r
                 : run_args_program(args, argc - at, argv + at,
                           "carrel run [options] -- PROGRAM [ARG...]", err);
}

int run_args_parse_resume(struct run_args *args, int argc, char **argv, const char **name,
        struct carrel_error *err)
{
    *name = NULL;
    *args = (struct run_args){ .options = CARREL_RUN_OPTIONS_INIT };
    int at = options_parse(run_rows, n_run_rows, argc, argv, args, err);
    if (at >= 0 && at < argc && strcmp(argv[at - 1], "--") != 0) {
        *name = argv[at];
        int n = options_parse(run_rows, n_run_rows, argc - at, argv + at, args, err);
        at = n < 0 ? n : at + n;
    }
    if (at < 0 || args->wants_help)
        return at < 0 ? at : 0;
    int r = run_workspace_resume(args, err);
    if (r < 0)
        return r;
    return run_args_program(args, argc - at, argv + at,
            "carrel workspace resume NAME [options] -- PROGRAM [ARG...]", err);
}

void run_args_finish(struct run_args *args)
{
    for (size_t i = 0; i < args->n_env; i++)
        free(args->env[i]);
    free(args->env);
    for (size_t i = 0; i < args->options.n_mounts; i++) {
        free((void *)(uintptr_t)args->mounts[i].source);
        free((void *)(uintptr_t)args->mounts[i].target);
    }
    free(args->mounts);
    run_workspace_finish(&args->workspace);
    free(args->cwd_absolute);
    free(args->argv);
    free((void *)(uintptr_t)args->options.require);
    free((void *)(uintptr_t)args->options.best_effort);
}
