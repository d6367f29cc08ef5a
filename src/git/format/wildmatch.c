/*
 * wildmatch.c - matches without recursion.
 *
 * Two positions for backtracking are enough: the last "*" and the last "**". What follows the
 * last "**" can match anywhere later in the text, so alternatives before it need no retry; the
 * same holds for the last "*" within one component of the path. So the work is bounded by a
 * product of lengths, and no pattern takes exponential time.
 */
#include "git/format/wildmatch.h"
#include <string.h>

/* Reading position in the pattern. */
struct reader {
    const unsigned char *at;
    const unsigned char *end;
};

static bool is_special(unsigned char c)
{
    return c == '*' || c == '?' || c == '[' || c == '\\';
}

size_t wildmatch_literal_len(struct wildmatch_text pattern)
{
    size_t n = 0;

    while (n < pattern.len && !is_special((unsigned char)pattern.data[n]))
        n++;
    return n;
}

/* ASCII classes, independent of the locale; space has no vertical tab, as in git. */
static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(unsigned char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(unsigned char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_alpha(unsigned char c)
{
    return is_lower(c) || is_upper(c);
}

static bool is_alnum(unsigned char c)
{
    return is_alpha(c) || is_digit(c);
}

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\t';
}

static bool is_cntrl(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

static bool is_print(unsigned char c)
{
    return c >= 0x20 && c < 0x7f;
}

static bool is_graph(unsigned char c)
{
    return c > 0x20 && c < 0x7f;
}

static bool is_punct(unsigned char c)
{
    return is_graph(c) && !is_alnum(c);
}

static bool is_space(unsigned char c)
{
    return is_blank(c) || c == '\n' || c == '\r';
}

static bool is_xdigit(unsigned char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static const struct class
{
    const char *name;
    bool (*has)(unsigned char c);
} classes[] = {
    { "alnum", is_alnum },
    { "alpha", is_alpha },
    { "blank", is_blank },
    { "cntrl", is_cntrl },
    { "digit", is_digit },
    { "graph", is_graph },
    { "lower", is_lower },
    { "print", is_print },
    { "punct", is_punct },
    { "space", is_space },
    { "upper", is_upper },
    { "xdigit", is_xdigit },
};

enum verdict { NO, YES, NEVER /* the pattern is malformed: nothing matches */ };

/*
 * "[:name:]" with r->at after "[:". Reads up to its "]". If there is no ":" before that "]", it
 * is not a class: the "[" is literal and nothing is read.
 */
static enum verdict read_class(struct reader *r, unsigned char c, bool *was_class)
{
    const unsigned char *close = memchr(r->at, ']', (size_t)(r->end - r->at));

    *was_class = false;
    if (!close)
        return NEVER;
    if (close == r->at || close[-1] != ':')
        return c == '[' ? YES : NO;
    *was_class = true;
    size_t len = (size_t)(close - 1 - r->at);
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strlen(classes[i].name) != len || memcmp(classes[i].name, r->at, len) != 0)
            continue;
        r->at = close + 1;
        return classes[i].has(c) ? YES : NO;
    }
    return NEVER;
}

/* One byte of a set, perhaps escaped. False at the end of the pattern. */
static bool read_member(struct reader *r, unsigned char *member)
{
    if (r->at < r->end && *r->at == '\\')
        r->at++;
    if (r->at == r->end)
        return false;
    *member = *r->at++;
    return true;
}

/* "[...]" with r->at after its "[": whether it has `c`. Reads past its "]". */
static enum verdict read_set(struct reader *r, unsigned char c)
{
    bool is_negated = r->at < r->end && (*r->at == '!' || *r->at == '^');
    bool is_first = true; /* a "]" here is literal */
    bool has_low = false; /* `low` can begin a range */
    unsigned char low = 0;
    bool is_in = false;

    if (is_negated)
        r->at++;
    for (;; is_first = false) {
        unsigned char high;
        if (r->at == r->end)
            return NEVER;
        if (*r->at == ']' && !is_first)
            break;
        size_t left = (size_t)(r->end - r->at);
        if (*r->at == '-' && has_low && left > 1 && r->at[1] != ']') {
            r->at++;
            if (!read_member(r, &high))
                return NEVER;
            is_in |= c >= low && c <= high;
            has_low = false;
        } else if (*r->at == '[' && left > 1 && r->at[1] == ':') {
            bool was_class;
            struct reader inner = { r->at + 2, r->end };
            enum verdict verdict = read_class(&inner, c, &was_class);
            if (verdict == NEVER)
                return NEVER;
            is_in |= verdict == YES;
            r->at = was_class ? inner.at : r->at + 1;
            has_low = !was_class;
            low = '[';
        } else {
            if (!read_member(r, &low))
                return NEVER;
            is_in |= c == low;
            has_low = true;
        }
    }
    r->at++;
    return is_in != is_negated ? YES : NO;
}

/* Reads one element that matches exactly one byte: does it match `c`? */
static enum verdict read_one(struct reader *r, unsigned char c, enum wildmatch_scope scope)
{
    bool is_wall = scope == WILDMATCH_PATH && c == '/';

    switch (*r->at++) {
    case '?':
        return is_wall ? NO : YES;
    case '[': {
        enum verdict verdict = read_set(r, c);
        return verdict == YES && is_wall ? NO : verdict;
    }
    case '\\':
        if (r->at == r->end)
            return NEVER;
        return *r->at++ == c ? YES : NO;
    default:
        return r->at[-1] == c ? YES : NO;
    }
}

/* Where to continue if the part after a star did not match. */
struct retry {
    const unsigned char *pattern; /* NULL: there is nothing to retry */
    const unsigned char *text;    /* where it was tried last */
    bool is_by_component;         /* for a star and slash: only after the next slash */
};

static bool retry_star(struct retry *star, const unsigned char *end, bool stops_at_slash)
{
    if (!star->pattern || star->text == end || (stops_at_slash && *star->text == '/'))
        return false;
    star->text++;
    return true;
}

static bool retry_any(struct retry *any, const unsigned char *end)
{
    if (!any->pattern || any->text == end)
        return false;
    if (!any->is_by_component) {
        any->text++;
        return true;
    }
    const unsigned char *slash = memchr(any->text, '/', (size_t)(end - any->text));
    if (!slash)
        return false;
    any->text = slash + 1;
    return true;
}

/* "**" crosses slashes if it is a whole component. */
static bool is_crossing(const unsigned char *begin, const unsigned char *first,
        const unsigned char *behind, const unsigned char *end)
{
    if (behind - first < 2 || (first > begin && first[-1] != '/'))
        return false;
    return behind == end || *behind == '/' ||
           (*behind == '\\' && end - behind > 1 && behind[1] == '/');
}

bool wildmatch(struct wildmatch_text pattern, struct wildmatch_text text,
        enum wildmatch_scope scope, uint64_t *steps)
{
    const unsigned char *begin = (const unsigned char *)pattern.data;
    const unsigned char *t = (const unsigned char *)text.data;
    const unsigned char *t_end = t + text.len;
    struct reader r = { begin, begin + pattern.len };
    struct retry star = { 0 };
    struct retry any = { 0 };

    for (; *steps > 0; --*steps) {
        if (r.at < r.end && *r.at == '*') {
            const unsigned char *first = r.at;
            while (r.at < r.end && *r.at == '*')
                r.at++;
            if (scope == WILDMATCH_PATH && is_crossing(begin, first, r.at, r.end)) {
                bool has_slash = r.at < r.end && *r.at == '/';
                r.at += has_slash;
                any = (struct retry){ r.at, t, has_slash };
                star = (struct retry){ 0 };
            } else {
                star = (struct retry){ r.at, t, false };
            }
            continue;
        }
        if (r.at == r.end && t == t_end)
            return true;
        if (r.at < r.end && t < t_end) {
            enum verdict verdict = read_one(&r, *t, scope);
            if (verdict == NEVER)
                return false;
            if (verdict == YES) {
                t++;
                continue;
            }
        }
        if (retry_star(&star, t_end, scope == WILDMATCH_PATH)) {
            r.at = star.pattern;
            t = star.text;
        } else if (retry_any(&any, t_end)) {
            star = (struct retry){ 0 };
            r.at = any.pattern;
            t = any.text;
        } else {
            return false;
        }
    }
    return false;
}
