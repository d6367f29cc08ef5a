/* scope.c - asks git, which knows includes and their conditions, and overrides with -c. */
#include "git/scope.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX ((size_t)4 << 20)
#define SETTINGS_MAX 1000
#define TIMEOUT_MS 10000 /* a repository may include a FIFO */

/* A key in git's form: section and name in lower case. */
struct pattern {
    const char *section;
    const char *name; /* NULL: any */
};

static const struct pattern filters[] = {
    { "filter.", ".clean" },
    { "filter.", ".smudge" },
    { "filter.", ".process" },
    { "filter.", ".required" },
};

/* Files of the host that git reads. */
static const struct pattern files[] = {
    { "core.", ".attributesfile" },
    { "core.", ".excludesfile" },
};

/* What decides with which programs, and past which checks, git fetches. */
static const struct pattern transport[] = {
    { "core.", ".sshcommand" },
    { "core.", ".gitproxy" },
    { "core.", ".askpass" },
    { "credential.", NULL },
    { "http.", NULL },
    { "remote.", ".uploadpack" },
    { "remote.", ".vcs" },
    { "remote.", ".proxy" },
};

/* One element of `git config --list -z --show-scope`. */
struct setting {
    const char *key; /* not ended */
    size_t len;
    const char *value; /* "true" where the key stands alone */
    bool is_users;
};

static bool is_users(const char *scope)
{
    return strcmp(scope, "global") == 0 || strcmp(scope, "system") == 0 ||
           strcmp(scope, "command") == 0; /* ours */
}

/* Returns where the next one begins, NULL at the end. */
static const char *next(const struct buf *list, const char *at, struct setting *out)
{
    const char *end = list->data + list->len;
    const char *item = at < end ? at + strlen(at) + 1 : end;

    if (!list->data || item >= end)
        return NULL;
    const char *line_end = strchr(item, '\n');
    out->is_users = is_users(at);
    out->key = item;
    out->len = line_end ? (size_t)(line_end - item) : strlen(item);
    out->value = line_end ? line_end + 1 : "true";
    return item + strlen(item) + 1;
}

static bool is_same_key(const struct setting *a, const struct setting *b)
{
    return a->len == b->len && memcmp(a->key, b->key, a->len) == 0;
}

/* Not a regular expression: those of a locale do not match every byte. */
static bool is_one_of(const struct setting *setting, const struct pattern *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t section = strlen(patterns[i].section);
        size_t name = patterns[i].name ? strlen(patterns[i].name) : 0;
        if (setting->len >= section + (name ? name - 1 : 0) &&
                memcmp(setting->key, patterns[i].section, section) == 0 &&
                memcmp(setting->key + setting->len - name,
                        patterns[i].name ? patterns[i].name : "", name) == 0)
            return true;
    }
    return false;
}

static bool is_filter(const struct setting *setting)
{
    return is_one_of(setting, filters, ARRAY_LEN(filters));
}

/* Every setting, in the order in which they count. */
static int list_all(const struct git *git, struct buf *out, struct carrel_error *err)
{
    struct git_io io = GIT_IO_INIT;

    io.output = out;
    io.timeout_ms = TIMEOUT_MS;
    int r = git_expect(git, GIT_ARGS("config", "--list", "-z", "--show-scope"), &io, err);
    return r < 0 ? err_wrap(err, r, "read your git configuration") : 0;
}

int scope_users_path(const struct git *git, const char *key, char path[static PATH_MAX],
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf list = BUF_INIT(LIST_MAX);
    struct git_io io = GIT_IO_INIT;

    io.output = &list;
    io.timeout_ms = TIMEOUT_MS;
    bool is_found = false;
    int r = git_run(git,
            GIT_ARGS("config", "-z", "--show-scope", "--type=path", "--get-all", key), &io,
            err);
    if (r < 0 || r > 1) /* 1: it is not set */
        return err_wrap(err, r < 0 ? r : -EIO, "ask git for %s", key);
    for (const char *at = list.data; at && at < list.data + list.len;) {
        const char *value = at + strlen(at) + 1; /* inside: the buffer ends with a NUL more */
        if (value < list.data + list.len && is_users(at)) {
            (void)snprintf(path, PATH_MAX, "%s", value);
            is_found = true;
        }
        at = value + strlen(value) + 1;
    }
    return is_found;
}

void scope_free_settings(char **settings)
{
    for (size_t i = 0; settings && settings[i]; i++)
        free(settings[i]);
    free(settings);
}

void scope_guard_finish(struct scope_guard guard)
{
    scope_free_settings(guard.settings);
    free(guard.filters);
}

/* The user's last value of the same key; NULL: none. */
static const char *users_value(const struct buf *list, const struct setting *of)
{
    const char *value = NULL;
    struct setting setting;

    for (const char *at = list->data; (at = next(list, at, &setting));)
        if (setting.is_users && is_same_key(&setting, of))
            value = setting.value;
    return value;
}

/* No command, or not required. */
static const char *off_value(const struct setting *setting)
{
    static const char required[] = ".required";
    size_t len = strlen(required);

    return setting->len > len && memcmp(setting->key + setting->len - len, required, len) == 0
                   ? "false"
                   : "";
}

