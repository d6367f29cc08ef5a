/* pace.c - a bucket that time fills and work empties. */
#include "core/run/pace.h"
#include "base/clock.h"
#include <time.h>

#define SHARE 4 /* a quarter */
#define NS_PER_MS UINT64_C(1000000)
#define BURST_NS (100 * NS_PER_MS) /* of processor time, for output that comes at once */
#define STEP_NS (2 * NS_PER_MS)    /* a rest is worth so much, so that there are not too many */
#define DEFAULT_MILLI 1000

static uint64_t cpu_ns(void)
{
    struct timespec used = { 0 };

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

void pace_begin(struct pace *pace, uint64_t cpu_milli)
{
    const uint64_t share = (cpu_milli ? cpu_milli : DEFAULT_MILLI) / SHARE;

    *pace = (struct pace){
        .share_milli = share ? share : 1,
        .seen_ns = clock_ns(),
        .seen_cpu_ns = cpu_ns(),
    };
}

uint64_t pace_look_at(struct pace *pace, uint64_t now_ns, uint64_t used_ns)
{
    const uint64_t earned = (now_ns - pace->seen_ns) / 1000 * pace->share_milli;
    const uint64_t debt = pace->debt_ns + (used_ns - pace->seen_cpu_ns);

    pace->seen_ns = now_ns;
    pace->seen_cpu_ns = used_ns;
    pace->debt_ns = debt > earned ? debt - earned : 0;
    if (pace->debt_ns <= BURST_NS)
        return 0;
    return now_ns + (pace->debt_ns - BURST_NS + STEP_NS) * 1000 / pace->share_milli;
}

uint64_t pace_look(struct pace *pace)
{
    return pace_look_at(pace, clock_ns(), cpu_ns());
}
