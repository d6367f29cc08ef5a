/* disk_watch.c - cheap question often, dear question seldom. */
#include "core/disk/disk_watch.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/kernel.h"
#include "base/str.h"
#include "core/disk/nameless.h"
#include "runtime/runtime.h"
#include "workspace/harvest/upper.h"
#include "workspace/private.h"
#include <errno.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define BYTES_PER_INODE 4096U  /* a limit in bytes is also one in files, and in names */
#define RATE_PER_MS (8U << 20) /* more than a processor writes in that time */
/* What a processor may write until the program is really ended: in a tick and a portion. */
#define MARGIN_BYTES (UINT64_C(32) << 20)
#define MARGIN_PARTS 4U /* of a limit: all processors together need one */
#define LEAST_MARGINS 2U
#define MOST_PROCESSORS 8U /* more of them write no more: memory is not faster */
#define LONGEST_NS (100 * NS_PER_MS)
#define SHORTEST_NS (NS_PER_MS / 4)
#define PORTION_US 1000U      /* of processor time: the kernel knows no smaller one ... */
#define SMALL_US 5000U        /* ... and looks seldom: a portion may become as much */
#define PACE_US 1000000U      /* without our word there is another one only then */
#define CPU_PERIOD_US 100000U /* over which a limit of processor time counts otherwise */
#define ENOUGH_US 60000000U
#define LEAST_DOUBTS 3U /* some pass: a process begins, a descriptor is on its way */
#define DOUBT_PARTS 4U  /* of what is left may be written while we doubt */
#define DOUBT_MS 1U
#define FEW_NAMES 1000U            /* are counted in less than a millisecond */
#define COUNTS_NS (50 * NS_PER_MS) /* of counting hold others up, ... */
#define COUNTS_PARTS 4U            /* ... and this part of the time that passes */
#define COUNT_PAUSE                                                                            \
    20U /* as many times as long as it took, after a count that may be needless */

/* Where processes see what is below the watched directories. */
static const char *const places[] = { PRIVATE_WORK_TREE, PRIVATE_GIT_DIR, PRIVATE_CHANGES,
    NULL };
static const char *const all_places[] = { PRIVATE_WORK_TREE, PRIVATE_GIT_DIR, PRIVATE_CHANGES,
    "/tmp", "/home/agent", "/", NULL };

static int ask(int dir, struct disk_mark *mark)
{
    struct statvfs st;

    if (fstatvfs(dir, &st) < 0)
        return -errno;
    mark->free_bytes = (uint64_t)st.f_bfree * st.f_frsize;
    mark->free_inodes = st.f_ffree;
    return 0;
}

static uint64_t lost(uint64_t before, uint64_t now)
{
    return before > now ? before - now : 0;
}

static struct sandbox *box_of(const struct disk_watch *watch)
{
    return watch->box && !watch->box->is_stopped ? watch->box : NULL;
}

/* The processor time in which so much can be written, at most; a minute is as good as more. */
static uint64_t cpu_us_for(uint64_t bytes)
{
    const uint64_t cpu_us = bytes / (RATE_PER_MS / 1000);

    return cpu_us < ENOUGH_US ? cpu_us : ENOUGH_US;
}

/* What cannot be given out is not; then programs are halted while we count. */
static void pace(struct disk_watch *watch, uint64_t cpu_us, uint64_t period_us)
{
    struct sandbox *box = box_of(watch);

    if (watch->cpu_milli == 0)
        return;
    if (box && sandbox_pace(box, cpu_us, period_us, NULL) < 0) {
        watch->cpu_milli = 0;
        return;
    }
    watch->portion_us = cpu_us;
    watch->portion_ns = clock_ns() + cpu_us * 1000 * 1000 / watch->cpu_milli;
}

/*
 * The less is left, the sooner. Until then half of it may be written: that much processor time
 * the programs get, and no more before we have looked again, however long that takes us. They
 * have it without a break as long as we are in time. Near the end there is less time between
 * two looks than the smallest portion lasts: none is given before that one may be used up,
 * since with each the kernel forgets by how much the last one was passed.
 */
