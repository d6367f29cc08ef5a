/* words.c - one predicate for each kind of text. */
#include "policy/words.h"
#include "base/path.h"
#include "base/str.h"
#include <limits.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static const struct {
    char name[16];
    enum policy_isolation isolation;
    bool is_remote;
} runtimes[] = {
    { "local", POLICY_ISOLATION_KERNEL, false },
    { "process", POLICY_ISOLATION_NONE, false },
    { "docker", POLICY_ISOLATION_KERNEL, false },
    { "e2b", POLICY_ISOLATION_VM, true },
    { "kubernetes", POLICY_ISOLATION_KERNEL, true },
    { "vm", POLICY_ISOLATION_VM, false },
};

int policy_runtime_isolation(const char *runtime)
{
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++)
        if (strcmp(runtimes[i].name, runtime) == 0)
            return (int)runtimes[i].isolation;
    return -1;
}

bool key_runtime_is_remote(const char *runtime)
{
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++)
        if (strcmp(runtimes[i].name, runtime) == 0)
            return runtimes[i].is_remote;
    return false;
}

const struct key_words words_runtime = {
    .expected = "a runtime such as local",
    .known = (const char *const[]){ "local", "process", "docker", "e2b", "kubernetes", "vm",
            NULL },
};

const struct key_words words_protection = {
    .expected = "a protection such as seccomp",
    .known = (const char *const[]){ "userns", "mountns", "pidns", "netns", "ipcns", "utsns",
            "cgroupns", "idmap", "rootfs", "proc", "dev", "no_new_privs", "capabilities",
            "seccomp", "landlock", "no_nesting", "rlimits", "memory", "pids", "cpu", "disk",
            "session", "environment", "descriptors", NULL },
};

const struct key_words words_limit = {
    .expected = "a limit such as memory",
    .known = (const char *const[]){ "memory", "pids", "cpu", "disk", "files", "io_read",
            "io_write", NULL },
};

static bool is_hostname(const char *word)
{
    size_t len = strlen(word);

    return len > 0 && len <= 63 && strspn(word, LETTERS DIGITS "-.") == len && word[0] != '-' &&
           word[0] != '.';
}

const struct key_words words_hostname = {
    .expected = "1 to 63 letters, digits, dots and dashes, such as build-1",
    .is_valid = is_hostname,
};

static bool is_image(const char *word)
{
    size_t len = strlen(word);

    return len > 0 && len <= 128 && strspn(word, LETTERS DIGITS "._-:/@") == len &&
           strchr(LETTERS DIGITS, word[0]);
}

const struct key_words words_image = {
    .expected = "the name of an image, or none",
    .is_valid = is_image,
};

/* The length of the path in "PATH[:ro|rw]". */
static size_t path_len(const char *mount, bool *is_writable)
{
    size_t len = strlen(mount);
    const char *end = len >= 3 ? mount + len - 3 : mount;

    *is_writable = strcmp(end, ":rw") == 0;
    return *is_writable || strcmp(end, ":ro") == 0 ? len - 3 : len;
}

static bool is_mount(const char *word)
{
    bool is_writable;
    char path[PATH_MAX];
    size_t len = path_len(word, &is_writable);

    if (len >= sizeof(path))
        return false;
    memcpy(path, word, len);
    path[len] = '\0';
    return path_is_clean(path);
}

bool words_mount_covers(const char *allowed, const char *path, bool is_writable)
{
    bool may_write;
    size_t len = path_len(allowed, &may_write);

    if (is_writable && !may_write)
        return false;
    if (len == 1)
        return true; /* "/" */
    return strncmp(path, allowed, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static bool mount_covers(const char *allowed, const char *asked)
{
    bool is_writable;
    char path[PATH_MAX];
    size_t len = path_len(asked, &is_writable);

    if (len >= sizeof(path))
        return false;
    memcpy(path, asked, len);
    path[len] = '\0';
    return words_mount_covers(allowed, path, is_writable);
}

const struct key_words words_mount = {
    .expected = "an absolute path with an optional :ro or :rw, such as /data:ro",
    .is_valid = is_mount,
    .covers = mount_covers,
};

static bool is_variable(const char *word)
{
    return str_is_env_name(word, strlen(word));
}

const struct key_words words_variable = {
    .expected = "the name of a variable, such as LANG",
    .is_valid = is_variable,
};

static bool is_pattern(const char *word)
{
    size_t len = strlen(word);

    if (len > 0 && word[len - 1] == '*')
        len--;
    return len == 0 ? word[0] == '*' : str_is_env_name(word, len);
}

/* A pattern covers a name or a narrower pattern. */
static bool pattern_covers(const char *allowed, const char *asked)
{
    size_t len = strlen(allowed);

    if (len > 0 && allowed[len - 1] == '*')
        return strncmp(allowed, asked, len - 1) == 0;
    return strcmp(allowed, asked) == 0;
}

const struct key_words words_pattern = {
    .expected = "the name of a variable, or its beginning and *, such as LC_*",
    .is_valid = is_pattern,
    .covers = pattern_covers,
};

/*
 * "numpy" or "numpy.linalg". Python allows letters beyond ASCII; all of them are accepted here.
 */
static bool is_module(const char *word)
{
    bool is_start = true;

    for (; *word; word++) {
        unsigned char c = (unsigned char)*word;
        bool is_letter = c >= 0x80 || c == '_' || strchr(LETTERS, c);
        if (c == '.' ? is_start : !is_letter && (is_start || !strchr(DIGITS, c)))
            return false;
        is_start = c == '.';
    }
    return !is_start;
}

static bool module_covers(const char *allowed, const char *asked)
{
    size_t len = strlen(allowed);

    return strncmp(allowed, asked, len) == 0 && (asked[len] == '\0' || asked[len] == '.');
}

const struct key_words words_module = {
    .expected = "the name of a module, such as socket or os.path",
    .is_valid = is_module,
    .covers = module_covers,
};

/* A name in the sandbox; whether it exists is only known when it is started. */
static bool is_program(const char *word)
{
    return word[0] == '/' ? path_is_clean(word) && word[1] : path_is_name(word);
}

const struct key_words words_program = {
    .expected = "a program's name or absolute path, such as python3",
    .is_valid = is_program,
};

static bool is_file(const char *word)
{
    return path_is_clean(word) && word[1];
}

const struct key_words words_file = {
    .expected = "an absolute path of a file",
    .is_valid = is_file,
};

static bool is_currency(const char *word)
{
    size_t len = strlen(word);

    return len > 0 && len <= 16 && strspn(word, LETTERS) == len;
}

const struct key_words words_currency = {
    .expected = "1 to 16 letters, such as EUR",
    .is_valid = is_currency,
};

static bool is_glob(const char *word)
{
    return word[0] && strlen(word) < PATH_MAX && !strpbrk(word, "\n\r");
}

const struct key_words words_glob = {
    .expected = "a path or pattern, such as .env",
    .is_valid = is_glob,
};

static bool is_line(const char *word)
{
    return word[strspn(word, " \t\n\r")] != '\0';
}

const struct key_words words_line = {
    .expected = "a shell line, such as 'npm ci'",
    .is_valid = is_line,
};
