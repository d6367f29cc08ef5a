/*
 * git.c - which program, with which options and in which environment.
 *
 * A scrubbed git still reads the configuration of the repository itself, which is the user's
 * and may name programs. Every setting that would start one is overridden here, on the command
 * line, which has precedence over every file. Where git has no setting, the caller must prevent
 * it: --no-ext-diff and --no-textconv for diffs, and no operation that applies filters or merge
 * drivers to what a run wrote.
 */
#include "git/git.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "git/program.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_PATH "/usr/local/bin:/usr/bin:/bin"
#define COMPLAINTS_MAX 4096
#define SETTING_MAX 40 /* of the settings below, with the NUL */

/* For both kinds: no hooks, no background processes, stable output for our parsers. */
static const char always[][SETTING_MAX] = {
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=true",
    "core.pager=cat",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    /* A git that was killed may still be removing its locks, on a busy disk. */
    "core.filesRefLockTimeout=10000",
    "core.packedRefsTimeout=10000",
    "advice.detachedHead=false",
    "color.ui=never",
};

static const char scrubbed[][SETTING_MAX] = {
    /* Settings that would start a program. */
    "core.sshCommand=false",
    "core.askPass=false",
    "core.editor=false",
    "sequence.editor=false",
    "credential.helper=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    /* Settings that would bring the user's files or preferences into the result. */
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "diff.ignoreSubmodules=all",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "color.diff=never",
    /* Reflogs need a name. Not in the environment, so that a caller can override it with -c. */
    "user.name=carrel",
    "user.email=carrel@localhost",
};

static const char scrubbed_env[][SETTING_MAX] = {
    "HOME=/nonexistent",
    "LC_ALL=C",
    "GIT_CONFIG_NOSYSTEM=1",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_ATTR_NOSYSTEM=1",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_NO_REPLACE_OBJECTS=1",
    "GIT_NO_LAZY_FETCH=1",
    "GIT_GRAFT_FILE=/dev/null/none", /* if the file can be opened, git prints a hint */
    "GIT_ALLOW_PROTOCOL=none", /* has precedence over protocol.<name>.allow of the repository */
    "GIT_PROTOCOL_FROM_USER=0",
    "GIT_EDITOR=false",
    "GIT_SEQUENCE_EDITOR=false",
    "GIT_ASKPASS=false",
    "GIT_SSH_COMMAND=false",
};

/*
 * The GIT_* variables that GIT_AS_USER keeps: the location of the user's configuration and how
 * to reach a server. All others refer to another repository or change git's output.
 */
static const char user_env[][SETTING_MAX] = {
    "GIT_CONFIG_GLOBAL=",
    "GIT_CONFIG_SYSTEM=",
    "GIT_CONFIG_NOSYSTEM=",
    "GIT_ATTR_NOSYSTEM=",
    "GIT_EXEC_PATH=",
    "GIT_ASKPASS=",
    "GIT_TERMINAL_PROMPT=",
    "GIT_PROXY_",
    "GIT_SSH",
    "GIT_SSL_",
    "GIT_HTTP_",
    "GIT_LFS_",
};

/* A growing argv or environment; owns its strings. */
struct words {
    char **items; /* NULL at the end */
    size_t n;
    size_t room;
    bool is_short; /* memory ran out */
};

static void words_finish(struct words words)
{
    for (size_t i = 0; i < words.n; i++)
        free(words.items[i]);
    free(words.items);
}
DEFINE_AUTO(struct words, words_finish)

static void words_take(struct words *words, char *word)
{
    if (word && words->n + 1 >= words->room) {
        size_t room = words->room ? 2 * words->room : 64;
        char **items = reallocarray(words->items, room, sizeof(*items));
        if (items) {
            words->items = items;
            words->room = room;
        } else {
            free(word);
            word = NULL;
        }
    }
    if (!word) {
        words->is_short = true;
        return;
    }
    words->items[words->n++] = word;
    words->items[words->n] = NULL;
}

static void words_add(struct words *words, const char *word)
{
    words_take(words, strdup(word));
}

static void words_add_pair(struct words *words, const char *key, const char *value)
{
    char *word = NULL;

    if (asprintf(&word, "%s%s", key, value) < 0)
        word = NULL;
    words_take(words, word);
}

static void add_config(struct words *args, const char (*settings)[SETTING_MAX], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        words_add(args, "-c");
        words_add(args, settings[i]);
    }
}

