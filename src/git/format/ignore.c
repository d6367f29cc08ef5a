/*
 * ignore.c - ignore patterns by file, newest last; the newest pattern that matches decides.
 *
 * A pattern is a slice of its file's text: escapes are decoded during the match.
 */
#include "git/format/ignore.h"
#include "base/err.h"
#include "git/format/wildmatch.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>

/*
 * Enough for millions of ordinary queries; each query adds some. An ordinary file of a thousand
 * patterns needs about ten steps per pattern.
 */
#define FIRST_STEPS UINT64_C(100000000)
#define STEPS_PER_QUESTION 20000

enum {
    NEGATED = 1,   /* "!" */
    ONLY_DIRS = 2, /* "/" at the end */
    ANYWHERE = 4,  /* no other slash: compared with the last component */
};

struct pattern {
    uint32_t at; /* in the text of its file */
    uint32_t len;
    uint32_t literal_len; /* before the first special byte */
    uint32_t flags;
};

struct file {
    char *dir;
    size_t dir_len;
    char *text;
    size_t text_len;
    struct pattern *patterns;
    size_t n;
};

struct ignore {
    struct file *files;
    size_t n;
    size_t room;
    size_t bytes; /* of all texts */
    uint64_t steps;
    bool is_spent;
};

int ignore_new(struct ignore **out, struct carrel_error *err)
{
    struct ignore *ignore = calloc(1, sizeof(*ignore));

    if (!ignore)
        return err_set_errno(err, -ENOMEM, "prepare ignore rules");
    ignore->steps = FIRST_STEPS;
    *out = ignore;
    return 0;
}

static void file_finish(struct file *file)
{
    free(file->dir);
    free(file->text);
    free(file->patterns);
}

void ignore_pop(struct ignore *ignore)
{
    if (ignore->n == 0)
        return;
    struct file *file = &ignore->files[--ignore->n];
    ignore->bytes -= file->text_len;
    file_finish(file);
}

void ignore_free(struct ignore *ignore)
{
    if (!ignore)
        return;
    while (ignore->n > 0)
        ignore_pop(ignore);
    free(ignore->files);
    free(ignore);
}

/*
 * Length without trailing spaces; a space after a backslash is kept, and nothing is trimmed if
 * the backslash is the last byte.
 */
static size_t trimmed_len(const char *line, size_t len)
{
    size_t kept = 0;

    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\\') {
            i++;
            if (i == len)
                return len;
        } else if (line[i] == ' ') {
            continue;
        }
        kept = i + 1;
    }
    return kept;
}

/* False: the line has no pattern. */
static bool parse_line(const char *text, const char *line, size_t len, struct pattern *out)
{
    uint32_t flags = 0;

    if (len == 0 || line[0] == '#')
        return false;
    if (line[len - 1] == '\r')
        len--;
    len = strnlen(line, len); /* git treats a NUL byte as the end of the line */
    len = trimmed_len(line, len);
    if (len > 0 && line[0] == '!') {
        flags |= NEGATED;
        line++;
        len--;
    }
    if (len > 0 && line[len - 1] == '/') {
        flags |= ONLY_DIRS;
        len--;
    }
    if (!memchr(line, '/', len))
        flags |= ANYWHERE;
    else if (line[0] == '/') {
        line++;
        len--;
    }
    if (len == 0)
        return false; /* matches no name */
    const struct wildmatch_text pattern = { line, len };
    *out = (struct pattern){
        .at = (uint32_t)(line - text),
        .len = (uint32_t)len,
        .literal_len = (uint32_t)wildmatch_literal_len(pattern),
        .flags = flags,
    };
    return true;
}

static size_t count_lines(const char *text, size_t len)
{
    size_t n = 1;

    for (const char *at = text; (at = memchr(at, '\n', len - (size_t)(at - text))); at++)
        n++;
    return n;
}

static void parse(struct file *file)
{
    size_t at = 0;

    if (file->text_len >= 3 && memcmp(file->text, "\xef\xbb\xbf", 3) == 0)
        at = 3; /* a byte order mark */
    while (at < file->text_len) {
        const char *line = file->text + at;
        const char *end = memchr(line, '\n', file->text_len - at);
        size_t len = end ? (size_t)(end - line) : file->text_len - at;
        if (parse_line(file->text, line, len, &file->patterns[file->n]))
            file->n++;
        at += len + 1;
    }
}

