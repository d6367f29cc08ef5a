/* Reads the caller's environment: secrets, and settings that run code. */
#include "attack.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The driver sets each of these for carrel. */
static const char *const planted[] = { "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "GIT_DIR",
    "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS",
    "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "MODEL_API_KEY", "GITHUB_TOKEN",
    "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "http_proxy",
    "CARREL_ESCAPE_SECRET" };

static const char *const given[] = { "PATH=", "HOME=", "USER=", "LANG=" };

static bool is_given(const char *entry)
{
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        if (strncmp(entry, given[i], strlen(given[i])) == 0)
            return true;
    return false;
}

static void attack(char **args)
{
    const char *more = NULL;
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(planted); i++)
        if (getenv(planted[i]))
            succeeded(planted[i], "%s", getenv(planted[i]));
        else
            invisible(planted[i]);
    for (char **e = environ; *e; e++)
        if (!is_given(*e))
            more = *e;
    if (more)
        succeeded("anything-else", "%s", more);
    else
        invisible("anything-else");
}

/* Run with --env GIVEN=yes. */
static void control(char **args)
{
    (void)args;
    works("given", getenv("GIVEN") && strcmp(getenv("GIVEN"), "yes") == 0);
    works("PATH", getenv("PATH") != NULL);
    works("HOME", getenv("HOME") && access(getenv("HOME"), W_OK) == 0);
    works("USER", getenv("USER") != NULL);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
