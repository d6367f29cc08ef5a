/* repo_format.c - parses git's configuration syntax, as far as a few settings need it. */
#include "git/repo_format.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define SECTION_MAX 64
#define VALUE_MAX 8192

void repo_format_finish(struct repo_format format)
{
    free(format.work_tree);
}

struct reader {
    const char *at, *end;
    const char *name;
    unsigned line;
    char section[SECTION_MAX]; /* lower case; empty if it has a subsection */
    char word[SECTION_MAX];    /* lower case, in either case */
    char key[SECTION_MAX];     /* lower case, truncated if longer: then we do not need it */
    struct buf value;
    bool has_value; /* "key" alone means true, "key =" does not */
};

static int malformed(const struct reader *reader, struct carrel_error *err)
{
    return err_set(
            err, -EBADMSG, "%s:%u: this is not git configuration", reader->name, reader->line);
}

static int peek(const struct reader *reader)
{
    return reader->at < reader->end ? (unsigned char)*reader->at : -1;
}

static int next(struct reader *reader)
{
    int c = peek(reader);

    if (c >= 0)
        reader->at++;
    if (c == '\n')
        reader->line++;
    return c;
}

static bool is_word_byte(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-';
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static void skip_blanks(struct reader *reader)
{
    while (is_blank(peek(reader)))
        (void)next(reader);
}

static void skip_line(struct reader *reader)
{
    while (peek(reader) >= 0 && next(reader) != '\n')
        ;
}

static void read_word(struct reader *reader, char word[static SECTION_MAX], int extra)
{
    size_t len = 0;

    while (is_word_byte(peek(reader)) || (extra && peek(reader) == extra)) {
        int c = next(reader);
        if (len + 1 < SECTION_MAX)
            word[len++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    word[len] = '\0';
}

/* After the '['. */
static int read_section(struct reader *reader, struct carrel_error *err)
{
    read_word(reader, reader->section, '.');
    memcpy(reader->word, reader->section, sizeof(reader->word));
    skip_blanks(reader);
    if (peek(reader) == '"') {
        (void)next(reader);
        for (int c = next(reader); c != '"'; c = next(reader)) {
            if (c == '\\')
                c = next(reader);
            if (c < 0 || c == '\n')
                return malformed(reader, err);
        }
        reader->section[0] = '\0';
    }
    return next(reader) == ']' ? 0 : malformed(reader, err);
}

static int read_escape(struct reader *reader, struct carrel_error *err)
{
    static const char from[] = "\"\\ntb", to[] = "\"\\\n\t\b";
    int c = next(reader);

    if (c == '\r' && peek(reader) == '\n')
        c = next(reader);
    if (c == '\n') /* continues in the next line */
        return 0;
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (!found)
        return malformed(reader, err);
    buf_add(&reader->value, &to[found - from], 1);
    return 0;
}

/* After the '=': to the end of the line, without quotes, comments and trailing blanks. */
static int read_value(struct reader *reader, struct carrel_error *err)
{
    bool is_quoted = false;
    size_t solid = 0; /* length without trailing blanks */
    int r = 0;

    skip_blanks(reader);
    for (;;) {
        int c = next(reader);
        if (c < 0 || c == '\n')
            break;
        if (!is_quoted && (c == '#' || c == ';')) {
            skip_line(reader);
            break;
        }
        char byte = (char)c;
        if (c == '"')
            is_quoted = !is_quoted;
        else if (c == '\\')
            r = read_escape(reader, err);
        else
            buf_add(&reader->value, &byte, 1);
        if (r < 0)
            return r;
        if (is_quoted || !is_blank(c))
            solid = reader->value.len;
    }
    if (is_quoted)
        return malformed(reader, err);
    /* A value that is too long is truncated: none that we need is. */
    if (reader->value.data) {
        reader->value.len = solid;
        reader->value.data[solid] = '\0';
    }
    return 0;
}

static int read_setting(struct reader *reader, struct carrel_error *err)
{
    read_word(reader, reader->key, 0);
    skip_blanks(reader);
    buf_clear(&reader->value);
    reader->has_value = peek(reader) == '=';
    if (reader->has_value) {
        (void)next(reader);
        return read_value(reader, err);
    }
    int c = peek(reader);
    if (c >= 0 && c != '\n' && c != '#' && c != ';')
        return malformed(reader, err);
    skip_line(reader);
    return 0;
}

static bool is_yes(const struct reader *reader, const char *value)
{
    return !reader->has_value || strcasecmp(value, "true") == 0 ||
           strcasecmp(value, "yes") == 0 || strcasecmp(value, "on") == 0 ||
           strcmp(value, "1") == 0;
}

/* Git takes numbers too; what it might take as true is read, since it may name commands. */
static bool may_be_yes(const struct reader *reader, const char *value)
{
    return !reader->has_value ||
           (value[0] && strcasecmp(value, "false") != 0 && strcasecmp(value, "no") != 0 &&
                   strcasecmp(value, "off") != 0 && strcmp(value, "0") != 0);
}

static int set_version(const struct reader *reader, const char *value, struct carrel_error *err)
{
    uint64_t version;
    char shown[64];

    if (str_parse_u64(value, &version) == 0 && version <= 1)
        return 0;
    return err_set(err, -ENOTSUP,
            "%s: the repository has format version '%s', which carrel does not know",
            reader->name, str_escape(value, strlen(value), shown, sizeof(shown)));
}

static int set_core(struct repo_format *format, const struct reader *reader, const char *value,
        struct carrel_error *err)
{
    if (strcmp(reader->key, "repositoryformatversion") == 0)
        return set_version(reader, value, err);
    if (strcmp(reader->key, "bare") == 0) {
        format->is_bare = is_yes(reader, value);
    } else if (strcmp(reader->key, "worktree") == 0) {
        char *copy = strdup(value);
        if (!copy)
            return err_set_errno(err, -ENOMEM, "read %s", reader->name);
        free(format->work_tree);
        format->work_tree = copy;
    }
    return 0;
}

static void set_extension(
        struct repo_format *format, const struct reader *reader, const char *value)
{
    static const char *const harmless[] = { "noop", "noop-v1", "preciousobjects",
        "relativeworktrees", "compatobjectformat", "submodulepathconfig" };

    if (strcmp(reader->key, "objectformat") == 0) {
        format->is_sha256 = strcasecmp(value, "sha256") == 0;
    } else if (strcmp(reader->key, "refstorage") == 0) {
        format->has_file_refs = strcasecmp(value, "files") == 0;
    } else if (strcmp(reader->key, "partialclone") == 0) {
        format->is_partial = true;
    } else if (strcmp(reader->key, "worktreeconfig") == 0) {
        format->has_worktree_config = may_be_yes(reader, value);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
            if (strcmp(reader->key, harmless[i]) == 0)
                return;
        format->has_file_refs = false;
    }
}

/* "filter", or in an old form "filter.name". */
static bool is_section(const struct reader *reader, const char *name)
{
    size_t len = strlen(name);

    return strncmp(reader->word, name, len) == 0 &&
           (reader->word[len] == '\0' || reader->word[len] == '.');
}

/* What follows may be a setting that only git can judge: see scope.h. */
static void note_section(struct repo_format *format, const struct reader *reader)
{
    bool is_include = is_section(reader, "include") || is_section(reader, "includeif");

    format->may_name_commands |= is_include || is_section(reader, "filter");
    format->may_name_transport |=
            is_include || is_section(reader, "credential") || is_section(reader, "http");
}

static void note_setting(
        struct repo_format *format, const struct reader *reader, const char *value)
{
    static const char *const names[] = { "sshcommand", "gitproxy", "askpass", "uploadpack",
        "vcs", "proxy" };

    format->may_name_commands |= strcmp(reader->key, "attributesfile") == 0 ||
                                 strcmp(reader->key, "excludesfile") == 0;
    if (is_section(reader, "remote") && strcmp(reader->key, "promisor") == 0)
        format->is_partial |= is_yes(reader, value);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        format->may_name_transport |= strcmp(reader->key, names[i]) == 0;
}

static int read_all(struct repo_format *format, struct reader *reader, struct carrel_error *err)
{
    int r = 0;

    while (r == 0 && peek(reader) >= 0) {
        int c = peek(reader);
        if (is_blank(c) || c == '\n') {
            (void)next(reader);
        } else if (c == '#' || c == ';') {
            skip_line(reader);
        } else if (c == '[') {
            (void)next(reader);
            r = read_section(reader, err);
            note_section(format, reader);
        } else if (!is_word_byte(c)) {
            r = malformed(reader, err);
        } else {
            r = read_setting(reader, err);
            const char *value = reader->value.data ? reader->value.data : "";
            note_setting(format, reader, value);
            if (r == 0 && strcmp(reader->section, "core") == 0)
                r = set_core(format, reader, value, err);
            else if (r == 0 && strcmp(reader->section, "extensions") == 0)
                set_extension(format, reader, value);
        }
    }
    return r;
}

int repo_format_parse(struct repo_format *format, const char *text, size_t len,
        const char *name, struct carrel_error *err)
{
    struct reader reader = {
        .at = text,
        .end = text + len,
        .name = name,
        .line = 1,
        .value = BUF_INIT(VALUE_MAX),
    };

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        reader.at += 3;
    int r = read_all(format, &reader, err);
    buf_finish(reader.value);
    return r;
}
