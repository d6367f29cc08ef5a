/*
 * apparmor.c - see apparmor.h.
 *
 * With the sysctl at 1 a program without a profile may make a user namespace, but has no
 * capability in it: each step of a sandbox fails. A profile that permits `userns` lifts that
 * for one program. The sysctl would lift it for all, so it is no advice.
 */
#include "runtime/local/apparmor.h"
#include "base/auto.h"
#include "base/fd.h"
#include "runtime/local/host.h"
#include "runtime/local/installed.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOADED_FROM "/etc/apparmor.d/carrel"
#define LOAD "apparmor_parser -r " LOADED_FROM

bool apparmor_restricts_userns(void)
{
    char text[16];

    return !host_is_privileged() &&
           fd_read_file(AT_FDCWD, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                   text, sizeof(text)) > 0 &&
           text[0] == '1';
}

void apparmor_advise(
        const char *program, bool is_loadable, char text[static APPARMOR_REMEDY_MAX])
{
    const size_t size = APPARMOR_REMEDY_MAX;

    if (strcmp(program, INSTALLED_PROGRAM) != 0)
        (void)snprintf(text, size,
                "run " INSTALLED_PROGRAM " (make install): the AppArmor profile "
                "of carrel is for that path only; %.120s needs one of its own",
                program);
    else if (is_loadable)
        (void)snprintf(text, size, "as root: " LOAD);
    else
        (void)snprintf(text, size,
                "as root: install -m 644 " INSTALLED_PROFILE " " LOADED_FROM " && " LOAD);
}

/* A profile of another installation may be there. */
static bool is_ours(const char *path)
{
    char text[4096];

    return fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0 &&
           strstr(text, "\"" INSTALLED_PROGRAM "\"");
}

void apparmor_remedy(char text[static APPARMOR_REMEDY_MAX])
{
    char program[4096];

    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[n > 0 ? n : 0] = '\0';
    apparmor_advise(n > 0 ? program : "this program", is_ours(LOADED_FROM), text);
}
