#include "base/turns.h"
#include "harness.h"
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sched_attr now(void)
{
    struct sched_attr attr = { .size = sizeof(attr) };

    CHECK_EQ(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
    return attr;
}

static void is_like(struct sched_attr one, struct sched_attr other)
{
    CHECK_EQ(one.sched_policy, other.sched_policy);
    CHECK_EQ(one.sched_nice, other.sched_nice);
    CHECK_EQ(one.sched_runtime, other.sched_runtime);
}

TEST(who_hurries_comes_sooner_and_gives_it_back)
{
    const struct sched_attr before = now();
    const uint64_t turns = turns_hurry();
    const struct sched_attr hurried = now();

    CHECK(hurried.sched_runtime < before.sched_runtime || before.sched_runtime == 0);
    CHECK_EQ(hurried.sched_nice, before.sched_nice);
    turns_restore(turns);
    is_like(now(), before);
}

/* Exits with 0 where its child has the turns that everybody has. */
static _Noreturn void look_at_child(struct sched_attr before)
{
    int status = -1;

    turns_hurry_alone();
    pid_t pid = fork();
    if (pid == 0) {
        is_like(now(), before);
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
    _exit(status != 0);
}

TEST(what_hurries_alone_has_ordinary_children)
{
    const struct sched_attr before = now();
    int status = -1;

    if (before.sched_nice < 0)
        SKIP("this runs with a nice value of %d", before.sched_nice);
    pid_t pid = fork();
    if (pid == 0)
        look_at_child(before);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

TEST(who_comes_first_gives_it_back_and_has_ordinary_children)
{
    const struct sched_attr before = now();
    struct turns turns;
    int status = -1;

    if (!turns_first(&turns)) {
        is_like(now(), before);
        SKIP("this may not come before others (CAP_SYS_NICE)");
    }
    CHECK_EQ(now().sched_policy, SCHED_FIFO);
    CHECK(!turns_first(&(struct turns){ 0 })); /* once is enough */
    pid_t pid = fork();
    if (pid == 0)
        _exit(now().sched_policy != SCHED_NORMAL);
    turns_first_no_more(&turns);
    is_like(now(), before);
    if (geteuid() == 0)
        CHECK_EQ(now().sched_flags, before.sched_flags);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}
