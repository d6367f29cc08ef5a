/* plan.c - from a spec to steps: pure. */
#include "runtime/local/plan.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "runtime/local/host.h"
#include "runtime/runtime.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Room for the skeleton, so that --disk is what the program gets. */
#define SKELETON_BYTES (256U << 10)
#define SKELETON_INODES 256U

/* Text that lives as long as the plan. NULL when memory is gone. */
static char *text(struct plan *plan, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
static char *text(struct plan *plan, const char *fmt, ...)
{
    char *string = NULL;
    va_list ap;

    va_start(ap, fmt);
    int len = vasprintf(&string, fmt, ap);
    va_end(ap);
    if (len < 0)
        return NULL;
    void **memory = reallocarray(plan->memory, plan->n_memory + 1, sizeof(*memory));
    if (!memory) {
        free(string);
        return NULL;
    }
    plan->memory = memory;
    plan->memory[plan->n_memory++] = string;
    return string;
}

/* The steps grow in a builder that remembers whether memory ran out, so that each line below is
 * one decision. */
struct builder {
    struct plan *plan;
    size_t room;
    size_t n_writable;
    bool is_short;
};

static void add(struct builder *b, struct step step)
{
    struct plan *plan = b->plan;

    if (plan->n_steps == b->room) {
        size_t room = b->room ? 2 * b->room : 64;
        struct step *steps = reallocarray(plan->steps, room, sizeof(*steps));
        if (!steps) {
            b->is_short = true;
            return;
        }
        plan->steps = steps;
        b->room = room;
    }
    if (!step.path)
        b->is_short = true;
    else
        plan->steps[plan->n_steps++] = step;
}

static void dir(struct builder *b, const char *path)
{
    add(b, (struct step){ .kind = STEP_DIR, .path = path, .mode = 0755 });
}

static void file(struct builder *b, enum step_kind kind, const char *path, const char *content)
{
    if (!content)
        b->is_short = true;
    add(b, (struct step){ .kind = kind, .path = path, .source = content, .mode = 0644 });
}

static void simple(struct builder *b, enum step_kind kind, const char *path, const char *source)
{
    add(b, (struct step){ .kind = kind, .path = path, .source = source });
}

static void writable(struct builder *b, const char *path)
{
    const char **list =
            reallocarray(b->plan->writable, b->n_writable + 2, sizeof(b->plan->writable[0]));
    if (!list || !path) {
        b->is_short = true;
        if (list)
            b->plan->writable = list;
        return;
    }
    list[b->n_writable++] = path;
    list[b->n_writable] = NULL;
    b->plan->writable = list;
}

static void space(struct builder *b, const char *path, mode_t mode)
{
    add(b, (struct step){ .kind = STEP_SPACE, .path = path, .mode = mode });
    writable(b, text(b->plan, "/%s", path));
}

/* The host's programs (or another root's), read-only. */
static void plan_root(
        struct builder *b, const struct sandbox_spec *spec, const struct host *host)
{
    const char *prefix = spec->root ? spec->root : "";

    if (!spec->root)
        dir(b, "etc");
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
        simple(b, STEP_BIND, entry->path, text(b->plan, "%s/%s", prefix, entry->path));
    }
}

static void plan_etc(
        struct builder *b, const struct sandbox_spec *spec, const struct host *host)
{
    struct plan *plan = b->plan;
    enum step_kind kind = spec->root ? STEP_COVER : STEP_FILE;
    unsigned agent_uid = plan->uid == 0 || plan->uid == 65534 ? PLAN_USER : plan->uid;
    unsigned agent_gid = plan->gid == 0 || plan->gid == 65534 ? PLAN_USER : plan->gid;

    file(b, kind, "etc/hostname", text(plan, "%s\n", plan->hostname));
    file(b, kind, "etc/hosts",
            text(plan,
                    "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
                    "127.0.1.1 %s\n",
                    plan->hostname));
    file(b, kind, "etc/resolv.conf", host->resolv_conf);
    if (spec->root)
        return; /* it has users and name services of its own */
    file(b, kind, "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n");
    file(b, kind, "etc/passwd",
            text(plan,
                    "root:x:0:0:root:%s:/bin/sh\n"
                    "agent:x:%u:%u:agent:" PLAN_HOME ":/bin/sh\n"
                    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                    plan->uid == 0 ? PLAN_HOME : "/root", agent_uid, agent_gid));
    file(b, kind, "etc/group",
            text(plan, "root:x:0:\ntty:x:5:\nagent:x:%u:\nnogroup:x:65534:\n", agent_gid));
}

