/* name.c - ids and branch names; pure. */
#include "git/name.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_id_byte(char c)
{
    return is_alnum(c) || c == '.' || c == '_' || c == '-';
}

/* NULL: `id` (of `len` bytes) is valid. Otherwise what is wrong with it. */
static const char *complaint(const char *id, size_t len)
{
    if (len == 0)
        return "it is empty";
    if (len > NAME_ID_MAX)
        return "it has more than 64 characters";
    for (size_t i = 0; i < len; i++) {
        if (!is_id_byte(id[i]))
            return "only letters, digits, '.', '_' and '-' are allowed";
        if (i > 0 && id[i] == '.' && id[i - 1] == '.')
            return "it has '..' in it";
    }
    if (!is_alnum(id[0]))
        return "it must start with a letter or digit";
    if (id[len - 1] == '.')
        return "it ends in '.'";
    /* git's lock files have this suffix */
    if (len >= 5 && memcmp(id + len - 5, ".lock", 5) == 0)
        return "it ends in '.lock'";
    if (len == 4 && memcmp(id, "runs", 4) == 0)
        return "'runs' is the name of a directory of carrel";
    if (len == 4 && strncasecmp(id, "HEAD", 4) == 0)
        return "git would take it for the commit that is checked out";
    return NULL;
}

int name_check_id(const char *id, const char *what, struct carrel_error *err)
{
    const char *wrong = complaint(id, strlen(id));
    char shown[128];

    if (!wrong)
        return 0;
    return err_set(err, -EINVAL, "%s '%s' cannot be used: %s", what,
            str_escape(id, strlen(id), shown, sizeof(shown)), wrong);
}

void name_branch(const char *task, const char *run, char branch[static NAME_BRANCH_MAX])
{
    (void)snprintf(
            branch, NAME_BRANCH_MAX, "task-%.*s-run-%.*s", NAME_ID_MAX, task, NAME_ID_MAX, run);
}

bool name_is_run_branch(const char *branch)
{
    static const char between[] = "-run-";

    if (strncmp(branch, "task-", 5) != 0)
        return false;

    /* An id may contain "-run-" too, so every possible split is tried. */
    const char *task = branch + 5;
    for (const char *at = strstr(task, between); at; at = strstr(at + 1, between)) {
        const char *run = at + strlen(between);
        if (!complaint(task, (size_t)(at - task)) && !complaint(run, strlen(run)))
            return true;
    }
    return false;
}

bool name_is_oid(const char *text)
{
    size_t len = strspn(text, "0123456789abcdef");

    return text[len] == '\0' && (len == 40 || len == 64);
}
