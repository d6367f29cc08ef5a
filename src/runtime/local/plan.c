/* plan.c - turns a spec into steps; pure. */
#include "runtime/local/plan.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "runtime/local/host.h"
#include "runtime/local/plan_build.h"
#include "runtime/runtime.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Extra size for the skeleton, so that the program gets all of --disk. */
#define SKELETON_BYTES (256U << 10)
#define SKELETON_INODES 256U

static void dir(struct builder *b, const char *path)
{
    plan_add(b, (struct step){ .kind = STEP_DIR, .path = path, .mode = 0755 });
}

static void file(struct builder *b, enum step_kind kind, const char *path, const char *content)
{
    if (!content)
        b->is_short = true;
    plan_add(b, (struct step){ .kind = kind, .path = path, .source = content, .mode = 0644 });
}

static void simple(struct builder *b, enum step_kind kind, const char *path, const char *source)
{
    plan_add(b, (struct step){ .kind = kind, .path = path, .source = source });
}

static void space(struct builder *b, const char *path, mode_t mode)
{
    plan_add(b, (struct step){ .kind = STEP_SPACE, .path = path, .mode = mode });
    plan_writable(b, plan_text(b->plan, "/%s", path));
}

/* The programs of the host (or of another root), read-only. */
static void plan_root(
        struct builder *b, const struct sandbox_spec *spec, const struct host *host)
{
    const char *prefix = spec->root ? spec->root : "";

    if (spec->root_overlay) /* it is mounted as a whole */
        return;
    if (spec->root) {
        b->plan->root = plan_text(b->plan, "%s", spec->root);
        b->plan->root_id = host->root;
        b->is_short = b->is_short || !b->plan->root;
    } else {
        dir(b, "etc");
    }
    for (size_t i = 0; i < host->n_entries; i++) {
        const struct host_entry *entry = &host->entries[i];
        if (entry->kind == ENTRY_LINK) {
            simple(b, STEP_LINK, entry->path, entry->link);
            continue;
        }
        if (entry->kind == ENTRY_DIR)
            dir(b, entry->path);
        else
            file(b, STEP_FILE, entry->path, "");
        simple(b, STEP_BIND, entry->path, plan_text(b->plan, "%s/%s", prefix, entry->path));
    }
}

static void plan_etc(
        struct builder *b, const struct sandbox_spec *spec, const struct host *host)
{
    struct plan *plan = b->plan;
    const bool is_other = spec->root || spec->root_overlay;
    enum step_kind kind = is_other ? STEP_COVER : STEP_FILE;
    unsigned agent_uid = plan->uid == 0 || plan->uid == 65534 ? PLAN_USER : plan->uid;
    unsigned agent_gid = plan->gid == 0 || plan->gid == 65534 ? PLAN_USER : plan->gid;

    file(b, kind, "etc/hostname", plan_text(plan, "%s\n", plan->hostname));
    file(b, kind, "etc/hosts",
            plan_text(plan,
                    "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
                    "127.0.1.1 %s\n",
                    plan->hostname));
    file(b, kind, "etc/resolv.conf", host->resolv_conf);
    if (is_other)
        return; /* it has its own users and name services */
    file(b, kind, "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n");
    file(b, kind, "etc/passwd",
            plan_text(plan,
                    "root:x:0:0:root:%s:/bin/sh\n"
                    "agent:x:%u:%u:agent:" PLAN_HOME ":/bin/sh\n"
                    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                    plan->uid == 0 ? PLAN_HOME : "/root", agent_uid, agent_gid));
    file(b, kind, "etc/group",
            plan_text(plan, "root:x:0:\ntty:x:5:\nagent:x:%u:\nnogroup:x:65534:\n", agent_gid));
}