static void look_again(struct disk_watch *watch, uint64_t left_bytes)
{
    uint64_t wait_ns = cpu_us_for(left_bytes / 2 / watch->processors) * 1000;

    if (wait_ns > LONGEST_NS)
        wait_ns = LONGEST_NS;
    if (wait_ns < SHORTEST_NS)
        wait_ns = SHORTEST_NS;
    watch->next_ns = clock_ns() + wait_ns;
    if (watch->next_ns <= watch->portion_ns)
        return;
    uint64_t portion_us = wait_ns / 1000 * watch->cpu_milli / 1000;
    pace(watch, portion_us < PORTION_US ? PORTION_US : portion_us, PACE_US);
}

/*
 * How much we have counted of late. Who makes us count again and again would hold everybody
 * else up with it; then we get our turn as others do, and need more of a margin.
 */
static uint64_t counting_at(const struct disk_watch *watch, uint64_t now_ns)
{
    return lost(watch->count_ns, (now_ns - watch->counted_ns) / COUNTS_PARTS);
}

/* What may be written until the program is really ended. */
static uint64_t margin_of(const struct disk_watch *watch)
{
    const uint64_t most = watch->max_bytes / LEAST_MARGINS;
    uint64_t margin = watch->margin_bytes;

    if (margin > most) /* too little to be kept: then it shall at least be of use */
        margin = most / 2;
    return watch->counts_much ? margin + margin / 2 : margin;
}

unsigned disk_watch_processors(uint64_t max_bytes)
{
    const uint64_t n = max_bytes / (MARGIN_BYTES * MARGIN_PARTS);

    return n == 0 ? 1 : n < MOST_PROCESSORS ? (unsigned)n : 0;
}

/* On how many it will be, from what this thread has. */
static unsigned count_processors(uint64_t max_bytes)
{
    const unsigned most = disk_watch_processors(max_bytes);
    cpu_set_t own;

    unsigned n = sched_getaffinity(0, sizeof(own), &own) < 0 ? MOST_PROCESSORS
                                                             : (unsigned)CPU_COUNT(&own);
    if (most > 0 && n > most)
        n = most;
    return n < MOST_PROCESSORS ? n : MOST_PROCESSORS;
}

static bool is_wanted(const struct sandbox_spec *spec)
{
    const unsigned demanded = spec->limits.demanded & ~spec->limits.best_effort;

    return (demanded & LIMIT_BIT(LIMIT_DISK)) || (spec->require & PROTECT_BIT(PROTECT_DISK));
}

static bool is_large(uint64_t max_bytes)
{
    return max_bytes >= MARGIN_BYTES * LEAST_MARGINS;
}

int disk_watch_check(const struct sandbox_spec *spec, struct carrel_error *err)
{
    char least[32];

    if (!is_wanted(spec) || is_large(spec->limits.value[LIMIT_DISK]))
        return 0;
    return err_set(err, -EINVAL,
            "the disk limit is too small to be kept on the host's file system, where carrel "
            "watches it; expected %s or more, or accept less with --best-effort disk",
            str_size(MARGIN_BYTES * LEAST_MARGINS, least));
}

static bool may_be_first(void)
{
    struct turns before;

    if (!turns_first(&before))
        return false;
    turns_first_no_more(&before);
    return true;
}

/* What another id shuts, or has open without a name, is counted by nobody but root. */
bool disk_watch_has_others(const struct sandbox_spec *spec)
{
    return spec->ids == IDS_SUB && geteuid() != 0;
}

bool disk_watch_can_hold(const struct sandbox_spec *spec, const struct sandbox *box)
{
    return !disk_watch_has_others(spec) && is_large(spec->limits.value[LIMIT_DISK]) &&
           box->held_by[LIMIT_CPU] == HELD_BY_CGROUP &&
           (!kernel_is(6, 18) || may_be_first()); /* before, it stopped them in a call */
}

int disk_watch_refuse(const struct sandbox_spec *spec, struct carrel_error *err)
{
    if (!is_wanted(spec))
        return 0;
    if (disk_watch_has_others(spec))
        return err_set(err, -ENOTSUP,
                "the disk limit cannot be held with --ids sub: what other ids shut cannot be "
                "counted; or accept less with --best-effort disk");
    return err_set(err, -ENOTSUP,
            "the disk limit cannot be held here: since Linux 6.18 a write that has begun is "
            "not "
            "interrupted, and carrel may look too late; let it come first: as root 'USER - "
            "rtprio 1' in /etc/security/limits.conf, or CAP_SYS_NICE; or accept less with "
            "--best-effort disk");
}

