#include "base/trim.h"
#include "harness.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) unsigned go_deep(void)
{
    volatile unsigned char frame[64U << 10];

    for (size_t i = 0; i < sizeof(frame); i++)
        frame[i] = 1;
    return frame[sizeof(frame) - 1];
}

TEST(what_is_in_use_survives)
{
    char *kept = malloc(100);
    char here[100];

    CHECK(kept);
    memset(kept, 'a', 100);
    memset(here, 'b', 100);
    CHECK_EQ(go_deep(), 1U);
    trim_memory();
    CHECK_EQ(go_deep(), 1U);
    for (size_t i = 0; i < 100; i++)
        CHECK(kept[i] == 'a' && here[i] == 'b');
    free(kept);
}

static int twice(void *arg)
{
    const int *n = arg;

    CHECK_EQ(go_deep(), 1U);
    trim_memory();
    return 2 * *n;
}

TEST(a_call_gives_what_the_function_gives)
{
    int n = 21;

    CHECK_EQ(trim_call(twice, &n), 42);
    CHECK(trim_has_stack());
    trim_leave_stack(); /* outside of a call: nothing */
    CHECK(trim_has_stack());
}

static const int *seen;

static void next(void)
{
    _exit(*seen);
}

TEST(it_goes_on_where_it_was_told_to)
{
    static char stack[64U << 10] __attribute__((aligned(64)));
    static int status = 7;
    int result = 0;

    seen = &status;
    pid_t pid = fork();
    if (pid == 0)
        trim_move_stack(stack, sizeof(stack), next);
    CHECK(waitpid(pid, &result, 0) == pid);
    CHECK(WIFEXITED(result));
    CHECK_EQ(WEXITSTATUS(result), 7);
}