static void plan_dev(struct builder *b)
{
    static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };

    dir(b, "dev");
    if (b->plan->disk_use == DISK_IS_ROOT)
        simple(b, STEP_DEV, "dev", NULL);
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        const char *path = plan_text(b->plan, "dev/%s", nodes[i]);
        file(b, STEP_FILE, path, "");
        simple(b, STEP_DEVICE, path, plan_text(b->plan, "/dev/%s", nodes[i]));
    }
    dir(b, "dev/pts");
    simple(b, STEP_DEVPTS, "dev/pts", NULL);
    simple(b, STEP_LINK, "dev/ptmx", "pts/ptmx");
    simple(b, STEP_LINK, "dev/fd", "/proc/self/fd");
    simple(b, STEP_LINK, "dev/stdin", "/proc/self/fd/0");
    simple(b, STEP_LINK, "dev/stdout", "/proc/self/fd/1");
    simple(b, STEP_LINK, "dev/stderr", "/proc/self/fd/2");
    dir(b, "dev/shm");
    space(b, "dev/shm", 01777);
    plan_writable(b, "/dev"); /* terminals and null; the directory itself is read-only */
}

static void plan_mask(struct builder *b, const struct proc_mask *mask, const char *stat)
{
    const char *path = plan_text(b->plan, "proc/%s", mask->name);

    switch (mask->kind) {
    case MASK_FILE:
        simple(b, STEP_MASK, path, NULL);
        return;
    case MASK_DIR:
        simple(b, STEP_MASK_DIR, path, NULL);
        return;
    case MASK_READ_ONLY:
        simple(b, STEP_READ_ONLY, path, NULL);
        return;
    case MASK_CLOSED:
        plan_add(b, (struct step){ .kind = STEP_COVER, .path = path, .source = "", .mode = 0 });
        return;
    case MASK_STAT:
        file(b, STEP_COVER, path, stat);
        return;
    }
}

static void plan_proc(struct builder *b, const struct host *host)
{
    if (b->plan->disk_use != DISK_IS_ROOT)
        dir(b, "proc");
    simple(b, STEP_PROC, "proc", NULL);
    for (size_t i = 0; i < n_proc_masks; i++)
        if (host->proc_masks & UINT64_C(1) << i)
            plan_mask(b, &proc_masks[i], host->proc_stat);
    plan_writable(b, "/proc"); /* a process may write to its own entries */
}

/*
 * The private directories: their names on disk are not paths, since a layer contains only them.
 */
static const struct place {
    const char *path;
    const char *name;
    mode_t mode;
} places[] = {
    { "tmp", "tmp", 01777 },
    { "home/agent", "home", 0700 },
    { "workspace", "workspace", 0755 },
};

static void plan_places(struct builder *b)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (b->plan->disk_use == DISK_IS_UNUSED) {
            space(b, places[i].path, places[i].mode);
            continue;
        }
        plan_add(b, (struct step){ .kind = STEP_KEPT,
                            .path = places[i].path,
                            .source = places[i].name,
                            .mode = places[i].mode });
        plan_writable(b, plan_text(b->plan, "/%s", places[i].path));
    }
}

static void plan_space(struct builder *b, const struct sandbox_spec *spec)
{
    if (b->plan->disk_use == DISK_IS_ROOT) {
        space(b, "run", 0755);
        return;
    }
    dir(b, "tmp");
    dir(b, "run");
    dir(b, "home");
    dir(b, "home/agent");
    dir(b, "workspace");
    space(b, "run", 0755);
    plan_places(b);
    if (!spec->root) {
        dir(b, "var");
        simple(b, STEP_LINK, "var/tmp", "/tmp");
    }
}

/*
 * A root on disk gets its directories before anything is mounted in it: until then only the
 * root itself can be reached.
 */