static bool is_full(const struct disk_watch *watch, const struct disk_mark *now)
{
    return now->used_bytes + margin_of(watch) >= watch->max_bytes ||
           now->used_inodes >= watch->max_inodes;
}

/* The figures of the file system first: what is written during the walk counts again. */
static int walk(struct disk_watch *watch, struct disk_mark *now, bool *is_doubtful,
        struct carrel_error *err)
{
    struct nameless held = { 0 };

    int r = ask(watch->dirs[0], now);
    if (r < 0)
        return err_set_errno(err, r, "ask for the free space of a workspace");
    for (size_t i = 0; i < watch->n_dirs; i++) {
        uint64_t bytes;
        uint64_t inodes;
        r = watch->has_others
                    ? upper_usage_but_others(
                              watch->dirs[i], watch->max_inodes, &bytes, &inodes, err)
                    : upper_usage(watch->dirs[i], watch->max_inodes, &bytes, &inodes, err);
        *is_doubtful = r == -ESTALE; /* it moves while we count */
        if (r < 0)
            return *is_doubtful ? 0 : r;
        now->used_bytes += bytes;
        now->used_inodes += inodes;
    }
    /* What has names may be enough, and the rest takes longer. */
    if (box_of(watch) && !is_full(watch, now) &&
            nameless_count(watch->box, watch->has_private ? all_places : places, watch->dirs[0],
                    &held) < 0)
        held.is_doubtful = true;
    now->used_bytes += held.bytes;
    now->used_inodes += held.inodes;
    *is_doubtful = held.is_doubtful && !watch->has_others;
    return held.is_cut ? err_set(err, -E2BIG, "the processes hold too many files to count") : 0;
}

int disk_watch_begin(
        struct disk_watch *watch, int dir, uint64_t max_bytes, struct carrel_error *err)
{
    bool is_doubtful = false;

    if (watch->n_dirs == DISK_WATCH_DIRS)
        return err_set(err, -E2BIG, "more than %d directories to watch", DISK_WATCH_DIRS);
    watch->dirs[watch->n_dirs++] = dir;
    watch->max_bytes = max_bytes;
    watch->max_inodes = max_bytes / BYTES_PER_INODE < 1024 ? 1024 : max_bytes / BYTES_PER_INODE;
    watch->processors = count_processors(max_bytes);
    watch->margin_bytes = MARGIN_BYTES * watch->processors;
    watch->mark = (struct disk_mark){ 0 };
    int r = walk(watch, &watch->mark, &is_doubtful, err);
    watch->seen_free = watch->mark.free_bytes;
    look_again(watch, lost(max_bytes, watch->mark.used_bytes));
    return r;
}

/*
 * Programs that come and go all the time leave some counts in doubt, the more the busier the
 * machine is. Who is far from the limit cannot get there so soon; but a count takes as long as
 * the programs make it, so time is what counts, and not how many there were.
 */
static bool is_long_in_doubt(struct disk_watch *watch)
{
    const uint64_t left = lost(watch->max_bytes, watch->mark.used_bytes + margin_of(watch));
    const uint64_t now_ns = clock_ns();

    if (watch->doubts++ == 0)
        watch->doubt_ns = now_ns;
    return watch->doubts >= LEAST_DOUBTS &&
           now_ns - watch->doubt_ns >=
                   cpu_us_for(left / DOUBT_PARTS / watch->processors) * 1000;
}

/* The dear question. A count in doubt does not move the mark: what was not seen stays lost. */
static bool is_spent(struct disk_watch *watch)
{
    struct disk_mark now = { 0 };
    bool is_doubtful = false;

    if (walk(watch, &now, &is_doubtful, NULL) < 0 || is_full(watch, &now))
        return true;
    if (is_doubtful) {
        watch->next_ns = clock_ns() + DOUBT_MS * NS_PER_MS;
        return is_long_in_doubt(watch);
    }
    watch->doubts = 0;
    watch->mark = now;
    look_again(watch, lost(watch->max_bytes, now.used_bytes + margin_of(watch)));
    return false;
}

static bool is_long(const struct disk_watch *watch)
{
    uint64_t bytes;
    uint64_t inodes;

    for (size_t i = 0; i < watch->n_dirs; i++)
        if (upper_usage(watch->dirs[i], FEW_NAMES, &bytes, &inodes, NULL) == -E2BIG)
            return true;
    return false;
}