static void plan_dev(struct builder *b)
{
    static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };

    dir(b, "dev");
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        const char *path = text(b->plan, "dev/%s", nodes[i]);
        file(b, STEP_FILE, path, "");
        simple(b, STEP_DEVICE, path, text(b->plan, "/dev/%s", nodes[i]));
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
    writable(b, "/dev"); /* terminals and null; the directory itself is read-only */
}

static void plan_proc(struct builder *b, const struct host *host)
{
    static const enum step_kind kinds[] = {
        [MASK_FILE] = STEP_MASK,
        [MASK_DIR] = STEP_MASK_DIR,
        [MASK_READ_ONLY] = STEP_READ_ONLY,
    };

    dir(b, "proc");
    simple(b, STEP_PROC, "proc", NULL);
    for (size_t i = 0; i < n_proc_masks; i++)
        if (host->proc_masks & UINT64_C(1) << i)
            simple(b, kinds[proc_masks[i].kind], text(b->plan, "proc/%s", proc_masks[i].name),
                    NULL);
    writable(b, "/proc"); /* a process may write to its own entries */
}

static void plan_space(struct builder *b, const struct sandbox_spec *spec)
{
    dir(b, "tmp");
    space(b, "tmp", 01777);
    dir(b, "run");
    space(b, "run", 0755);
    dir(b, "home");
    dir(b, "home/agent");
    space(b, "home/agent", 0700);
    dir(b, "workspace");
    space(b, "workspace", 0755);
    if (!spec->root) {
        dir(b, "var");
        simple(b, STEP_LINK, "var/tmp", "/tmp");
    }
}

/* Sorted by depth, so that a mount below another one comes after it. */
static int by_target(const void *a, const void *b)
{
    const struct plan_mount *x = a;
    const struct plan_mount *y = b;

    return strcmp(x->target, y->target); /* "a" sorts before "a/b" */
}

static int check_target(const char *target, struct carrel_error *err)
{
    static const char *const reserved[] = { "/proc", "/dev", "/sys" };
    char shown[128];

    if (!path_is_clean(target))
        return err_set(err, -EINVAL,
                "mount target '%s' is not an absolute path without '.', '..' and '//'",
                str_escape(target, strlen(target), shown, sizeof(shown)));
    if (strcmp(target, "/") == 0)
        return err_set(err, -EINVAL, "mount target '/' is the root itself; use --root");
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (path_is_below(target, reserved[i]))
            return err_set(err, -EINVAL,
                    "mount target '%s' is reserved: %s is the sandbox's own",
                    str_escape(target, strlen(target), shown, sizeof(shown)), reserved[i]);
    return 0;
}

static void source(struct builder *b, const char *path, bool is_writable)
{
    struct plan_source *made = &b->plan->sources[b->plan->n_sources++];

    made->path = text(b->plan, "%s", path);
    made->is_writable = is_writable;
    if (!made->path)
        b->is_short = true;
}

static int plan_mount(struct builder *b, const struct sandbox_mount *mount,
        struct plan_mount *out, struct carrel_error *err)
{
    const struct sandbox_overlay *overlay = mount->overlay;

    *out = (struct plan_mount){
        .target = text(b->plan, "%s", mount->target + 1),
        .is_writable = mount->access == ACCESS_READ_WRITE,
        .source = b->plan->n_sources,
    };
    if (!overlay) {
        source(b, mount->source, out->is_writable);
    } else {
        for (; overlay->lower[out->n_lower]; out->n_lower++) {
            if (out->n_lower == PLAN_MAX_LOWER)
                return err_set(err, -E2BIG, "mount '%s' has more than %u layers", mount->target,
                        PLAN_MAX_LOWER);
            source(b, overlay->lower[out->n_lower], false);
        }
        source(b, overlay->space, true);
        out->upper = text(b->plan, "%s", overlay->upper);
        out->work = text(b->plan, "%s", overlay->work);
    }
    if (b->is_short || !out->target || (overlay && (!out->upper || !out->work)))
        return err_set_errno(err, -ENOMEM, "plan mounts");
    return 0;
}

static int plan_mounts(
        struct builder *b, const struct sandbox_spec *spec, struct carrel_error *err)
{
    struct plan *plan = b->plan;

