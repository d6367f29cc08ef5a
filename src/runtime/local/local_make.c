/*
 * local_make.c - creates a kernel sandbox, on the host's side.
 *
 * Facts, plan, slot, clone; then, while the child creates its namespaces, the id maps and the
 * cgroup; then "go". Everything that can be refused is refused before the clone. If a later
 * step fails, the child is killed and nothing is left.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/rundir.h"
#include "runtime/adapters.h"
#include "runtime/local/apparmor.h"
#include "runtime/local/cgroup/cgroup.h"
#include "runtime/local/cgroup/cgroup_io.h"
#include "runtime/local/disks.h"
#include "runtime/local/host.h"
#include "runtime/local/idmap.h"
#include "runtime/local/inside/init.h"
#include "runtime/local/inside/setup.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/local.h"
#include "runtime/local/plan.h"
#include "runtime/local/skeleton.h"
#include "runtime/local/sources.h"
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int check_files(const struct sandbox_limits *limits, struct carrel_error *err)
{
    struct rlimit hard;

    if (getrlimit(RLIMIT_NOFILE, &hard) < 0)
        return err_set_errno(err, -errno, "getrlimit");
    if (limits->value[LIMIT_FILES] > hard.rlim_max)
        return err_set(err, -EINVAL,
                "the files limit %ju is above this process's own hard limit %ju (ulimit -Hn)",
                (uintmax_t)limits->value[LIMIT_FILES], (uintmax_t)hard.rlim_max);
    return 0;
}

static int refuse(enum limit limit, const char *why, struct carrel_error *err)
{
    return err_set(err, -ENOTSUP,
            "the %s limit cannot be enforced here: %s; or accept less with --best-effort %s",
            limit_name(limit), why, limit_name(limit));
}

static int choose_holders(const struct sandbox_spec *spec, const struct cgroup_parent *where,
        enum limit_holder held_by[LIMIT_COUNT], struct carrel_error *err)
{
    static const enum limit by_cgroup[] = { LIMIT_MEMORY, LIMIT_PIDS, LIMIT_CPU };
    const struct sandbox_limits *limits = &spec->limits;
    int r = 0;
    const unsigned demanded = limits->demanded & ~limits->best_effort;

    held_by[LIMIT_DISK] = HELD_BY_FILESYSTEM;
    held_by[LIMIT_FILES] = HELD_BY_RLIMIT;
    for (size_t i = 0; i < ARRAY_LEN(by_cgroup); i++) {
        enum limit limit = by_cgroup[i];
        if (where->version != CGROUP_NONE)
            held_by[limit] = HELD_BY_CGROUP;
        else if (demanded & LIMIT_BIT(limit))
            return refuse(limit, where->why, err);
        else
            held_by[limit] = limit == LIMIT_CPU ? HELD_BY_NOTHING : HELD_BY_RLIMIT;
    }
    for (enum limit limit = LIMIT_OPTIONAL; r == 0 && limit < LIMIT_COUNT; limit++) {
        char why[CGROUP_WHY_MAX];
        if (limits->value[limit] && !cgroup_can_limit_io(where, limit, why))
            r = demanded & LIMIT_BIT(limit) ? refuse(limit, why, err) : 0;
        else if (limits->value[limit])
            held_by[limit] = HELD_BY_CGROUP;
    }
    return r < 0 ? r : check_files(limits, err);
}

/* The same for disks, once it is known what the sandbox reads and writes. */
static int choose_disks(
        struct local *local, const struct sandbox_limits *limits, struct carrel_error *err)
{
    enum limit_holder *held_by = local->wired.base.held_by;
    char why[CGROUP_WHY_MAX];

    for (enum limit limit = LIMIT_OPTIONAL; limit < LIMIT_COUNT; limit++) {
        if (held_by[limit] != HELD_BY_CGROUP || disks_cover(local->plan, limit, why))
            continue;
        if (limits->demanded & ~limits->best_effort & LIMIT_BIT(limit))
            return refuse(limit, why, err);
        held_by[limit] = HELD_BY_NOTHING;
    }
    return 0;
}

/* What the cgroup gets: a limit that it does not hold is none, instead of half of one. */
static struct sandbox_limits limits_of_cgroup(
        const struct local *local, const struct sandbox_limits *limits)
{
    struct sandbox_limits own = *limits;

    for (enum limit limit = LIMIT_OPTIONAL; limit < LIMIT_COUNT; limit++)
        if (local->wired.base.held_by[limit] != HELD_BY_CGROUP)
            own.value[limit] = 0;
    return own;
}

