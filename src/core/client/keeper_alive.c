/* keeper_alive.c - checks a keeper by what /proc says of its process. */
#include "core/client/keeper_alive.h"
#include "base/err.h"
#include "runtime/ps.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <stdbool.h>

#define MAX_ASLEEP 5 /* checks: a keeper waits for init, for twenty seconds at most */

/* These requests may sleep for long: until a child process is done, or a disk. */
static bool may_sleep(enum keeper_kind kind)
{
    return kind == KEEPER_SNAPSHOT || kind == KEEPER_FORK || kind == KEEPER_DESTROY;
}

const char *keeper_is_stuck(
        struct keeper_check *check, const struct sandbox_process *keeper, enum keeper_kind kind)
{
    if (keeper->state == 'T' || keeper->state == 't')
        return "is stopped";
    const bool is_idle = keeper->state == 'S' && keeper->cpu_ms == check->cpu_ms;
    check->n_asleep = is_idle ? check->n_asleep + 1 : 0;
    check->cpu_ms = keeper->cpu_ms;
    return check->n_asleep >= MAX_ASLEEP && !may_sleep(kind) ? "sleeps" : NULL;
}

int keeper_give_up(pid_t pid, const char *why, struct carrel_error *err)
{
    return err_set(err, -ETIMEDOUT,
            "the keeper of the sandbox does not answer: process %d %s; 'carrel destroy "
            "--force' ends it",
            (int)pid, why);
}

int keeper_check_alive(
        struct keeper_check *check, pid_t pid, enum keeper_kind kind, struct carrel_error *err)
{
    struct sandbox_process keeper;

    if (pid <= 0 || ps_read(pid, &keeper) < 0)
        return 0; /* if the keeper has ended, the socket has reported it */
    const char *why = keeper_is_stuck(check, &keeper, kind);
    return why ? keeper_give_up(pid, why, err) : 0;
}