/*
 * A count takes as long as there are names and descriptors, and whoever counts on that were far
 * beyond its limit by then. So nobody gets more than a little processor time meanwhile. Where
 * it cannot be given out, all are halted if there is much to count; else that would take
 * longer, since each may finish the call that it has begun.
 */
static bool judge(struct disk_watch *watch)
{
    struct sandbox *box = box_of(watch);

    if (watch->portion_us > SMALL_US) /* else it would only be given another one */
        pace(watch, PORTION_US, PACE_US);
    bool is_halted = box && watch->cpu_milli == 0 && !box->paused_by && is_long(watch) &&
                     sandbox_pause(box, NULL) == 0;
    const uint64_t began_ns = clock_ns();
    bool is_over = is_spent(watch);
    const uint64_t now_ns = clock_ns();
    watch->last_count_ns = now_ns - began_ns;
    watch->count_ns = counting_at(watch, now_ns) + watch->last_count_ns;
    watch->counted_ns = now_ns;
    /* From now on: it should not go back and forth. Where nothing is held no margin helps. */
    if (watch->count_ns >= COUNTS_NS && watch->cpu_milli > 0)
        watch->counts_much = true;
    if (box && is_over)
        sandbox_fell(box);
    if (is_halted)
        (void)sandbox_resume(box, NULL); /* who is dead, too: else it stays (freezer.h) */
    return is_over;
}

void disk_watch_wait(struct disk_watch *watch)
{
    const bool may_be = watch->n_dirs > 0 && counting_at(watch, clock_ns()) < COUNTS_NS;

    if (may_be && !watch->is_first)
        watch->is_first = turns_first(&watch->before);
    else if (!may_be)
        disk_watch_waited(watch);
}

void disk_watch_waited(struct disk_watch *watch)
{
    if (watch->is_first)
        turns_first_no_more(&watch->before);
    watch->is_first = false;
}

bool disk_watch_is_full(struct disk_watch *watch)
{
    return judge(watch);
}

bool disk_watch_is_over(struct disk_watch *watch)
{
    struct disk_mark *mark = &watch->mark;
    struct disk_mark now = { 0 };

    if (ask(watch->dirs[0], &now) < 0)
        return true; /* a limit that cannot be watched is not held */
    /* Somebody made room since the last look: what was written since then does not show. */
    const bool has_risen = now.free_bytes > watch->seen_free;
    watch->seen_free = now.free_bytes;
    if (has_risen && clock_ns() >= watch->counted_ns + COUNT_PAUSE * watch->last_count_ns)
        return judge(watch);
    /* Room that somebody else made must not hide what the run takes from now on. */
    if (now.free_bytes > mark->free_bytes)
        mark->free_bytes = now.free_bytes;
    if (now.free_inodes > mark->free_inodes)
        mark->free_inodes = now.free_inodes;
    uint64_t left = lost(watch->max_bytes, mark->used_bytes);
    uint64_t gone = lost(mark->free_bytes, now.free_bytes) + margin_of(watch);
    uint64_t files_gone = lost(mark->free_inodes, now.free_inodes);
    if (gone >= left || files_gone >= lost(watch->max_inodes, mark->used_inodes))
        return judge(watch);
    watch->doubts = 0;
    look_again(watch, left - gone);
    return false;
}

void disk_watch_start(struct disk_watch *watch)
{
    if (watch->n_dirs > 0)
        look_again(watch, lost(watch->max_bytes, watch->mark.used_bytes + margin_of(watch)));
}

void disk_watch_rest(struct disk_watch *watch)
{
    if (watch->portion_ns > 0)
        pace(watch, watch->cpu_milli * (CPU_PERIOD_US / 1000), CPU_PERIOD_US);
    watch->portion_ns = 0;
}

/* Whether the last portion has been used up nobody knows, so this is never left out. */
void disk_watch_ease(struct disk_watch *watch)
{
    if (watch->portion_ns > 0) /* the period stays: setting that, too, takes as long again */
        pace(watch, watch->cpu_milli * (PACE_US / 1000), PACE_US);
    watch->portion_ns = 0;
}

void disk_watch_go_on(struct disk_watch *watch)
{
    if (watch->n_dirs > 0 && watch->portion_ns == 0)
        watch->next_ns = clock_ns();
}

void disk_watch_release(struct disk_watch *watch)
{
    disk_watch_ease(watch);
    watch->cpu_milli = 0;
}
