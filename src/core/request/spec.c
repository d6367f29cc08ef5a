/* spec.c - defaults, bounds and absolute paths. */
#include "core/request/spec.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "core/request/mounted.h"
#include "policy/policy.h"
#include "runtime/runtime.h"
#include <assert.h>
#include <carrel/run.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static const uint64_t default_limits[LIMIT_COUNT] = {
    [LIMIT_MEMORY] = 512U << 20,
    [LIMIT_PIDS] = 256,
    [LIMIT_CPU] = 1000,
    [LIMIT_DISK] = 1U << 30,
    [LIMIT_FILES] = 4096,
};

/* Bounds are what the kernel and common sense accept; each refusal names them. init is one more
 * process. */
int spec_check_limits(const struct sandbox_limits *limits, struct carrel_error *err)
{
    static const struct {
        uint64_t least, most;
        char text[32];
    } bounds[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = { 4U << 20, UINT64_C(1) << 46, "from 4M to 64T" },
        [LIMIT_PIDS] = { 1, (4U << 20) - 1, "from 1 to 4194303" },
        [LIMIT_CPU] = { 10, 4096000, "from 0.01 to 4096" },
        [LIMIT_DISK] = { 64U << 10, UINT64_C(1) << 46, "from 64K to 64T" },
        [LIMIT_FILES] = { 16, 1U << 30, "from 16 to 1073741824" },
        [LIMIT_IO_READ] = { 64U << 10, UINT64_C(1) << 46, "from 64K to 64T" },
        [LIMIT_IO_WRITE] = { 64U << 10, UINT64_C(1) << 46, "from 64K to 64T" },
    };

    for (enum limit i = 0; i < LIMIT_COUNT; i++)
        if ((limits->value[i] || i < LIMIT_OPTIONAL) &&
                (limits->value[i] < bounds[i].least || limits->value[i] > bounds[i].most))
            return err_set(err, -EINVAL, "the %s limit is out of bounds; expected a value %s",
                    limit_name(i), bounds[i].text);
    return 0;
}

static int fill_limits(const struct carrel_run_options *o, struct sandbox_limits *limits,
        struct carrel_error *err)
{
    const uint64_t given[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = o->memory_bytes,
        [LIMIT_PIDS] = o->pids,
        [LIMIT_CPU] = o->cpu_milli,
        [LIMIT_DISK] = o->disk_bytes,
        [LIMIT_FILES] = o->files,
        [LIMIT_IO_READ] = o->io_read_bytes,
        [LIMIT_IO_WRITE] = o->io_write_bytes,
    };

    struct rlimit own;

    for (enum limit i = 0; i < LIMIT_COUNT; i++) {
        limits->value[i] = given[i] ? given[i] : default_limits[i];
        if (given[i])
            limits->demanded |= LIMIT_BIT(i);
    }
    /* A default is not a demand: where the caller itself may open fewer files, so be it. */
    if (!given[LIMIT_FILES] && getrlimit(RLIMIT_NOFILE, &own) == 0 &&
            own.rlim_max < limits->value[LIMIT_FILES])
        limits->value[LIMIT_FILES] = own.rlim_max;
    if (o->best_effort && limit_parse_set(o->best_effort, &limits->best_effort, err) < 0)
        return err->code;
    return spec_check_limits(limits, err);
}

/* A path of the caller's, seen from anywhere. The kernel resolves the rest when it is opened.
 */
static int make_absolute(const char *path, char **out, struct carrel_error *err)
{
    char cwd[PATH_MAX];

    *out = NULL;
    if (!path)
        return 0;
    if (path[0] == '/')
        *out = strdup(path);
    else if (!getcwd(cwd, sizeof(cwd)))
        return err_set_errno(err, -errno, "current directory");
    else if (asprintf(out, "%s/%s", cwd, path) < 0)
        *out = NULL;
    return *out ? 0 : err_set_errno(err, -ENOMEM, "path");
}

/* What carrel itself puts into a sandbox has its place there. */
static int check_target(const char *target, struct carrel_error *err)
{
    char shown[128];

    if (target && path_is_clean(target) && path_is_below(target, "/run/carrel"))
        return err_set(err, -EINVAL,
                "mount target '%s' is reserved: /run/carrel is carrel's own",
                str_escape(target, strlen(target), shown, sizeof(shown)));
    return 0;
}

static int fill_mounts(const struct carrel_run_options *o, const struct mounted *mounted,
        struct spec *spec, struct carrel_error *err)
{
    assert(o->n_mounts == mounted->n);
    spec->mounts = calloc(o->n_mounts + 1, sizeof(*spec->mounts));
    if (!spec->mounts)
        return err_set_errno(err, -ENOMEM, "mounts");
    for (size_t i = 0; i < o->n_mounts; i++) {
        char *source;
        int r = check_target(o->mounts[i].target, err);
        if (r == 0)
            r = make_absolute(o->mounts[i].source, &source, err);
        if (r < 0)
            return r;
        spec->n_given++;
        spec->mounts[spec->n_mounts++] = (struct sandbox_mount){
            .source = source,
            .source_fd = &mounted->fds[i],
            .target = o->mounts[i].target,
            .access = o->mounts[i].is_writable ? ACCESS_READ_WRITE : ACCESS_READ_ONLY,
        };
    }
    return 0;
}