static void add_arguments(struct words *argv, const struct git *git, const char *const *args)
{
    words_add(argv, "git");
    words_add(argv, "--no-pager");
    words_add_pair(argv, "--git-dir=", git->git_dir);
    if (git->work_tree)
        words_add_pair(argv, "--work-tree=", git->work_tree);
    add_config(argv, always, ARRAY_LEN(always));
    if (git->trust == GIT_SCRUBBED)
        add_config(argv, scrubbed, ARRAY_LEN(scrubbed));
    for (size_t i = 0; git->settings && git->settings[i]; i++) {
        words_add(argv, "-c");
        words_add(argv, git->settings[i]);
    }
    for (size_t i = 0; args[i]; i++)
        words_add(argv, args[i]);
}

/* The variable is a list: a path with a colon or a leading quote must be quoted. */
static void add_alternate(struct words *env, const char *path)
{
    struct buf value = BUF_INIT((size_t)4 * PATH_MAX);

    buf_add_str(&value, "\"");
    for (const char *at = path; *at; at++) {
        if (*at == '"' || *at == '\\')
            buf_add_str(&value, "\\");
        if (*at == '\n')
            buf_add_str(&value, "\\n");
        else
            buf_add(&value, at, 1);
    }
    buf_add_str(&value, "\"");
    if (value.is_short)
        env->is_short = true;
    else
        words_add_pair(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES=", value.data);
    buf_finish(value);
}

static bool is_kept(const char *variable)
{
    if (strncmp(variable, "GIT_", 4) != 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(user_env); i++)
        if (strncmp(variable, user_env[i], strlen(user_env[i])) == 0)
            return true;
    return false;
}

static void add_environment(struct words *env, const struct git *git, const char *path)
{
    if (git->trust == GIT_SCRUBBED) {
        words_add_pair(env, "PATH=", path);
        for (size_t i = 0; i < ARRAY_LEN(scrubbed_env); i++)
            words_add(env, scrubbed_env[i]);
    } else {
        for (size_t i = 0; environ && environ[i]; i++)
            if (is_kept(environ[i]))
                words_add(env, environ[i]);
        /* Precedes what the repository allows. "ext" and helpers would be programs. */
        words_add(env, git->may_fetch ? "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh"
                                      : "GIT_ALLOW_PROTOCOL=none");
        if (!git->may_fetch)
            words_add(env, "GIT_NO_LAZY_FETCH=1");
    }
    if (!git->work_tree) /* else git would use its working directory */
        words_add(env, "GIT_IMPLICIT_WORK_TREE=0");
    if (git->index_file)
        words_add_pair(env, "GIT_INDEX_FILE=", git->index_file);
    if (git->object_dir)
        words_add_pair(env, "GIT_OBJECT_DIRECTORY=", git->object_dir);
    if (git->alternate)
        add_alternate(env, git->alternate);
}

/*
 * Looks for the program in `search`. Relative entries are skipped: a file in the working
 * directory is not trusted to be git.
 */
static bool find_along(const char *search, char path[static PATH_MAX])
{
    while (*search) {
        size_t len = strcspn(search, ":");
        struct stat st;

        if (search[0] == '/' && len < PATH_MAX - 8) {
            (void)snprintf(path, PATH_MAX, "%.*s/git", (int)len, search);
            if (stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
                    faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
                return true;
        }
        search += len;
        search += *search == ':';
    }
    return false;
}

/* Sets `path` to the program and `search` to the PATH for a scrubbed git. */
static int find_program(enum git_trust trust, char path[static PATH_MAX],
        char search[static PATH_MAX + 64], struct carrel_error *err)
{
    const char *callers = getenv("PATH");

    (void)snprintf(search, PATH_MAX + 64, "%s", SYSTEM_PATH);
    if (trust == GIT_AS_USER && callers && find_along(callers, path))
        return 0;
    if (find_along(SYSTEM_PATH, path))
        return 0;
    if (!callers || !find_along(callers, path))
        return err_set(err, -ENOENT,
                "there is no git program in PATH: install git, workspaces need it");

    const char *slash = strrchr(path, '/');
    (void)snprintf(search, PATH_MAX + 64, "%s:%.*s", SYSTEM_PATH, (int)(slash - path), path);
    return 0;
}

/* "rev-parse" of { "-c", "a=b", "rev-parse", ... }: for messages. */
static const char *command_of(const char *const *args)
{
    while (args[0] && args[0][0] == '-')
        args += strcmp(args[0], "-c") == 0 && args[1] ? 2 : 1;
    return args[0] ? args[0] : "";
}

static bool has_mark(const char *line, size_t len, const char *mark)
{
    return len > strlen(mark) && memcmp(line, mark, strlen(mark)) == 0;
}

/*
 * The line with the reason: the last one that git marked as fatal or as an error, else the last
 * one that is not a hint. Hints follow the reason.
 */
static const char *find_reason(const struct buf *complaints, char *out, size_t size)
{
    const char *best = NULL;
    size_t best_len = 0;
    int best_rank = 0;
    const char *end = complaints->data ? complaints->data + complaints->len : NULL;

    for (const char *line = complaints->data; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop ? stop : end) - line);
        bool is_reason = has_mark(line, len, "fatal: ") || has_mark(line, len, "error: ");
        int rank = is_reason ? 3 : has_mark(line, len, "hint: ") ? 1 : 2;
        if (has_mark(line, len,
                    "fatal: adding files faile")) /* the line before it names the file */
            rank = 2;

        if (len > 0 && rank >= best_rank) {
            size_t mark = is_reason ? strlen("fatal: ") : 0;
            best = line + mark;
            best_len = len - mark;
            best_rank = rank;
        }
        line = stop ? stop + 1 : end;
    }
    return best ? str_escape(best, best_len, out, size) : NULL;
}

