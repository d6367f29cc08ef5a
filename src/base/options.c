/* options.c - see options.h. */
#include "base/options.h"
#include "base/err.h"
#include <errno.h>
#include <string.h>

#define GROWTH_MAX 4096 /* no later version of a struct is larger by more; garbage may be */

static int check(size_t theirs, size_t size, const char *init, struct carrel_error *err)
{
    if (theirs >= sizeof(size_t) && theirs <= size + GROWTH_MAX)
        return 0;
    return err_set(err, -EINVAL,
            "a struct of %zu bytes is none of the options here; start from %s", theirs, init);
}

int options_take(
        void *own, size_t size, const void *given, const char *init, struct carrel_error *err)
{
    size_t theirs;

    if (!given)
        return 0;
    memcpy(&theirs, given, sizeof(theirs));
    int r = check(theirs, size, init, err);
    if (r < 0)
        return r;
    for (const char *tail = given; theirs > size; theirs--)
        if (tail[theirs - 1])
            return err_set(err, -EINVAL,
                    "the options set a member that this version of the library does not know");
    memcpy(own, given, theirs);
    memcpy(own, &size, sizeof(size));
    return 0;
}

int options_give(
        void *to, const void *own, size_t size, const char *init, struct carrel_error *err)
{
    size_t theirs;

    memcpy(&theirs, to, sizeof(theirs));
    int r = check(theirs, size, init, err);
    if (r < 0)
        return r;
    memset(to, 0, theirs);
    memcpy(to, own, theirs < size ? theirs : size);
    memcpy(to, &theirs, sizeof(theirs));
    return 0;
}
