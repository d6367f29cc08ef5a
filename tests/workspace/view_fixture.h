/* view_fixture.h - for tests: a tree of the cache as a run sees it. */
#pragma once
#include "workspace/checkout_fixture.h"
#include "workspace/private.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static inline void write_to(const char *path, const char *text)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

/*
 * Only in a process that the test has forked: enters a mount namespace, with or without root.
 */
static inline void enter_namespace(void)
{
    char map[64];
    uid_t uid = getuid();
    gid_t gid = getgid();

    if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
        _exit(77);
    if (uid != 0) {
        write_to("/proc/self/setgroups", "deny");
        (void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
        write_to("/proc/self/uid_map", map);
        (void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
        write_to("/proc/self/gid_map", map);
    }
    CHECK_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
}

static inline void mount_overlay(const char *lower, const char *name, const char *at)
{
    char options[3 * PATH_MAX];

    sh("mkdir -p %s %s/up-%s %s/work-%s", at, top, name, top, name);
    (void)snprintf(options, sizeof(options),
            "lowerdir=%s,upperdir=%s/up-%s,workdir=%s/work-%s,userxattr", lower, top, name, top,
            name);
    if (mount("overlay", at, "overlay", 0, options) < 0)
        _exit(77);
}

/*
 * Runs a line of shell in the tree as a run sees it: overlays over the checkout, objects and
 * git dir mounted. Returns its exit status. The next call sees the changes.
 */
static inline int in_view(const struct checkout *checkout, const char *commit, const char *line)
{
    int status;
    char lower[8 * PATH_MAX / 4] = "";
    char upper[PATH_MAX];

    for (size_t i = 0; checkout->lower[i]; i++)
        (void)snprintf(lower + strlen(lower), sizeof(lower) - strlen(lower), "%s%s",
                i ? ":" : "", checkout->lower[i]);
    (void)snprintf(upper, sizeof(upper), "%s/up-git", top);
    if (mkdir(upper, 0755) == 0) {
        AUTO(fd_close) int dir = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK_EQ(private_make_upper(repo, dir, "work", commit, &err), 0);
    }
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        enter_namespace();
        if (mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0)
            _exit(77);
        mount_overlay(lower, "tree", "/run/tree");
        mount_overlay(checkout->git, "git", PRIVATE_GIT_DIR);
        sh("mkdir " PRIVATE_OBJECTS);
        CHECK_EQ(mount(repo->objects[0], PRIVATE_OBJECTS, NULL, MS_BIND, NULL), 0);
        for (size_t i = 0; checkout->module_objects[i]; i++) {
            char at[64];
            (void)snprintf(at, sizeof(at), CHECKOUT_MODULE_OBJECTS "/%zu", i);
            sh("mkdir -p %s", at);
            CHECK_EQ(mount(checkout->module_objects[i], at, NULL, MS_BIND, NULL), 0);
        }
        _exit(try_sh("cd /run/tree; %s", line));
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The same, if it must succeed; skips if overlays are not possible. */
#define VIEW(checkout, commit, line)                                                           \
    do {                                                                                       \
        int status_ = in_view(checkout, commit, line);                                         \
        if (status_ == 77) {                                                                   \
            end();                                                                             \
            SKIP("no overlay may be mounted here");                                            \
        }                                                                                      \
        CHECK_EQ(status_, 0);                                                                  \
    } while (0)

/* The tree is that of the commit, git reports no changes and has no reason to read files. */
#define CHECK_CLEAN(checkout, commit)                                                          \
    do {                                                                                       \
        char line_[1024];                                                                      \
        (void)snprintf(line_, sizeof(line_),                                                   \
                "test -z \"$(git diff-files)\"; test -z \"$(git status --porcelain)\"; "       \
                "git diff-index --cached --quiet %s; "                                         \
                "rm -rf %s/want; git clone -q --no-checkout %s %s/want 2>/dev/null; "          \
                "git -C %s/want checkout -q --detach %s; rm -rf %s/want/.git; "                \
                "diff -r --no-dereference --exclude=.git . %s/want",                           \
                commit, top, repo->common_dir, top, top, commit, top, top);                    \
        VIEW(checkout, commit, line_);                                                         \
    } while (0)
