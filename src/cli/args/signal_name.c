/* signal_name.c - asking libc what each signal is called. */
#include "cli/args/signal_name.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <strings.h>

int signal_from_name(const char *text, struct carrel_error *err)
{
    uint64_t number;
    char shown[64];
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;

    if (str_parse_u64(text, &number) == 0 && number >= 1 && number <= (uint64_t)SIGRTMAX)
        return (int)number;
    for (int i = 1; i < NSIG; i++) {
        const char *known = sigabbrev_np(i);
        if (known && strcasecmp(known, name) == 0)
            return i;
    }
    return err_set(err, -EINVAL, "'%s' is not a signal; expected one such as TERM or 15",
            str_escape(text, strlen(text), shown, sizeof(shown)));
}