/* Without a cgroup: per process for memory, per user namespace (so per sandbox) for pids. */
static void substitute_rlimits(const struct sandbox_limits *limits,
        const enum limit_holder held_by[LIMIT_COUNT], struct plan *plan)
{
    if (held_by[LIMIT_MEMORY] == HELD_BY_RLIMIT)
        plan_add_rlimit(plan, RLIMIT_DATA, limits->value[LIMIT_MEMORY]);
    if (held_by[LIMIT_PIDS] == HELD_BY_RLIMIT)
        plan_add_rlimit(plan, RLIMIT_NPROC, limits->value[LIMIT_PIDS] + 1); /* init */
}

/*
 * A layer lies on the host's file system, which has no quota for it: a resource limit bounds
 * each file, and the maker of the sandbox polls the sum.
 */
static void choose_disk_holder(const struct sandbox_limits *limits, const struct plan *plan,
        enum limit_holder held_by[LIMIT_COUNT])
{
    if (plan->disk_use != DISK_IS_UNUSED && !plan->disk.is_in_memory)
        held_by[LIMIT_DISK] =
                limits->demanded & LIMIT_BIT(LIMIT_DISK) ? HELD_BY_RLIMIT : HELD_BY_NOTHING;
}

static uint64_t protections_of(const struct local *local)
{
    uint64_t set = PROTECT_BIT(PROTECT_COUNT) - 1;

    if (!local->plan->has_netns)
        set &= ~PROTECT_BIT(PROTECT_NETNS);
    if (local->plan->landlock == 0)
        set &= ~PROTECT_BIT(PROTECT_LANDLOCK);
    if (local->wired.base.held_by[LIMIT_MEMORY] != HELD_BY_CGROUP)
        set &= ~(PROTECT_BIT(PROTECT_MEMORY) | PROTECT_BIT(PROTECT_PIDS) |
                 PROTECT_BIT(PROTECT_CPU));
    return set;
}

/* Both ends of the connections with init. */
struct link {
    int sock[2]; /* [0] is ours */
    int events[2];
    int owner;
};
#define LINK_INIT                                                                              \
    {                                                                                          \
        { -1, -1 }, { -1, -1 }, -1                                                             \
    }

static void link_close(struct link link)
{
    for (int i = 0; i < 2; i++) {
        fd_close(link.sock[i]);
        fd_close(link.events[i]);
    }
    fd_close(link.owner);
}
DEFINE_AUTO(struct link, link_close)

static int link_open(struct link *link, struct carrel_error *err)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link->sock) < 0 ||
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link->events) < 0)
        return err_set_errno(err, -errno, "socketpair");
    link->owner = (int)syscall(SYS_pidfd_open, getpid(), 0);
    return link->owner < 0 ? err_set_errno(err, -errno, "pidfd_open") : 0;
}

static int explain_clone(int code, struct carrel_error *err)
{
    char remedy[APPARMOR_REMEDY_MAX];

    if ((code == -EPERM || code == -EACCES) && apparmor_restricts_userns()) {
        apparmor_remedy(remedy);
        return err_set(err, -ENOTSUP,
                "cannot make a user namespace (%s): AppArmor restricts them to programs with "
                "a profile; %s",
                strerrordesc_np(-code), remedy);
    }
    if (code == -EPERM || code == -ENOSPC || code == -EUSERS)
        return err_set(err, -ENOTSUP,
                "cannot make a user namespace (%s); allow it: sysctl "
                "user.max_user_namespaces=10000, and where it exists "
                "kernel.unprivileged_userns_clone=1",
                strerrordesc_np(-code));
    return err_set_errno(err, code, "clone into new namespaces");
}

/* The host's trees to be mounted, as detached mounts: init inherits them. */
struct trees {
    struct sources sources;
    struct skeleton skeleton;
};

/* Forks init. Only namespaces that cannot be created in parallel are created here. */
static int clone_init(
        struct local *local, const struct trees *trees, pid_t *pid, struct carrel_error *err)
{
    AUTO(link_close) struct link link = LINK_INIT;
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)&local->pidfd,
        /* No exit signal: a library must not affect its caller's SIGCHLD and wait(). */
    };
    sigset_t before;

    int r = link_open(&link, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int cgroup = cgroup_open(&local->cgroup);
    if (cgroup >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)cgroup;
    } else if (local->cgroup.version == CGROUP_V2) {
        return err_set_errno(err, cgroup, "open the cgroup");
    }
    signals_block(&before); /* init never unblocks them */
    *pid = sys_clone3(&args);
    if (*pid == 0) {
        struct setup setup = {
            .plan = local->plan,
            .mount_fds = trees->sources.fds,
            .skeleton = trees->skeleton,
            .sock = link.sock[1],
            .events = link.events[1],
            .owner = link.owner,
            .lock_fd = local->slot.lock,
            .space_fd = -1,
        };
        fd_close(link.sock[0]); /* else we would never see the host's end close */
        fd_close(link.events[0]);
        init_main(&setup);
    }
    int code = -errno;
    signals_unblock(&before);
    if (*pid < 0)
        return explain_clone(code, err);
    local->wired.sock = fd_steal(&link.sock[0]);
    local->wired.base.event_fd = fd_steal(&link.events[0]);
    return 0;
}