static void plan_root_on_disk(struct builder *b)
{
    static const char *const points[] = { "proc", "dev", "run" };

    plan_writable(b, "/");
    for (size_t i = 0; i < ARRAY_LEN(points); i++)
        plan_add(b, (struct step){ .kind = STEP_POINT, .path = points[i], .mode = 0755 });
    plan_add(b, (struct step){ .kind = STEP_ENSURE, .path = "etc", .mode = 0755 });
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        plan_add(b,
                (struct step){
                        .kind = STEP_ENSURE, .path = places[i].path, .mode = places[i].mode });
}

/*
 * The shared skeleton is read-only, so the target of a mount must exist there or be in a
 * private directory. With another root there would be one skeleton for each of its states.
 */
static bool can_share(const struct plan *plan, const struct sandbox_spec *spec)
{
    static const char *const private[] = { "/tmp", "/run", PLAN_HOME, PLAN_WORKSPACE };

    if (!plan_is_of_root(plan) || spec->root)
        return false;
    if (spec->root_overlay)
        return true; /* only its /dev, where no mount is allowed */
    for (size_t i = 0; i < spec->n_mounts; i++) {
        bool has_place = false;
        for (size_t j = 0; j < ARRAY_LEN(private); j++)
            has_place = has_place || path_is_below(spec->mounts[i].target, private[j]);
        if (!has_place)
            return false;
    }
    return true;
}

void plan_identity(const struct sandbox_spec *spec, bool has_range, uid_t *uid, gid_t *gid)
{
    if (spec->has_user || has_range) {
        *uid = spec->has_user ? spec->uid : PLAN_USER;
        *gid = spec->has_user ? spec->gid : PLAN_USER;
    }
}

static int plan_ids(struct plan *plan, const struct sandbox_spec *spec, const struct host *host,
        struct carrel_error *err)
{
    if (host->uid == 0 && !host->is_root && !host->is_nested)
        return err_set(err, -EPERM,
                "root without CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID cannot map ids away "
                "from "
                "itself; give carrel these capabilities or run it as an ordinary user");
    plan->has_range = host->is_root || host->has_subids;
    plan->has_subids = host->has_subids;
    plan->subids = host->subids;
    plan->uid = host->uid;
    plan->gid = host->gid;
    plan_identity(spec, host->is_root, &plan->uid, &plan->gid);
    if (host->is_root && (plan->uid >= PLAN_RANGE || plan->gid >= PLAN_RANGE))
        return err_set(err, -EINVAL, "user %u:%u: ids in a sandbox range from 0 to %u",
                (unsigned)plan->uid, (unsigned)plan->gid, PLAN_RANGE - 1);
    plan->init_uid = plan->has_range ? 0 : plan->uid;
    plan->init_gid = plan->has_range ? 0 : plan->gid;
    plan->is_init_apart = plan->init_uid != plan->uid;
    /* Only the caller's own id can access the caller's files. */
    plan->maker_uid = plan->has_subids ? plan->uid : plan->init_uid;
    plan->maker_gid = plan->has_subids ? plan->gid : plan->init_gid;
    plan->user_name = plan->uid == 0 ? "root" : plan->uid == 65534 ? "nobody" : "agent";
    return 0;
}

static void plan_space_size(struct plan *plan, uint64_t disk_bytes)
{
    uint64_t inodes = disk_bytes / 8192;

    if (inodes < 1024)
        inodes = 1024;
    if (inodes > 1U << 20)
        inodes = 1U << 20;
    (void)snprintf(plan->space_bytes, sizeof(plan->space_bytes), "%" PRIu64,
            disk_bytes + SKELETON_BYTES);
    (void)snprintf(plan->space_inodes, sizeof(plan->space_inodes), "%" PRIu64,
            inodes + SKELETON_INODES);
}

struct plan plan_for_programs(const struct plan *plan)
{
    struct plan part = {
        .init_uid = plan->init_uid,
        .init_gid = plan->init_gid,
        .uid = plan->uid,
        .gid = plan->gid,
        .has_range = plan->has_range,
        .has_subids = plan->has_subids,
        .is_init_apart = plan->is_init_apart,
        .stays = plan->stays,
        .n_rlimits = plan->n_rlimits,
        .user_name = plan->user_name,
    };

