#include "base/fd.h"
#include "base/proc_tree.h"
#include "harness.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that has a child of its own; both wait until the pipe closes. */
struct family {
    pid_t child;
    pid_t grandchild;
    int hold;
};

static struct family make_family(void)
{
    int hold[2];
    int tell[2];
    struct family family = { 0 };

    CHECK_EQ(pipe(hold), 0);
    CHECK_EQ(pipe(tell), 0);
    family.child = fork();
    if (family.child == 0) {
        char byte;
        fd_close(hold[1]);
        pid_t grandchild = fork();
        if (grandchild > 0)
            (void)write(tell[1], &grandchild, sizeof(grandchild));
        (void)read(hold[0], &byte, 1);
        _exit(0);
    }
    fd_close(hold[0]);
    fd_close(tell[1]);
    CHECK_EQ(read(tell[0], &family.grandchild, sizeof(pid_t)), (ssize_t)sizeof(pid_t));
    fd_close(tell[0]);
    family.hold = hold[1];
    return family;
}

static void end_family(struct family family)
{
    fd_close(family.hold);
    CHECK_EQ(waitpid(family.child, NULL, 0), family.child);
}

TEST(descendants_of_every_degree_are_listed)
{
    struct family family = make_family();
    pid_t pids[8];

    CHECK_EQ(proc_tree_list(getpid(), pids, 8), 2);
    CHECK_EQ(pids[0], family.child);
    CHECK_EQ(pids[1], family.grandchild);
    CHECK_EQ(proc_tree_list(family.child, pids, 8), 1);
    CHECK_EQ(pids[0], family.grandchild);
    CHECK_EQ(proc_tree_list(family.grandchild, pids, 8), 0);
    end_family(family);
}

TEST(more_than_there_is_room_for_is_an_error)
{
    struct family family = make_family();
    pid_t pids[8];

    CHECK_EQ(proc_tree_list(getpid(), pids, 2), 2);
    CHECK_EQ(proc_tree_list(getpid(), pids, 1), -E2BIG);
    end_family(family);
}

TEST(a_process_that_is_gone_has_no_list)
{
    pid_t pid = fork();
    pid_t pids[8];

    if (pid == 0)
        _exit(0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(proc_tree_list(pid, pids, 8), -ENOENT);
}
