/* config.c - the table of settings that a run gets, and git's quoting. */
#include "git/format/config.h"
#include "base/buf.h"
#include <string.h>

/* A setting of the user that is passed on; `name` is in lower case, as git lists it. */
struct passed {
    char section[16];
    char name[24];
    bool has_sub;
    bool is_bool; /* may have no value */
};

static const struct passed table[] = {
    { .section = "user", .name = "name" },
    { .section = "user", .name = "email" },
    { .section = "author", .name = "name" },
    { .section = "author", .name = "email" },
    { .section = "committer", .name = "name" },
    { .section = "committer", .name = "email" },
    /*
     * How files and their content appear on disk: else the run sees changes that do not exist.
     */
    { .section = "core", .name = "filemode", .is_bool = true },
    { .section = "core", .name = "symlinks", .is_bool = true },
    { .section = "core", .name = "ignorecase", .is_bool = true },
    { .section = "core", .name = "autocrlf", .is_bool = true },
    { .section = "core", .name = "safecrlf", .is_bool = true },
    { .section = "core", .name = "eol" },
    { .section = "core", .name = "checkroundtripencoding" },
    { .section = "filter", .name = "clean", .has_sub = true },
    { .section = "filter", .name = "smudge", .has_sub = true },
    { .section = "filter", .name = "process", .has_sub = true },
    { .section = "filter", .name = "required", .has_sub = true, .is_bool = true },
    /* Which submodules are active; their URLs are not passed on. */
    { .section = "submodule", .name = "active", .has_sub = true, .is_bool = true },
    { .section = "i18n", .name = "commitencoding" },
};

/* "section.sub.name", value: one element of the list. */
struct setting {
    const char *key;
    size_t key_len;
    const char *value; /* NUL-terminated; NULL: a key without a value */
};

/*
 * Takes the element at `at`; returns the start of the next one, NULL at the end. The last
 * element must have its NUL too: a truncated answer does not count.
 */
static const char *next(const char *at, const char *end, struct setting *out)
{
    const char *zero = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
    if (!zero)
        return NULL;
    const char *line_end = memchr(at, '\n', (size_t)(zero - at));

    out->key = at;
    out->key_len = (size_t)((line_end ? line_end : zero) - at);
    out->value = line_end ? line_end + 1 : NULL;
    return zero + 1;
}

static bool equals(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

static const struct passed *find_passed(
        const struct setting *setting, const char **sub, size_t *sub_len)
{
    const char *first = memchr(setting->key, '.', setting->key_len);
    const char *last = memrchr(setting->key, '.', setting->key_len);
    if (!first)
        return NULL;
    size_t section_len = (size_t)(first - setting->key);
    size_t name_len = setting->key_len - (size_t)(last + 1 - setting->key);

    *sub = first == last ? NULL : first + 1;
    *sub_len = first == last ? 0 : (size_t)(last - first) - 1;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].has_sub == (*sub != NULL) &&
                equals(setting->key, section_len, table[i].section) &&
                equals(last + 1, name_len, table[i].name))
            return &table[i];
    }
    return NULL;
}

/* git-config(1), "Values" and "Syntax": \n, \" and \\ are sufficient. */
static void add_quoted(struct buf *out, const char *text)
{
    buf_add_str(out, "\"");
    for (; *text; text++) {
        if (*text == '\n')
            buf_add_str(out, "\\n");
        else if (*text == '"' || *text == '\\')
            buf_add(out, (const char[]){ '\\', *text }, 2);
        else
            buf_add(out, text, 1);
    }
    buf_add_str(out, "\"");
}

bool config_add(struct buf *out, const char *section, const char *sub, const char *name,
        const char *value)
{
    if (sub && strchr(sub, '\n'))
        return false;
    buf_addf(out, "[%s", section);
    if (sub) {
        buf_add_str(out, " ");
        add_quoted(out, sub);
    }
    buf_addf(out, "]\n\t%s", name);
    if (value) {
        buf_add_str(out, " = ");
        add_quoted(out, value);
    }
    buf_add_str(out, "\n");
    return true;
}

static void add_ours(const struct config_terms *terms, struct buf *out)
{
    (void)config_add(
            out, "core", NULL, "repositoryformatversion", terms->is_sha256 ? "1" : "0");
    if (terms->is_sha256)
        (void)config_add(out, "extensions", NULL, "objectformat", "sha256");
    (void)config_add(out, "core", NULL, "bare", "false");
    (void)config_add(out, "core", NULL, "logallrefupdates", "true");
    /* A run is too short to pack objects, and no process may start after each commit. */
    (void)config_add(out, "gc", NULL, "auto", "0");
    (void)config_add(out, "maintenance", NULL, "auto", "false");
    if (terms->attributes_file)
        (void)config_add(out, "core", NULL, "attributesfile", terms->attributes_file);
}

/* A commit must not fail because the user has not configured a name. */
static void add_missing_user(const char *list, size_t len, struct buf *out)
{
    const char *name = config_find(list, len, "user.name");
    const char *email = config_find(list, len, "user.email");

    if (!name || !name[0])
        (void)config_add(out, "user", NULL, "name", "carrel");
    if (!email || !email[0])
        (void)config_add(out, "user", NULL, "email", "carrel@localhost");
}

void config_write(
        const struct config_terms *terms, const char *list, size_t len, struct buf *out)
{
    const char *end = list ? list + len : NULL;
    struct setting setting;

    add_ours(terms, out);
    for (const char *at = list; (at = next(at, end, &setting)) != NULL;) {
        const char *sub;
        size_t sub_len;
        const struct passed *passed = find_passed(&setting, &sub, &sub_len);
        if (!passed || (!setting.value && !passed->is_bool))
            continue;
        AUTO(free) char *sub_text = sub ? strndup(sub, sub_len) : NULL;
        if (sub && !sub_text) {
            out->is_short = true; /* the caller checks this flag */
            return;
        }
        (void)config_add(out, passed->section, sub_text, passed->name, setting.value);
    }
    add_missing_user(list, len, out);
}

const char *config_find(const char *list, size_t len, const char *key)
{
    const char *end = list ? list + len : NULL;
    const char *found = NULL;
    struct setting setting;

    for (const char *at = list; (at = next(at, end, &setting)) != NULL;) {
        if (equals(setting.key, setting.key_len, key))
            found = setting.value;
    }
    return found;
}