static int make_room(struct ignore *ignore)
{
    if (ignore->n < ignore->room)
        return 0;
    size_t room = ignore->room ? 2 * ignore->room : 16;
    struct file *files = reallocarray(ignore->files, room, sizeof(*files));
    if (!files)
        return -ENOMEM;
    ignore->files = files;
    ignore->room = room;
    return 0;
}

int ignore_push(struct ignore *ignore, const char *dir, const char *text, size_t len,
        struct carrel_error *err)
{
    if (len > IGNORE_MAX_BYTES - ignore->bytes)
        return err_set(err, -EFBIG,
                "the ignore rules are larger than %u bytes together: shorten them",
                IGNORE_MAX_BYTES);
    struct file file = {
        .dir = strdup(dir),
        .dir_len = strlen(dir),
        .text = malloc(len + 1),
        .text_len = len,
        .patterns = calloc(count_lines(text, len), sizeof(struct pattern)),
    };
    if (!file.dir || !file.text || !file.patterns || make_room(ignore) < 0) {
        file_finish(&file);
        return err_set_errno(err, -ENOMEM, "read ignore rules");
    }
    if (len > 0)
        memcpy(file.text, text, len);
    file.text[len] = '\0';
    parse(&file);
    ignore->files[ignore->n++] = file;
    ignore->bytes += len;
    return 0;
}

/*
 * As git does it: the literal prefix is compared first, and the rest is a pattern of its own.
 * As in git, a "**" at the start of the rest then counts as one after a slash.
 */
static bool pattern_matches(struct ignore *ignore, const struct file *file,
        const struct pattern *pattern, struct wildmatch_text subject)
{
    bool is_name = pattern->flags & ANYWHERE;
    size_t n = pattern->literal_len;
    const char *text = file->text + pattern->at;

    if (subject.len < n || memcmp(subject.data, text, n) != 0)
        return false;
    if (n == pattern->len)
        return subject.len == n;
    const struct wildmatch_text rest = { text + n, pattern->len - n };
    const struct wildmatch_text left = { subject.data + n, subject.len - n };
    return wildmatch(rest, left, is_name ? WILDMATCH_NAME : WILDMATCH_PATH, &ignore->steps);
}

/* The newest pattern of this file that matches, or NULL. */
static const struct pattern *last_match(struct ignore *ignore, const struct file *file,
        struct wildmatch_text path, struct wildmatch_text name, bool is_dir)
{
    size_t skip = file->dir_len > 0 ? file->dir_len + 1 : 0;

    if (path.len <= skip || (skip > 0 && (memcmp(path.data, file->dir, file->dir_len) != 0 ||
                                                 path.data[file->dir_len] != '/')))
        return NULL;
    const struct wildmatch_text below = { path.data + skip, path.len - skip };
    for (size_t i = file->n; i-- > 0;) {
        const struct pattern *pattern = &file->patterns[i];
        if (ignore->steps == 0)
            return NULL;
        ignore->steps--;
        if ((pattern->flags & ONLY_DIRS) && !is_dir)
            continue;
        if (pattern_matches(ignore, file, pattern, pattern->flags & ANYWHERE ? name : below))
            return pattern;
    }
    return NULL;
}

bool ignore_matches(struct ignore *ignore, const char *path, bool is_dir)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const struct wildmatch_text whole = { path, strlen(path) };
    const struct wildmatch_text name = { base, strlen(base) };

    if (ignore->is_spent)
        return false;
    ignore->steps += STEPS_PER_QUESTION;
    for (size_t i = ignore->n; i-- > 0;) {
        const struct pattern *match =
                last_match(ignore, &ignore->files[i], whole, name, is_dir);
        if (ignore->steps == 0)
            break;
        if (match)
            return !(match->flags & NEGATED);
    }
    ignore->is_spent = ignore->steps == 0;
    return false;
}

bool ignore_is_spent(const struct ignore *ignore)
{
    return ignore->is_spent;
}
