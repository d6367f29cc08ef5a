/* health.c - carrel health. */
#include "core/host/health.h"
#include "base/auto.h"
#include "base/str.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <stdio.h>

static const char help[] =
        "Usage: carrel health [options]\n\n"
        "Creates a sandbox and prints for each protection whether it works here, for root\n"
        "and for ordinary users (rootless), and how to enable what does not. Only root\n"
        "can fill both columns. Exit status: 0 if a default run works for this user,\n"
        "otherwise 1.";

static const struct option_row rows[] = { REPORT_JSON, REPORT_HELP };

enum { STATUS_UNHEALTHY = 1 };

static const char *safe(const char *text, char *out, size_t size)
{
    return str_escape(text, strlen(text), out, size);
}

static void print_facts(const struct health_view *view)
{
    char shown[2 * sizeof(view->found.facts[0].value)];

    for (size_t i = 0; i < view->found.n_facts; i++)
        printf("  %-17s %s\n", view->found.facts[i].name,
                safe(view->found.facts[i].value, shown, sizeof(shown)));
}

static void print_table(const struct health *health)
{
    static const char *const words[] = {
        [HEALTH_UNKNOWN] = "-",
        [HEALTH_WORKS] = "yes",
        [HEALTH_MISSING] = "NO",
    };

    printf("\n  %-13s %-5s %-9s %s\n", "protection", "root", "rootless", "meaning");
    for (enum protection p = 0; p < PROTECT_COUNT; p++)
        printf("  %-13s %-5s %-9s %s\n", protection_name(p),
                words[health_state(&health->views[HEALTH_ROOT], p)],
                words[health_state(&health->views[HEALTH_ROOTLESS], p)], protection_meaning(p));
}

static void print_set(uint64_t set)
{
    for (enum protection p = 0; p < PROTECT_COUNT; p++)
        if (set & PROTECT_BIT(p))
            printf(" %s", protection_name(p));
}

/* "label text", broken between words; further lines are indented. */
static void print_wrapped(const char *label, const char *text)
{
    const size_t width = 92;
    size_t at = strlen(label);

    (void)fputs(label, stdout);
    while (*text) {
        size_t len = strcspn(text, " ");
        if (at + 1 + len > width) {
            (void)fputs("\n        ", stdout);
            at = 8;
        }
        printf(" %.*s", (int)len, text);
        at += 1 + len;
        text += len + strspn(text + len, " ");
    }
    (void)putchar('\n');
}

static void print_gaps(enum health_user user, const struct health_view *view)
{
    char shown[2 * sizeof(view->error.message)];

    if (!view->is_known) {
        printf("\n%s: %s\n", health_user_name(user),
                safe(view->error.message, shown, sizeof(shown)));
        return;
    }
    if (!view->is_able) {
        printf("\n"
               "%s: cannot create a sandbox\n",
                health_user_name(user));
        print_wrapped("  error:", safe(view->error.message, shown, sizeof(shown)));
    }
    for (size_t i = 0; i < view->found.n_gaps; i++) {
        const struct health_gap *gap = &view->found.gaps[i];
        printf("\n%s: missing", health_user_name(user));
        print_set(gap->set);
        (void)putchar('\n');
        print_wrapped("  why:  ", safe(gap->why, shown, sizeof(shown)));
        print_wrapped("  to do:", safe(gap->remedy, shown, sizeof(shown)));
    }
    if (view->is_able && view->held_by[LIMIT_MEMORY] == HELD_BY_RLIMIT)
        print_wrapped("  until then:",
                "default limits are enforced by rlimits (memory per process, "
                "pids per sandbox, cpu not at all), and --memory, --pids, "
                "--cpu are refused unless --best-effort lists them");
}

static void print_text(const struct health *health)
{
    const struct health_view *own = &health->views[health->caller];

    printf("carrel " CARREL_VERSION ": a default run %s for this user (%s)\n\n",
            own->is_able ? "works" : "does NOT work", health_user_name(health->caller));
    print_facts(own);
    print_table(health);
    for (enum health_user user = 0; user < HEALTH_USERS; user++)
        print_gaps(user, &health->views[user]);
}

int cmd_health(int argc, char **argv)
{
    AUTO(buf_finish) struct buf json = BUF_INIT(1U << 20);
    struct report_args args;
    struct health health;

    int r = report_args_parse(rows, ARRAY_LEN(rows), help, argc, argv, &args);
    if (r != 0)
        return r < 0 ? STATUS_FAILED : 0;
    health_check(&health);
    int status = health.views[health.caller].is_able ? 0 : STATUS_UNHEALTHY;
    if (args.is_json) {
        health_write_json(&health, &json);
        return report_print_json(&json, status);
    }
    print_text(&health);
    return report_finish(status);
}
