/*
 * setup.c - the order in which a child confines itself.
 *
 * It runs between clone and the first program: no allocation, no locks, no decisions. The order
 * is the table at the end; each row gives the reason for its position.
 */
#include "runtime/local/inside/setup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/process.h"
#include "runtime/local/inside/apply.h"
#include "runtime/local/plan.h"
#include "runtime/serving/caps.h"
#include "runtime/serving/landlock.h"
#include "runtime/serving/seccomp.h"
#include "runtime/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int forget_caller(struct setup *setup, struct carrel_error *err)
{
    (void)setup;
    for (char **entry = environ; entry && *entry; entry++)
        explicit_bzero(*entry, strlen(*entry));
    signals_reset();
    (void)umask(0);
    int r = title_set("carrel-init"); /* labels and values of options would be visible */
    return r < 0 ? err_set_errno(err, r, "name init") : 0;
}

static int begin_network(struct setup *setup, struct carrel_error *err)
{
    return setup->plan->has_netns ? network_begin(&setup->network, setup->stack_end, err) : 0;
}

static int make_namespaces(struct setup *setup, struct carrel_error *err)
{
    (void)setup;
    if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
        return err_set_errno(err, -errno, "make mount, ipc and uts namespaces");
    return 0;
}

/*
 * Waits until the host has done its part. Returns how many descriptors came with the message.
 */
static int await_host(
        struct setup *setup, enum wire_kind kind, int *fds, struct carrel_error *err)
{
    struct wire_message message;

    int n = wire_receive(setup->sock, &message, fds, 0);
    if (n < 0)
        return err_set_errno(err, n, "wait for the host");
    if (message.kind != (uint32_t)kind)
        return err_set(err, -EPROTO, "unexpected message %u from the host", message.kind);
    return n;
}

static int await_ids(struct setup *setup, struct carrel_error *err)
{
    int fds[WIRE_MAX_FDS];
    int n = await_host(setup, WIRE_MAPPED, fds, err);

    return n < 0 ? n : 0;
}

/*
 * A thread that writes "0" to a v1 `tasks` file moves itself without the long wait that moving
 * a process by pid can take. On v2 the clone has already joined: no descriptors come.
 */
static int join_cgroups(struct setup *setup, struct carrel_error *err)
{
    int fds[WIRE_MAX_FDS];

    int n = await_host(setup, WIRE_GO, fds, err);
    if (n < 0)
        return n;
    for (int i = 0; i < n; i++) {
        if (write(fds[i], "0", 1) != 1)
            return err_set_errno(err, -errno, "join cgroup %d", i);
        fd_close(fds[i]);
    }
    if (unshare(CLONE_NEWCGROUP) < 0)
        return err_set_errno(err, -errno, "make a cgroup namespace");
    return 0;
}

static int join_network(struct setup *setup, struct carrel_error *err)
{
    return setup->plan->has_netns ? network_join(&setup->network, err) : 0;
}

static int become_init_user(struct setup *setup, struct carrel_error *err)
{
    const struct plan *plan = setup->plan;

    if (plan->has_range && process_drop_groups() < 0)
        return err_set_errno(err, -errno, "drop supplementary groups");
    if (process_set_gid(plan->init_gid) < 0)
        return err_set_errno(err, -errno, "set gid %u", (unsigned)plan->init_gid);
    if (process_set_uid(plan->init_uid) < 0)
        return err_set_errno(err, -errno, "set uid %u", (unsigned)plan->init_uid);
    return 0;
}

/* If the caller's own id is mapped we have it already, with its groups, and need both. */
static int become_maker(struct setup *setup, struct carrel_error *err)
{
    return setup->plan->has_subids ? 0 : become_init_user(setup, err);
}

static int become_other(struct setup *setup, struct carrel_error *err)
{
    return setup->plan->has_subids ? become_init_user(setup, err) : 0;
}

static int set_hostname(struct setup *setup, struct carrel_error *err)
{
    const char *name = setup->plan->hostname;

    if (sethostname(name, strlen(name)) < 0)
        return err_set_errno(err, -errno, "set host name '%s'", name);
    return 0;
}

