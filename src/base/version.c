/* version.c - which carrel this is. */
#include <carrel/public.h>

const char *carrel_version(void)
{
    return CARREL_VERSION;
}
