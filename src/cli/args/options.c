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

void options_print(const struct option_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char left[64];
        (void)snprintf(left, sizeof(left), "%s%s%s%s", rows[i].name[1] ? "--" : "-",
                rows[i].name, rows[i].argument ? " " : "",
                rows[i].argument ? rows[i].argument : "");
        printf("  %-27s %s\n", left, rows[i].help);
    }
}