static void explain(const struct program *program, int status, struct carrel_error *err)
{
    char text[400];
    const char *words = find_reason(program->complaints, text, sizeof(text));

    if (words)
        (void)err_set(err, -EIO, "%s: %s", program->name, words);
    else
        (void)err_set(err, -EIO, "%s ended with status %d", program->name, status);
}

int git_run(const struct git *git, const char *const *args, struct git_io *io,
        struct carrel_error *err)
{
    AUTO(words_finish) struct words argv = { 0 };
    AUTO(words_finish) struct words env = { 0 };
    AUTO(buf_finish) struct buf complaints = BUF_INIT(COMPLAINTS_MAX);
    struct git_io none = GIT_IO_INIT;
    char path[PATH_MAX];
    char search[PATH_MAX + 64];
    char name[64];
    int r;

    if (!io)
        io = &none;
    r = find_program(git->trust, path, search, err);
    if (r < 0)
        return r;
    (void)snprintf(name, sizeof(name), "git %s", command_of(args));
    add_arguments(&argv, git, args);
    add_environment(&env, git, search);
    if (argv.is_short || env.is_short)
        return err_set_errno(err, -ENOMEM, "start %s", name);

    const struct program program = {
        .path = path,
        .name = name,
        .argv = (const char *const *)argv.items,
        .env = (const char *const *)env.items,
        .cwd = git->work_tree ? git->work_tree : "/",
        .source = io->source,
        .input = io->input,
        .input_len = io->input_len,
        .input_fd = io->input_fd,
        .output_fd = io->output_fd,
        .sink = io->sink,
        .output = io->output,
        .context = io->context,
        .complaints = &complaints,
        .timeout_ms = io->timeout_ms || io->output_fd >= 0 ? io->timeout_ms : GIT_LONGEST_MS,
        .max_memory_bytes = io->max_memory_bytes,
        .max_file_bytes = io->max_file_bytes,
        .finishes = io->finishes,
    };
    r = program_run_to_end(&program, err);
    if (r > 0)
        explain(&program, r, err);
    return r;
}

int git_expect(const struct git *git, const char *const *args, struct git_io *io,
        struct carrel_error *err)
{
    int r = git_run(git, args, io, err);

    if (r > 0)
        return -EIO;
    if (r == 0 && io && io->output && io->output->len > 0) {
        struct buf *output = io->output;
        if (output->data[output->len - 1] == '\n')
            output->data[--output->len] = '\0';
    }
    return r;
}

int git_feed(const struct git *git, const char *const *args, const struct buf *input,
        struct carrel_error *err)
{
    struct git_io io = GIT_IO_INIT;

    if (input->is_short)
        return err_set_errno(err, -ENOMEM, "input for git");
    if (input->len == 0)
        return 0;
    io.input = input->data;
    io.input_len = input->len;
    return git_expect(git, args, &io, err);
}
