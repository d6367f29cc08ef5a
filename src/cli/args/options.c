/* options.c - parses and prints options by their table. */
#include "cli/args/options.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include <errno.h>
#include <stdio.h>

static const struct option_row *find(
        const struct option_row *rows, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
            return &rows[i];
    return NULL;
}

static int unknown(
        const struct option_row *rows, size_t n, const char *word, struct carrel_error *err)
{
    char shown[64];
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    size_t len = strcspn(word + 2, "=");

    for (size_t i = 0; word[1] == '-' && i < n; i++)
        suggest_offer(rows[i].name, word + 2, len, &best, &distance);
    (void)str_escape(word, strcspn(word, "="), shown, sizeof(shown));
    if (best)
        return err_set(err, -EINVAL, "unknown option '%s' (did you mean '--%s'?)", shown, best);
    return err_set(err, -EINVAL, "unknown option '%s'; --help lists them", shown);
}

/* One option at argv[*at]; moves *at past it. */
static int take_one(const struct option_row *rows, size_t n, char *const *argv, int *at,
        void *target, struct carrel_error *err)
{
    const char *word = argv[*at];
    int is_long = word[1] == '-';
    const char *name = word + 1 + is_long;
    const char *equals = is_long ? strchr(name, '=') : NULL;
    size_t len = equals ? (size_t)(equals - name) : strlen(name);

    const struct option_row *row = (len == 1) == !is_long ? find(rows, n, name, len) : NULL;
    if (!row)
        return unknown(rows, n, word, err);
    if (!row->argument && equals)
        return err_set(err, -EINVAL, "option '--%s' takes no value", row->name);
    const char *value = NULL;
    if (row->argument) {
        value = equals ? equals + 1 : argv[*at + 1];
        if (!value)
            return err_set(err, -EINVAL, "option '%s' needs a value: %s", word, row->argument);
        *at += equals ? 1 : 2;
    } else {
        *at += 1;
    }
    if (!row->take) {
        *(bool *)((char *)target + row->flag) = true;
        return 0;
    }
    int r = row->take(target, value, err);
    return r < 0 ? err_wrap(err, r, "%s%s", is_long ? "--" : "-", row->name) : 0;
}

int options_parse(const struct option_row *rows, size_t n, int argc, char *const *argv,
        void *target, struct carrel_error *err)
{
    int at = 1;

    while (at < argc && argv[at][0] == '-' && argv[at][1]) {
        if (strcmp(argv[at], "--") == 0)
            return at + 1;
        int r = take_one(rows, n, argv, &at, target, err);
        if (r < 0)
            return r;
    }
    return at;
}

int options_parse_mixed(const struct option_row *rows, size_t n, int argc, char **argv,
        void *target, char **words, struct carrel_error *err)
{
    int n_words = 0;
    int at = 0;

    /* Each round parses options from argv[at + 1] on, up to the next word. */
    while (at < argc) {
        int r = options_parse(rows, n, argc - at, argv + at, target, err);
        if (r < 0)
            return r;
        at += r;
        bool is_rest = r > 1 && strcmp(argv[at - 1], "--") == 0;
        do {
            if (at < argc)
                words[n_words++] = argv[at];
        } while (is_rest && ++at < argc);
    }
    return n_words;
}

bool options_ask_json(int argc, char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--format=json") == 0 ||
                (strcmp(argv[i], "--format") == 0 && i + 1 < argc &&
                        strcmp(argv[i + 1], "json") == 0))
            return true;
    return false;
}

#define HELP_WIDTH 80
#define HELP_INDENT 30 /* where the texts begin */
#define HELP_LONG 24   /* tables with more rows get headings */

static void print_wrapped(const char *text)
{
    size_t column = HELP_INDENT;

    while (*text) {
        size_t len = strcspn(text, " ");
        bool is_first = column == HELP_INDENT;
        if (!is_first && column + 1 + len > HELP_WIDTH) {
            printf("\n%*s", HELP_INDENT, "");
            column = HELP_INDENT;
            is_first = true;
        }
        printf("%s%.*s", is_first ? "" : " ", (int)len, text);
        column += len + !is_first;
        text += len + strspn(text + len, " ");
    }
    (void)putchar('\n');
}

static void print_row(const struct option_row *row)
{
    int n = printf("  %s%s%s%s", row->name[1] ? "--" : "-", row->name, row->argument ? " " : "",
            row->argument ? row->argument : "");

    if (n < HELP_INDENT)
        printf("%*s", HELP_INDENT - n, "");
    else
        printf("\n%*s", HELP_INDENT, "");
    print_wrapped(row->help);
}

static bool is_same_group(const struct option_row *a, const struct option_row *b)
{
    return a->group == b->group || (a->group && b->group && strcmp(a->group, b->group) == 0);
}

static bool is_first_of_group(const struct option_row *rows, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_same_group(&rows[i], &rows[at]))
            return false;
    return true;
}

void options_print(const struct option_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (n <= HELP_LONG) {
            print_row(&rows[i]);
            continue;
        }
        if (!is_first_of_group(rows, i))
            continue;
        if (rows[i].group)
            printf("\n%s:\n", rows[i].group);
        for (size_t j = i; j < n; j++)
            if (is_same_group(&rows[i], &rows[j]))
                print_row(&rows[j]);
    }
}