/* -EPIPE: the child has failed; its own message says why. */
static int tell(struct local *local, enum wire_kind kind, const int *fds, size_t n,
        struct carrel_error *err)
{
    const struct wire_message message = { .kind = (uint32_t)kind };

    int r = wire_send(local->wired.sock, &message, fds, n, 0);
    return r < 0 && r != -EPIPE ? err_set_errno(err, r, "tell the sandbox to go on") : 0;
}

static int map_ids(struct local *local, pid_t pid, struct carrel_error *err)
{
    int r = idmap_write(pid, local->plan, SLOT_FIRST_ID + local->slot.number * PLAN_RANGE, err);

    return r < 0 ? r : tell(local, WIRE_MAPPED, NULL, 0, err);
}

static int send_go(struct local *local, struct carrel_error *err)
{
    int joins[CGROUP_CONTROLLERS];

    int n = cgroup_open_joins(&local->cgroup, joins, err);
    if (n < 0)
        return n;
    int r = tell(local, WIRE_GO, joins, (size_t)n, err);
    while (n-- > 0)
        fd_close(joins[n]);
    return r;
}

static int launch_init(struct local *local, const struct sandbox_spec *spec,
        const struct cgroup_parent *where, const struct trees *trees, struct carrel_error *err)
{
    const struct sandbox_limits limits = limits_of_cgroup(local, &spec->limits);
    int r = 0;

    if (where->version == CGROUP_V2) /* the clone itself joins it */
        r = cgroup_create(&local->cgroup, where, local->slot.name, &limits, err);
    if (r == 0)
        r = clone_init(local, trees, &local->pid, err);
    if (r == 0)
        r = map_ids(local, local->pid, err);
    if (r == 0 && where->version == CGROUP_V1)
        r = cgroup_create(&local->cgroup, where, local->slot.name, &limits, err);
    if (r == 0)
        r = send_go(local, err);
    if (r == 0)
        slot_sweep_few(&local->slot, where); /* while init does its part */
    return r;
}

/* The slot first: while it is held, no sweep removes the skeleton. */
static int take_slot(struct local *local, struct skeleton *skeleton, struct carrel_error *err)
{
    AUTO(fd_close) int dir = rundir_open(err);
    if (dir < 0)
        return dir;
    int r = slot_take(&local->slot, dir, err);
    return r < 0 ? r : skeleton_open(skeleton, dir, local->plan, err);
}

/* The plan is final; from here on kernel objects are created. */
static int launch(struct local *local, const struct sandbox_spec *spec,
        const struct cgroup_parent *where, struct carrel_error *err)
{
    struct trees trees = { .skeleton = SKELETON_INIT };
    int r = 0;

    if (plan_is_of_root(local->plan) || where->version != CGROUP_NONE)
        r = take_slot(local, &trees.skeleton, err);
    if (r == 0)
        r = sources_open(&trees.sources, local->plan,
                SLOT_FIRST_ID + local->slot.number * PLAN_RANGE, err);
    if (r == 0)
        r = choose_disks(local, &spec->limits, err);
    if (r == 0) {
        substitute_rlimits(&spec->limits, local->wired.base.held_by, local->plan);
        local->wired.base.protections = protections_of(local);
        r = launch_init(local, spec, where, &trees, err);
    }
    sources_close(&trees.sources);
    skeleton_close(&trees.skeleton);
    return r;
}

int local_create(struct runtime *rt, const struct sandbox_spec *spec, struct sandbox **out,
        struct carrel_error *err)
{
    AUTO(host_free) struct host *host = NULL;
    struct cgroup_parent where;

    (void)rt;
    struct local *local = calloc(1, sizeof(*local));
    if (!local)
        return err_set_errno(err, -ENOMEM, "sandbox");
    local->slot = SLOT_INIT;
    local->cgroup = CGROUP_INIT;
    local->pidfd = -1;
    wired_init(&local->wired, local_runtime.ops, local_kill);

    cgroup_find(&where);
    int r = choose_holders(spec, &where, local->wired.base.held_by, err);
    if (r == 0)
        r = host_read(spec, &host, err);
    if (r == 0)
        r = plan_make(spec, host, &local->plan, err);
    if (r == 0)
        choose_disk_holder(&spec->limits, local->plan, local->wired.base.held_by);
    if (r == 0)
        r = launch(local, spec, &where, err);
    if (r < 0) {
        sandbox_free(&local->wired.base);
        return r;
    }
    assert(local->plan);
    plan_forget_steps(local->plan); /* init has its own copy, and the sandbox may live long */
    local->wired.base.workspace = PLAN_WORKSPACE;
    local->wired.base.home = PLAN_HOME;
    local->wired.base.user_name = local->plan->user_name;
    *out = &local->wired.base;
    return 0;
}