static int build_root(struct setup *setup, struct carrel_error *err)
{
    int space = apply_plan(setup->plan, setup->mount_fds, &setup->skeleton, err);

    if (space < 0)
        return space;
    setup->space_fd = space;
    return 0;
}

static int confine_files(struct setup *setup, struct carrel_error *err)
{
    const struct plan *plan = setup->plan;

    return plan->landlock > 0 ? landlock_confine(plan->landlock, plan->writable, err) : 0;
}

static int bound_privileges(struct setup *setup, struct carrel_error *err)
{
    (void)setup;
    return caps_bound(err);
}

/*
 * init needs these to start and to kill programs under any id of the range; they are limited to
 * this user namespace.
 */
static int drop_privileges(struct setup *setup, struct carrel_error *err)
{
    uint32_t keep =
            setup->plan->has_range ? 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL : 0;

    return caps_keep(keep, err);
}

/*
 * Programs inherit it, and under the filter neither they nor init can change it any more. Not
 * 0: that would still start a core_pattern that is a program; see core(5). Raising a hard limit
 * requires the host's root.
 */
static int forbid_core_dumps(struct setup *setup, struct carrel_error *err)
{
    struct rlimit limit;

    (void)setup;
    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return err_set_errno(err, -errno, "read the core limit");
    if (limit.rlim_max > 1)
        limit.rlim_max = 1;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_CORE, &limit) < 0)
        return err_set_errno(err, -errno, "forbid core dumps");
    return 0;
}

static int hide_init(struct setup *setup, struct carrel_error *err)
{
    (void)setup;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_set_errno(err, -errno, "make init unreadable");
    return 0;
}

/* The descriptors that init keeps get the lowest numbers; all others are closed. */
static int close_rest(struct setup *setup, struct carrel_error *err)
{
    int *const keep[] = { &setup->sock, &setup->events, &setup->owner, &setup->space_fd,
        &setup->lock_fd };
    const int n = (int)ARRAY_LEN(keep);

    for (int i = 0; i < n; i++) {
        if (*keep[i] < 0)
            continue;
        int high = fcntl(*keep[i], F_DUPFD_CLOEXEC, n); /* above the target numbers first */
        if (high < 0)
            return err_set_errno(err, -errno, "move descriptor %d", *keep[i]);
        *keep[i] = high;
    }
    for (int i = 0; i < n; i++) {
        if (*keep[i] < 0) {
            fd_close(i);
            continue;
        }
        if (dup3(*keep[i], i, O_CLOEXEC) < 0)
            return err_set_errno(err, -errno, "move descriptor %d", *keep[i]);
        *keep[i] = i;
    }
    if (syscall(SYS_close_range, (unsigned)n, ~0U, 0U) < 0)
        return err_set_errno(err, -errno, "close inherited descriptors");
    return 0;
}

static int filter_init(struct setup *setup, struct carrel_error *err)
{
    return seccomp_install_init(&setup->listener, err);
}

int setup_run(struct setup *setup, struct carrel_error *err)
{
    static int (*const steps[])(struct setup *, struct carrel_error *) = {
        begin_network,   /* first: it takes longest, in parallel to all that follows */
        forget_caller,   /* no data of the caller may be visible from here on */
        make_namespaces, /* before waiting: the host maps the ids in the meantime */
        await_ids,       /* before anything that needs mapped ids */
        become_maker,    /* before creating files, whose owner must be an id inside */
        set_hostname,    /* any time before the capabilities are dropped */
        build_root,      /* from here on the host's files have no path */
        become_other,    /* after the last path of the host, which may need the host's id */
        join_cgroups, /* the host had time to create them; the thread is not moved, and exits */
        confine_files,     /* after the root: its rules name paths inside */
        bound_privileges,  /* drops no right that we have */
        join_network,      /* as late as possible; from here on we are one thread */
        drop_privileges,   /* after everything that needs them */
        forbid_core_dumps, /* before the filter, which fixes the limit */
        hide_init,   /* before the first program could look; after the last set-uid call */
        close_rest,  /* last but one: steps above use descriptors of the host */
        filter_init, /* last: it forbids most of the above */
    };

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int r = steps[i](setup, err);
        if (r < 0)
            return r;
    }
    return 0;
}
