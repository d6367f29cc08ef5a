/* apparmor.h - where AppArmor restricts user namespaces to programs with a profile. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define APPARMOR_REMEDY_MAX 320

/* True if it does so here, and for this process. */
bool apparmor_restricts_userns(void);

/* What to do about it, in one line. */
void apparmor_remedy(char text[static APPARMOR_REMEDY_MAX]);

/*
 * The same for a machine made up: `program` is what runs, `is_loadable` says that the profile
 * of the installed program is where AppArmor reads it.
 */
void apparmor_advise(
        const char *program, bool is_loadable, char text[static APPARMOR_REMEDY_MAX]);
