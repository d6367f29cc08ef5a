/* health.c - carrel health. */
#include "base/auto.h"
#include "base/str.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <carrel/host.h>
#include <stdio.h>

DEFINE_AUTO(struct carrel_health *, carrel_health_free)

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

static void print_facts(const struct carrel_health_user *user)
{
    char shown[800];

    for (size_t i = 0; user->facts[i]; i++)
        printf("  %-17s %s\n", user->facts[i]->name,
                safe(user->facts[i]->value, shown, sizeof(shown)));
}

static void print_table(const struct carrel_health *health)
{
    static const char *const words[] = {
        [CARREL_HEALTH_UNKNOWN] = "-",
        [CARREL_HEALTH_WORKS] = "yes",
        [CARREL_HEALTH_MISSING] = "NO",
    };

    printf("\n  %-13s %-5s %-9s %s\n", "protection", "root", "rootless", "meaning");
    for (size_t i = 0; health->protections[i]; i++) {
        const struct carrel_health_protection *one = health->protections[i];
        printf("  %-13s %-5s %-9s %s\n", one->name, words[one->root], words[one->rootless],
                one->meaning);
    }
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

static bool has_rlimits_only(const struct carrel_health_user *user)
{
    for (size_t i = 0; user->limits[i]; i++)
        if (strcmp(user->limits[i]->name, "memory") == 0)
            return strcmp(user->limits[i]->held_by, "rlimit") == 0;
    return false;
}

static void print_gaps(const struct carrel_health_user *user)
{
    char shown[1024];

    if (!user->is_known) {
        printf("\n%s: %s\n", user->name, safe(user->error, shown, sizeof(shown)));
        return;
    }
    if (!user->is_able) {
        printf("\n"
               "%s: cannot create a sandbox\n",
                user->name);
        print_wrapped("  error:", safe(user->error, shown, sizeof(shown)));
    }
    for (size_t i = 0; user->gaps[i]; i++) {
        const struct carrel_health_gap *gap = user->gaps[i];
        printf("\n%s: missing", user->name);
        for (size_t j = 0; gap->protections[j]; j++)
            printf(" %s", gap->protections[j]);
        (void)putchar('\n');
        print_wrapped("  why:  ", safe(gap->why, shown, sizeof(shown)));
        print_wrapped("  to do:", safe(gap->remedy, shown, sizeof(shown)));
    }
    if (has_rlimits_only(user))
        print_wrapped("  until then:",
                "default limits are enforced by rlimits (memory per process, "
                "pids per sandbox, cpu not at all), and --memory, --pids, "
                "--cpu are refused unless --best-effort lists them");
}

static void print_text(const struct carrel_health *health)
{
    printf("carrel %s: a default run %s for this user (%s)\n\n", health->version,
            health->caller->is_able ? "works" : "does NOT work", health->caller->name);
    print_facts(health->caller);
    print_table(health);
    print_gaps(health->root);
    print_gaps(health->rootless);
}

static int print_json(const struct carrel_health *health, int status)
{
    AUTO(carrel_free) char *text = NULL;
    struct carrel_error err = { 0 };

    if (carrel_health_json(health, &text, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    (void)puts(text);
    return report_finish(status);
}

int cmd_health(int argc, char **argv)
{
    AUTO(carrel_health_free) struct carrel_health *health = NULL;
    struct carrel_error err = { 0 };
    struct report_args args;

    int r = report_args_parse(rows, ARRAY_LEN(rows), help, argc, argv, &args);
    if (r != 0)
        return r < 0 ? STATUS_FAILED : 0;
    if (carrel_host_health(&health, &err) < 0)
        return report_fail(args.is_json, &err);
    int status = health->caller->is_able ? 0 : STATUS_UNHEALTHY;
    if (args.is_json)
        return print_json(health, status);
    print_text(health);
    return report_finish(status);
}