/* No network is the default wherever a runtime can give that. */
static enum network choose_network(const struct carrel_run_options *o, enum isolation isolation)
{
    if (o->network == CARREL_NETWORK_DEFAULT)
        return isolation == ISOLATION_NONE ? NETWORK_HOST : NETWORK_NONE;
    return o->network == CARREL_NETWORK_HOST ? NETWORK_HOST : NETWORK_NONE;
}

/* One that others have and this carrel has not is a promise that cannot be kept. */
static int find_runtime(const char *name, struct runtime **out, struct carrel_error *err)
{
    int r = runtime_find(name, out, err);

    if (r == -EINVAL && policy_runtime_isolation(name) >= 0)
        r = err->code = -ENOTSUP;
    return r;
}

int spec_make(const struct carrel_run_options *o, const struct mounted *mounted, const char *id,
        struct spec *out, struct carrel_error *err)
{
    int r = find_runtime(o->runtime ? o->runtime : "local", &out->runtime, err);
    if (r == 0)
        r = fill_mounts(o, mounted, out, err);
    if (r == 0)
        r = make_absolute(o->root, &out->root, err);
    if (r < 0)
        return r;
    out->box = (struct sandbox_spec){
        .id = id,
        .root = out->root,
        .root_fd = mounted->root ? &mounted->root_fd : NULL,
        .mounts = out->mounts,
        .n_mounts = out->n_mounts,
        .network = choose_network(o, runtime_isolation(out->runtime)),
        .hostname = o->hostname,
        .ids = o->ids == CARREL_IDS_SUB ? IDS_SUB : IDS_OWN,
        .has_user = o->has_user,
        .uid = o->uid,
        .gid = o->gid,
    };
    r = fill_limits(o, &out->box.limits, err);
    if (r == 0 && o->require)
        r = protection_parse(o->require, &out->box.require, err);
    return r;
}

int spec_add_mounts(struct spec *spec, const struct sandbox_mount *mounts, size_t n,
        struct carrel_error *err)
{
    struct sandbox_mount *all =
            reallocarray(spec->mounts, spec->n_mounts + n + 1, sizeof(*all));

    if (!all)
        return err_set_errno(err, -ENOMEM, "mounts");
    memcpy(all + spec->n_mounts, mounts, n * sizeof(*all));
    spec->mounts = all;
    spec->n_mounts += n;
    spec->box.mounts = all;
    spec->box.n_mounts = spec->n_mounts;
    return 0;
}

void spec_finish(struct spec spec)
{
    for (size_t i = 0; i < spec.n_given; i++)
        free((void *)(uintptr_t)spec.mounts[i].source);
    free(spec.mounts);
    free(spec.root);
}

#define MINIMAL 6

static void put(char **env, size_t *n, char *entry)
{
    size_t key = strcspn(entry, "=") + 1;

    for (size_t i = 0; i < *n; i++) {
        if (strncmp(env[i], entry, key) == 0) {
            free(env[i]);
            env[i] = entry;
            return;
        }
    }
    env[(*n)++] = entry;
}

static int put_pair(char **env, size_t *n, const char *key, const char *value)
{
    char *entry = NULL;

    if (asprintf(&entry, "%s=%s", key, value) < 0)
        return -ENOMEM;
    put(env, n, entry);
    return 0;
}

int environment_make(const struct sandbox *box, const char *const *added, bool has_tty,
        char ***out, struct carrel_error *err)
{
    size_t n_added = 0;
    size_t n = 0;

    for (; added && added[n_added]; n_added++) {
        const char *equals = strchr(added[n_added], '=');
        char shown[64];
        if (!equals || !str_is_env_name(added[n_added], (size_t)(equals - added[n_added])))
            return err_set(err, -EINVAL, "environment entry '%s' is not NAME=VALUE",
                    str_escape(added[n_added], strcspn(added[n_added], "="), shown,
                            sizeof(shown)));
    }
    AUTO(environment_free) char **env = calloc(MINIMAL + n_added + 1, sizeof(*env));
    if (!env)
        return err_set_errno(err, -ENOMEM, "environment");

    int r = put_pair(
            env, &n, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    if (r == 0)
        r = put_pair(env, &n, "HOME", box->home);
    if (r == 0)
        r = put_pair(env, &n, "USER", box->user_name);
    if (r == 0)
        r = put_pair(env, &n, "LANG", "C.UTF-8");
    if (r == 0 && has_tty)
        r = put_pair(env, &n, "TERM", "xterm-256color");
    for (size_t i = 0; r == 0 && i < n_added; i++) {
        char *copy = strdup(added[i]);
        if (copy)
            put(env, &n, copy);
        else
            r = -ENOMEM;
    }
    if (r < 0)
        return err_set_errno(err, r, "environment");
    *out = ptr_steal(&env);
    return 0;
}

void environment_free(char **env)
{
    for (size_t i = 0; env && env[i]; i++)
        free(env[i]);
    free(env);
}