static int add(char **settings, size_t *n, const struct setting *setting, const char *value,
        struct carrel_error *err)
{
    char shown[200];

    if (*n == SETTINGS_MAX)
        return err_set(err, -E2BIG,
                "the git configuration sets more than %d commands of filters", SETTINGS_MAX);
    if (memchr(setting->key, '=', setting->len))
        return err_set(err, -EINVAL,
                "the filter setting '%s' has a '=' in its name and cannot be turned off; an "
                "earlier program may have made it: take it out of the git configuration",
                str_escape(setting->key, setting->len, shown, sizeof(shown)));
    if (asprintf(&settings[*n], "%.*s=%s", (int)setting->len, setting->key, value) < 0) {
        settings[*n] = NULL;
        return err_set_errno(err, -ENOMEM, "turn filters off");
    }
    ++*n;
    return 0;
}

/* "filter.<name>.smudge" adds "<name>", once. */
static void add_name(struct buf *names, const struct setting *setting)
{
    const char *first = setting->key + strlen("filter.");
    const char *last = memrchr(setting->key, '.', setting->len);
    char name[80];

    if (!last || last < first)
        return;
    (void)str_escape(first, (size_t)(last - first), name, sizeof(name));
    for (const char *at = names->data; at && (at = strstr(at, name)); at++)
        if ((at == names->data || at[-1] == ' ') &&
                (at[strlen(name)] == ',' || !at[strlen(name)]))
            return;
    buf_addf(names, "%s%s", names->len > 0 ? ", " : "", name);
}

/* What git reads where nothing is set: in the file that the user has, or in none. */
static const char *usual_file(const struct setting *setting, char path[static PATH_MAX])
{
    const char *name = setting->key[strlen("core.")] == 'a' ? "attributes" : "ignore";
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    if (config && config[0])
        (void)snprintf(path, PATH_MAX, "%s/git/%s", config, name);
    else
        (void)snprintf(path, PATH_MAX, "%s/.config/git/%s", home ? home : "", name);
    return path;
}

/* Replaces the name of a file by the user's; it would be opened, whatever it is. */
static int guard_file(const struct buf *list, const struct setting *setting, char **settings,
        size_t *n, struct carrel_error *err)
{
    char path[PATH_MAX];
    const char *value = users_value(list, setting);

    return add(settings, n, setting, value ? value : usual_file(setting, path), err);
}

static int guard_filters(const struct buf *list, struct scope_guard *guard, struct buf *names,
        struct carrel_error *err)
{
    struct setting setting;
    size_t n = 0;
    int r = 0;

    for (const char *at = list->data; r == 0 && (at = next(list, at, &setting));) {
        if (setting.is_users)
            continue;
        guard->has_transport |= is_one_of(&setting, transport, ARRAY_LEN(transport));
        if (is_one_of(&setting, files, ARRAY_LEN(files)))
            r = guard_file(list, &setting, guard->settings, &n, err);
        if (r < 0 || !is_filter(&setting))
            continue;
        const char *value = users_value(list, &setting);
        r = add(guard->settings, &n, &setting, value ? value : off_value(&setting), err);
        if (!value)
            add_name(names, &setting);
    }
    return r;
}

int scope_guard(const struct git *git, const char *other, struct scope_guard *out,
        struct carrel_error *err)
{
    struct git also = *git;
    AUTO(scope_guard_finish) struct scope_guard guard = { 0 };
    AUTO(buf_finish) struct buf list = BUF_INIT(LIST_MAX);
    AUTO(buf_finish) struct buf names = BUF_INIT(LIST_MAX);
    int r = list_all(git, &list, err);

    also.git_dir = other;
    if (r == 0 && strcmp(other, git->git_dir) != 0)
        r = list_all(&also, &list, err);
    if (r < 0)
        return r;
    guard.settings = calloc(SETTINGS_MAX + 1, sizeof(char *));
    r = guard.settings ? guard_filters(&list, &guard, &names, err)
                       : err_set_errno(err, -ENOMEM, "turn filters off");
    if (r < 0)
        return r;
    if (!guard.settings[0])
        scope_free_settings(ptr_steal(&guard.settings));
    if (names.len > 0)
        guard.filters = strdup(names.data);
    if (names.is_short || (names.len > 0 && !guard.filters))
        return err_set_errno(err, -ENOMEM, "turn filters off");
    *out = guard;
    guard = (struct scope_guard){ 0 };
    return 0;
}

int scope_no_filters(const struct git *git, char ***settings, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf list = BUF_INIT(LIST_MAX);
    struct setting setting;
    size_t n = 0;
    int r = list_all(git, &list, err);

    if (r < 0)
        return r;
    AUTO(scope_free_settings) char **made = calloc(SETTINGS_MAX + 1, sizeof(char *));
    if (!made)
        return err_set_errno(err, -ENOMEM, "turn filters off");
    for (const char *at = list.data; r == 0 && (at = next(&list, at, &setting));) {
        if (is_filter(&setting))
            r = add(made, &n, &setting, off_value(&setting), err);
        else if (!setting.is_users && is_one_of(&setting, files, ARRAY_LEN(files)))
            r = guard_file(&list, &setting, made, &n, err);
    }
    if (r == 0 && n > 0)
        *settings = ptr_steal(&made);
    return r;
}
