/* can.c - what a runtime says that it has, it has; what it has not, it refuses by name. */
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The spec is refused with the runtime's name and `part`, and nothing is left. */
static void check_refused(const struct sandbox_spec *spec, int code, const char *part)
{
    struct sandbox *box = NULL;
    const int before = count_descriptors();
    char prefix[64];

    (void)snprintf(prefix, sizeof(prefix), "runtime %s: ", runtime_name(subject));
    CHECK_EQ(create(spec, &box), code);
    CHECK(!box);
    CHECK_EQ(strncmp(err.message, prefix, strlen(prefix)), 0);
    if (!strstr(err.message, part))
        test_fail(__FILE__, __LINE__, "no '%s' in: %s", part, err.message);
    CHECK_EQ(count_descriptors(), before);
    CHECK_EQ(waitpid(-1, NULL, __WALL), -1);
    CHECK_EQ(errno, ECHILD);
}

CONTRACT(a_sandbox_has_what_its_runtime_says)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    CHECK_EQ(box->can & ~runtime_can(subject), 0);
    CHECK(box->isolation <= runtime_isolation(subject));
}

CONTRACT(an_image_is_used_or_refused)
{
    struct sandbox_spec spec = plain_spec();

    if (runtime_can(subject) & CAN_IMAGE)
        SKIP("it has images");
    spec.image = "debian:12";
    check_refused(&spec, -ENOTSUP, "image");
}

CONTRACT(a_setting_that_it_does_not_know_is_refused_by_its_key)
{
    const char *const unknown[] = { "no such key=and its value", NULL };
    const char *const malformed[] = { "without a value", NULL };
    const char *const nameless[] = { "=value", NULL };
    const char *const none[] = { NULL };
    struct sandbox_spec spec = plain_spec();
    AUTO(sandbox_free) struct sandbox *box = NULL;

    spec.settings = unknown;
    check_refused(&spec, -EINVAL, "unknown setting 'no such key'");
    CHECK(!strstr(err.message, "its value")); /* a value may be a secret */
    spec.settings = malformed;
    check_refused(&spec, -EINVAL, "KEY=VALUE");
    spec.settings = nameless;
    check_refused(&spec, -EINVAL, "KEY=VALUE");
    spec.settings = none;
    CHECK_EQ(create(&spec, &box), 0);
}

CONTRACT(a_bridge_network_is_there_or_refused_with_what_to_use)
{
    struct sandbox_spec spec = plain_spec();

    if (runtime_can(subject) & CAN_BRIDGE)
        SKIP("it has a bridge network");
    spec.network = NETWORK_BRIDGE;
    check_refused(&spec, -ENOTSUP, "use none or host");
}

CONTRACT(mounts_and_copy_on_write_trees_are_there_or_refused)
{
    const char *const lower[] = { "/usr", NULL };
    const struct sandbox_overlay overlay = {
        .lower = lower, .space = "/tmp", .upper = "upper", .work = "work"
    };
    const struct sandbox_mount mounts[] = {
        { .source = "/usr", .target = "/workspace", .access = ACCESS_READ_WRITE },
        { .overlay = &overlay, .target = "/workspace", .access = ACCESS_READ_WRITE },
    };
    struct sandbox_spec spec = plain_spec();

    spec.n_mounts = 1;
    if (!(runtime_can(subject) & CAN_MOUNT)) {
        spec.mounts = &mounts[0];
        check_refused(&spec, -ENOTSUP, "mount");
    }
    if (!(runtime_can(subject) & CAN_OVERLAY)) {
        spec.mounts = &mounts[1];
        check_refused(&spec, -ENOTSUP, "copy-on-write");
        spec = plain_spec();
        spec.space = &overlay;
        check_refused(&spec, -ENOTSUP, "copy-on-write");
        spec = plain_spec();
        spec.root_overlay = &overlay;
        check_refused(&spec, -ENOTSUP, "copy-on-write");
    }
}

CONTRACT(more_isolation_than_the_sandbox_has_is_a_refusal_that_leaves_nothing)
{
    struct sandbox_spec spec = plain_spec();
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    const enum isolation has = box->isolation;

    sandbox_free(ptr_steal(&box));
    spec.isolation = has;
    CHECK_EQ(create(&spec, &box), 0);
    sandbox_free(ptr_steal(&box));
    if (has == ISOLATION_VM)
        SKIP("there is no more than vm");
    spec.isolation = has + 1;
    check_refused(&spec, -ENOTSUP, "less than the minimum");
}

/* The same inode, by a descriptor of the host's and by a program inside. */
CONTRACT(a_descriptor_of_a_file_is_of_the_file_itself)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct stat st;
    char number[32];

    if (!(box->can & CAN_DESCRIPTORS))
        SKIP("it has streams instead");
    AUTO(outcome_finish)
    struct outcome made = run_shell(box, "echo x >file; stat -c %i file");
    int fd = sandbox_open_file(box, "file", 0, 0, &err);
    CHECK(fd >= 0);
    CHECK_EQ(fstat(fd, &st), 0);
    CHECK_EQ(close(fd), 0);
    (void)snprintf(number, sizeof(number), "%ju\n", (uintmax_t)st.st_ino);
    CHECK_STR(made.out.data, number);
}

CONTRACT(numbers_of_processes_are_those_of_this_host_or_refused)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    const char *const argv[] = { "cat", NULL };
    struct process_spec spec = plain_process(argv);
    struct sandbox_process all[8];
    pid_t pids[8];

    spec.has_stdin = true;
    AUTO(process_close) struct process process = start(box, &spec);
    CHECK_EQ(sandbox_ps(box, all, 8, &err), 1);
    if (box->can & CAN_HOST_PIDS) {
        CHECK_EQ(sandbox_pids(box, pids, 8, &err), 1);
        CHECK_EQ(pids[0], all[0].pid);
        CHECK(kill(pids[0], 0) == 0 || errno == EPERM);
    } else {
        CHECK_EQ(sandbox_pids(box, pids, 8, &err), -ENOTSUP);
        CHECK_EQ(all[0].pid, 0);
    }
}
