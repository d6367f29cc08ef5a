/* mounted.c - one lookup for each path, and the policy's word about what was found. */
#include "core/request/mounted.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "core/request/own_places.h"
#include "policy/policy.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ID_TEXT 40
#define WORKSPACE "/workspace"

void mounted_finish(struct mounted mounted)
{
    for (size_t i = 0; i < mounted.n; i++) {
        free((void *)(uintptr_t)mounted.list[i].source);
        fd_close(mounted.fds[i]);
    }
    free(mounted.list);
    free(mounted.fds);
    free(mounted.root);
    fd_close(mounted.root_fd);
}

static int id_text(int fd, char text[static ID_TEXT])
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    (void)snprintf(text, ID_TEXT, "%jx:%jx", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return 0;
}

/* Opens it and asks the policy; *path is where the file is. Returns the descriptor. */
static int open_source(const char *source, enum named_kind kind, const char *option,
        bool is_writable, const struct policy *policy, char **path, struct carrel_error *err)
{
    char real[PATH_MAX];
    char flag[PATH_MAX + 32];

    AUTO(fd_close) int fd = named_open(source, kind, err);
    if (fd < 0)
        return err_wrap(err, fd, "%s", option);
    int r = named_path(fd, real, sizeof(real));
    if (r < 0)
        return err_set_errno(err, r, "%s '%s'", option, source);
    (void)snprintf(flag, sizeof(flag), "%s %s", option,
            strncmp(source, "/proc/self/fd/", 14) == 0 ? real : source);
    r = policy ? policy_check_item(policy, POLICY_MOUNTS_ALLOW, real, is_writable, flag, err)
               : 0;
    if (r < 0)
        return r;
    *path = strdup(real);
    return *path ? fd_steal(&fd) : err_set_errno(err, -ENOMEM, "mounts");
}

static int check_id(int fd, const char *id, const char *source, struct carrel_error *err)
{
    char now[ID_TEXT];

    int r = id_text(fd, now);
    if (r == 0 && strcmp(now, id) != 0)
        return err_set(err, -ESTALE,
                "mount source '%s' is not what it was when the sandbox was created", source);
    return r < 0 ? err_set_errno(err, r, "mount source '%s'", source) : 0;
}

static int open_mount(const struct carrel_mount *mount, const struct policy *policy,
        const char *id, struct mounted *out, struct carrel_error *err)
{
    const bool is_workdir = mount->target && strcmp(mount->target, WORKSPACE) == 0;
    char *path = NULL;

    if (!mount->source)
        return err_set(err, -EINVAL, "a mount has no source");
    int fd = open_source(mount->source, NAMED_ANY, is_workdir ? "--workdir" : "--mount",
            mount->is_writable, policy, &path, err);
    if (fd < 0)
        return fd;
    out->list[out->n] = *mount;
    out->list[out->n].source = path;
    out->fds[out->n++] = fd;
    int r = id ? check_id(fd, id, mount->source, err) : 0;
    /* Without a policy it is a program of carrel's own. */
    if (r == 0 && policy && mount->is_writable)
        r = own_places_check(fd, path, is_workdir ? "--workdir" : "--mount", err);
    return r;
}

static const struct carrel_mount *find_target(
        const struct carrel_run_options *o, const char *target)
{
    for (size_t i = 0; i < o->n_mounts; i++)
        if (o->mounts[i].target && strcmp(o->mounts[i].target, target) == 0)
            return &o->mounts[i];
    return NULL;
}

/* Source and target in one block of memory, which is freed as the source. */
static int make_mount(const char *source, const char *target, struct carrel_mount *out,
        struct carrel_error *err)
{
    const size_t size = strlen(source) + 1;
    char *text = malloc(size + strlen(target) + 1);

    if (!text)
        return err_set_errno(err, -ENOMEM, "mounts");
    (void)strcpy(text, source);
    (void)strcpy(text + size, target);
    *out = (struct carrel_mount){ .source = text, .target = text + size };
    return 0;
}

/*
 * Hooks and configuration in .git are run by the next git on the host, so a program that may
 * write the files beside it may not write there. A mount of the caller's at that place counts.
 */
static int protect_git(const struct carrel_run_options *o, size_t i, struct mounted *out,
        struct carrel_error *err)
{
    const struct carrel_mount *mount = &out->list[i];
    struct carrel_error why = { 0 };
    char path[PATH_MAX];
    char target[PATH_MAX];

    if (snprintf(target, sizeof(target), "%s/.git", mount->target) >= (int)sizeof(target))
        return err_set_errno(err, -ENAMETOOLONG, "mount target '%s'", mount->target);
    if (find_target(o, target))
        return 0;
    AUTO(fd_close) int fd = named_open_beneath(out->fds[i], ".git", NAMED_ANY, &why);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return 0;
    int r = fd < 0 ? fd : named_path(fd, path, sizeof(path));
    if (r < 0)
        return err_set(err, r,
                "%s: %s; .git there cannot be made read-only (--git-writable leaves it as it "
                "is)",
                strcmp(mount->target, WORKSPACE) == 0 ? "--workdir" : "--mount",
                fd < 0 ? why.message : "'.git': was removed meanwhile");
    r = make_mount(path, target, &out->list[out->n], err);
    if (r < 0)
        return r;
    out->fds[out->n++] = fd_steal(&fd);
    return 0;
}

static int protect_all(
        const struct carrel_run_options *o, struct mounted *out, struct carrel_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < o->n_mounts; i++)
        if (o->mounts[i].is_writable && o->mounts[i].target && !o->is_git_writable)
            r = protect_git(o, i, out, err);
    return r;
}

int mounted_open(const struct carrel_run_options *o, const struct policy *policy,
        const char *const *ids, struct mounted *out, struct carrel_error *err)
{
    *out = MOUNTED_INIT;
    out->list = calloc(2 * o->n_mounts + 1, sizeof(*out->list));
    out->fds = calloc(2 * o->n_mounts + 1, sizeof(*out->fds));
    if (!out->list || !out->fds)
        return err_set_errno(err, -ENOMEM, "mounts");
    if (o->root) {
        out->root_fd =
                open_source(o->root, NAMED_DIRECTORY, "--root", false, policy, &out->root, err);
        if (out->root_fd < 0)
            return out->root_fd;
    }
    for (size_t i = 0; i < o->n_mounts; i++) {
        if (ids && !ids[i])
            return err_set(err, -EINVAL, "request: layers.mounts: expected one for each mount");
        int r = open_mount(&o->mounts[i], policy, ids ? ids[i] : NULL, out, err);
        if (r < 0)
            return r;
    }
    return policy ? protect_all(o, out, err) : 0;
}

int mounted_ids(const struct mounted *mounted, char ***out, struct carrel_error *err)
{
    const size_t n = mounted->n;
    AUTO(free) char **ids = malloc((n + 1) * sizeof(*ids) + n * ID_TEXT);

    if (!ids)
        return err_set_errno(err, -ENOMEM, "mounts");
    char *text = (char *)(ids + n + 1);
    for (size_t i = 0; i < n; i++) {
        ids[i] = text + i * ID_TEXT;
        int r = id_text(mounted->fds[i], ids[i]);
        if (r < 0)
            return err_set_errno(err, r, "mount source '%s'", mounted->list[i].source);
    }
    ids[n] = NULL;
    *out = ptr_steal(&ids);
    return 0;
}