    if (spec->n_mounts == 0)
        return 0;
    plan->mounts = calloc(spec->n_mounts, sizeof(*plan->mounts));
    plan->sources = calloc(spec->n_mounts * (PLAN_MAX_LOWER + 1), sizeof(*plan->sources));
    if (!plan->mounts || !plan->sources)
        return err_set_errno(err, -ENOMEM, "plan mounts");
    for (size_t i = 0; i < spec->n_mounts; i++) {
        int r = check_target(spec->mounts[i].target, err);
        if (r == 0)
            r = plan_mount(b, &spec->mounts[i], &plan->mounts[i], err);
        if (r < 0)
            return r;
    }
    plan->n_mounts = spec->n_mounts;
    qsort(plan->mounts, plan->n_mounts, sizeof(*plan->mounts), by_target);
    for (size_t i = 0; i < plan->n_mounts; i++) {
        const struct plan_mount *mount = &plan->mounts[i];
        if (i > 0 && strcmp(mount->target, plan->mounts[i - 1].target) == 0)
            return err_set(err, -EINVAL, "two mounts have the target '/%s'", mount->target);
        add(b, (struct step){ .kind = mount->n_lower ? STEP_OVERLAY : STEP_MOUNT,
                       .path = mount->target,
                       .index = i });
        if (mount->is_writable)
            writable(b, text(plan, "/%s", mount->target));
    }
    return 0;
}

/*
 * The skeleton that sandboxes share is read-only, so a mount of the caller must find its place
 * there or in a private place. With another root there would be one for each of its states.
 */
static bool can_share(const struct plan *plan, const struct sandbox_spec *spec)
{
    static const char *const private[] = { "/tmp", "/run", PLAN_HOME, PLAN_WORKSPACE };

    if (!plan->has_range || spec->root)
        return false;
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
    plan->has_range = host->is_root;
    plan->uid = host->uid;
    plan->gid = host->gid;
    plan_identity(spec, host->is_root, &plan->uid, &plan->gid);
    if (plan->has_range && (plan->uid >= PLAN_RANGE || plan->gid >= PLAN_RANGE))
        return err_set(err, -EINVAL, "user %u:%u: ids in a sandbox go from 0 to %u",
                (unsigned)plan->uid, (unsigned)plan->gid, PLAN_RANGE - 1);
    plan->init_uid = plan->has_range ? 0 : plan->uid;
    plan->init_gid = plan->has_range ? 0 : plan->gid;
    plan->is_init_apart = plan->init_uid != plan->uid;
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

int plan_set_source(struct plan *plan, size_t i, const char *source, struct carrel_error *err)
{
    char *copy = text(plan, "%s", source);

    if (!copy)
        return err_set_errno(err, -ENOMEM, "plan mounts");
    plan->sources[i].path = copy;
    return 0;
}

void plan_add_rlimit(struct plan *plan, int resource, uint64_t value)
{
    assert(plan->n_rlimits < PLAN_MAX_RLIMITS);
    plan->rlimits[plan->n_rlimits++] =
            (struct plan_rlimit){ .resource = resource, .value = value };
}

/*
 * The upper directory of an overlay lies on the host's file system, which counts for nobody
 * while a program writes. What it can do is to keep each file within the limit. Only for one
 * that was asked for, since it is about sparse files, too; and not where the caller lets the
 * program write elsewhere, which --disk is not about.
 */
static bool bounds_each_file(const struct sandbox_spec *spec)
{
    bool has_overlay = false;

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
    /* Not 0: that would still start a core_pattern that is a program; see core(5). */
    plan_add_rlimit(plan, RLIMIT_CORE, 1);
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
    plan->hostname = text(plan, "%s", spec->hostname ? spec->hostname : "carrel");
    if (!plan->hostname)
        return err_set_errno(err, -ENOMEM, "plan");
    plan->has_netns = spec->network == NETWORK_NONE;
    plan->landlock = host->landlock;
    plan_space_size(plan, spec->limits.value[LIMIT_DISK]);
    plan_rlimits(plan, spec);

    plan_root(&b, spec, host);
    plan_etc(&b, spec, host);
    plan_dev(&b);
    plan_proc(&b, host);
    plan_space(&b, spec);
    r = plan_mounts(
            &b, spec, err); /* last: the caller may lay something over any of the above */
    if (r < 0)
        return r;
    if (b.is_short)
        return err_set_errno(err, -ENOMEM, "plan");
    plan->shares_skeleton = can_share(plan, spec);
    *out = ptr_steal(&plan);
    return 0;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->n_memory; i++)
        free(plan->memory[i]);
    free(plan->memory);
    free(plan->steps);
    free(plan->mounts);
    free(plan->sources);
    free(plan->writable);
    free(plan);
}
