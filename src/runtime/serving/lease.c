/* lease.c - see lease.h. Runs in init: allocates nothing. */
#include "runtime/serving/lease.h"
#include "base/clock.h"
#include "base/err.h"
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int lease_set(struct lease *lease, uint64_t end_ns, uint64_t idle_ns, struct carrel_error *err)
{
    if (lease->timer < 0 && (end_ns || idle_ns)) {
        lease->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (lease->timer < 0)
            return err_set_errno(err, -errno, "make a timer");
    }
    lease->end_ns = end_ns;
    lease->idle_ns = idle_ns;
    lease_touch(lease);
    return 0;
}

void lease_touch(struct lease *lease)
{
    if (lease->idle_ns)
        lease->touched_ns = clock_boot_ns();
}

static void arm(struct lease *lease, uint64_t due_ns)
{
    const struct itimerspec when = {
        .it_value = {
            .tv_sec = (time_t)(due_ns / 1000000000),
            .tv_nsec = (long)(due_ns % 1000000000),
        },
    };

    if (timerfd_settime(lease->timer, TFD_TIMER_ABSTIME, &when, NULL) == 0)
        lease->armed_ns = due_ns;
}

enum lease_state lease_check(struct lease *lease, bool is_busy)
{
    uint64_t due = lease->end_ns;
    uint64_t idle_due = 0;
    uint64_t rang;

    if (lease->timer < 0)
        return LEASE_RUNS;
    if (lease->idle_ns && !is_busy)
        idle_due = lease->touched_ns + lease->idle_ns;
    if (idle_due && (!due || idle_due < due))
        due = idle_due;
    if (read(lease->timer, &rang, sizeof(rang)) > 0)
        lease->armed_ns = 0;
    if (!due)
        return LEASE_RUNS;
    uint64_t now = clock_boot_ns();
    if (lease->end_ns && now >= lease->end_ns)
        return LEASE_ENDED;
    if (idle_due && now >= idle_due)
        return LEASE_IDLE;
    if (!lease->armed_ns || due < lease->armed_ns)
        arm(lease, due);
    return LEASE_RUNS;
}