    memcpy(part.rlimits, plan->rlimits, sizeof(part.rlimits));
    return part;
}

void plan_add_rlimit(struct plan *plan, int resource, uint64_t value)
{
    assert(plan->n_rlimits < PLAN_MAX_RLIMITS);
    plan->rlimits[plan->n_rlimits++] =
            (struct spawn_rlimit){ .resource = resource, .value = value };
}

/*
 * The upper directory of an overlay is on the host's file system, which has no quota for it.
 * But each file can be limited. Only if a limit was demanded, since it affects sparse files,
 * too; and not if the caller lets the program write elsewhere, which --disk does not cover.
 */
static bool bounds_each_file(const struct sandbox_spec *spec)
{
    bool has_overlay = spec->space || (spec->root_overlay && spec->root_overlay->space);

    for (size_t i = 0; i < spec->n_mounts; i++) {
        if (spec->mounts[i].overlay)
            has_overlay = true;
        else if (spec->mounts[i].access == ACCESS_READ_WRITE)
            return false;
    }
    return has_overlay && (spec->limits.demanded & LIMIT_BIT(LIMIT_DISK));
}

static void plan_rlimits(struct plan *plan, const struct sandbox_spec *spec)
{
    plan_add_rlimit(plan, RLIMIT_NOFILE, spec->limits.value[LIMIT_FILES]);
    plan_add_rlimit(plan, RLIMIT_MEMLOCK, 64U << 10);
    plan_add_rlimit(plan, RLIMIT_MSGQUEUE, 800U << 10);
    plan_add_rlimit(plan, RLIMIT_SIGPENDING, 4096);
    plan_add_rlimit(plan, RLIMIT_RTPRIO, 0);
    plan_add_rlimit(plan, RLIMIT_NICE, 0);
    if (bounds_each_file(spec))
        plan_add_rlimit(plan, RLIMIT_FSIZE, spec->limits.value[LIMIT_DISK]);
}

int plan_make(const struct sandbox_spec *spec, const struct host *host, struct plan **out,
        struct carrel_error *err)
{
    AUTO(plan_free) struct plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return err_set_errno(err, -ENOMEM, "plan");
    struct builder b = { .plan = plan };

    int r = plan_ids(plan, spec, host, err);
    if (r < 0)
        return r;
    plan->hostname = plan_text(plan, "%s", spec->hostname ? spec->hostname : "carrel");
    if (!plan->hostname)
        return err_set_errno(err, -ENOMEM, "plan");
    plan->has_netns = spec->network == NETWORK_NONE;
    plan->stays = spec->stays;
    plan->landlock = host->landlock;
    plan_space_size(plan, spec->limits.value[LIMIT_DISK]);
    plan_rlimits(plan, spec);

    r = plan_disk(&b, spec, err);
    if (r < 0)
        return r;
    if (plan->disk_use == DISK_IS_ROOT)
        plan_root_on_disk(&b);
    plan_root(&b, spec, host);
    plan_etc(&b, spec, host);
    plan_dev(&b);
    plan_proc(&b, host);
    plan_space(&b, spec);
    r = plan_mounts(&b, spec, err); /* last: the caller may mount over any of the above */
    if (r < 0)
        return r;
    if (b.is_short)
        return err_set_errno(err, -ENOMEM, "plan");
    plan->shares_skeleton = can_share(plan, spec);
    *out = ptr_steal(&plan);
    return 0;
}

static void free_lists(struct plan *plan)
{
    plan_free_texts(plan);
    free(plan->steps);
    free(plan->mounts);
    free(plan->sources);
    free(plan->writable);
}

void plan_forget_steps(struct plan *plan)
{
    struct plan part = plan_for_programs(plan);

    free_lists(plan);
    *plan = part;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    free_lists(plan);
    free(plan);
}
