/* Gains rights by executing: a set-uid root program, one with file capabilities, a copy of one.
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SAME = 10, GAINED = 11 };

static unsigned long long status_field(const char *name, int base)
{
    char line[256];
    unsigned long long value = 0;
    FILE *file = fopen("/proc/self/status", "re");
    size_t len = strlen(name);
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, name, len) == 0 && line[len] == ':')
            value = strtoull(line + len + 1, NULL, base);
    if (file)
        fclose(file);
    return value;
}

/* What the executed copy reports about itself: probe UID. */
static void probe(char **args)
{
    bool has_gained = geteuid() != (uid_t)number(args[0]) || status_field("CapEff", 16) != 0;
    exit(has_gained ? GAINED : SAME);
}

static int run_copy(const char *path)
{
    char uid[16];
    int status = 0;
    snprintf(uid, sizeof(uid), "%u", getuid());
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl(path, path, "probe", uid, (char *)NULL);
        _exit(errno == EACCES || errno == EPERM ? SAME : 99);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void execute(const char *what, const char *path)
{
    int r = run_copy(path);
    if (r == GAINED)
        succeeded(what, "more rights after exec");
    else if (r == SAME)
        refused(what, "same user, no capabilities");
    else
        cannot("%s: %s did not answer (%d)", what, path, r);
}

static void copy_self(const char *path, mode_t mode)
{
    int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    while (sendfile(out, in, NULL, 1 << 20) > 0)
        ;
    if (fchmod(out, mode) < 0)
        cannot("%s: %s", path, strerror(errno));
    close(in);
    close(out);
}

/*
 * Leaves a set-uid program for others: in a directory of the host, it would run there as the
 * user who started the sandbox.
 */
static const char *const made = "made-set-uid";

static int make_plain(void)
{
    (void)unlink(made);
    return open(made, O_CREAT | O_RDWR | O_CLOEXEC, 0700);
}

static long by_chmod(const void *arg)
{
    (void)arg;
    return make_plain() < 0 ? -1 : syscall(SYS_fchmodat, AT_FDCWD, made, 04755);
}

static long by_fchmod(const void *arg)
{
    (void)arg;
    return fchmod(make_plain(), 04755);
}

static long by_fchmodat2(const void *arg)
{
    (void)arg;
    return make_plain() < 0 ? -1 : syscall(452 /* fchmodat2 */, AT_FDCWD, made, 04755, 0);
}

static long by_openat(const void *arg)
{
    (void)arg;
    (void)unlink(made);
    return syscall(SYS_openat, AT_FDCWD, made, O_CREAT | O_WRONLY, 04755);
}

/* The mode is behind a pointer, which no filter can read. */
static long by_openat2(const void *arg)
{
    struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 04755 };
    (void)arg;
    (void)unlink(made);
    return syscall(SYS_openat2, AT_FDCWD, made, &how, sizeof(how));
}

static long by_tmpfile(const void *arg)
{
    (void)arg;
    (void)unlink(made);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_WRONLY, 04755);
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return fd < 0 ? -1 : linkat(AT_FDCWD, path, AT_FDCWD, made, AT_SYMLINK_FOLLOW);
}

static long by_mknod(const void *arg)
{
    (void)arg;
    (void)unlink(made);
    return mknod(made, S_IFREG | 04755, 0);
}

/*
 * 2755 on a directory is common (group inheritance); on a program it gives access to a group.
 */
static long by_set_gid(const void *arg)
{
    (void)arg;
    return fchmod(make_plain(), 02755);
}

static const struct {
    const char *what;
    attempt_fn *fn;
} ways[] = {
    { "make-by-chmod", by_chmod },
    { "make-by-fchmod", by_fchmod },
    { "make-by-fchmodat2", by_fchmodat2 },
    { "make-by-openat", by_openat },
    { "make-by-openat2", by_openat2 },
    { "make-by-tmpfile", by_tmpfile },
    { "make-by-mknod", by_mknod },
    { "make-set-gid", by_set_gid },
};

/* Checks the result on disk: a call that drops the bit has refused it, too. */
static long make_set_uid(const void *arg)
{
    attempt_fn *const *fn = arg;
    struct stat st;
    long r = (*fn)(NULL);
    if (r >= 0 && stat(made, &st) == 0 && !(st.st_mode & (S_ISUID | S_ISGID))) {
        errno = EPERM;
        r = -1;
    }
    return r;
}

/*
 * attack DIR: DIR has set-uid (root, 4755) and file-caps (cap_setuid=ep), created on the host.
 */
static void attack(char **args)
{
    char path[256];
    struct statvfs fs;

    snprintf(path, sizeof(path), "%s/set-uid", args[0]);
    execute("set-uid-root", path);
    snprintf(path, sizeof(path), "%s/file-caps", args[0]);
    execute("file-capabilities", path);
    if (statvfs(args[0], &fs) == 0 && !(fs.f_flag & ST_NOSUID))
        succeeded("suid-mount", "not nosuid");
    else
        refused("suid-mount", "nosuid");
    if (status_field("NoNewPrivs", 10) == 0)
        succeeded("new-privileges", "no_new_privs is off");
    else
        refused("new-privileges", "no_new_privs is on");
    /* setuid(0) itself, without any file. */
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        attempt_in_child(ways[i].what, make_set_uid, &ways[i].fn, NULL, BY_FILTER);
    (void)unlink(made);
    if (getuid() == 0)
        refused("setuid-0", "is root already");
    else
        attempt("setuid-0", setuid(0), REASONS(EPERM, EINVAL));
}

static void control(char **args)
{
    (void)args;
    copy_self("/tmp/copy", 0755);
    works("run-a-copy", run_copy("/tmp/copy") == SAME);
    copy_self("/tmp/copy", 0555);
    works("set-other-mode", run_copy("/tmp/copy") == SAME);
}

/* On the host, as root: gives `file` the capability to become any user. */
static void bless(char **args)
{
    struct vfs_cap_data caps = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE };
    caps.data[0].permitted = 1U << CAP_SETUID;
    if (setxattr(args[0], "security.capability", &caps, sizeof(caps), 0) < 0)
        cannot("setxattr %s: %s", args[0], strerror(errno));
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control },
                    { "probe", probe }, { "bless", bless }, { 0 } });
}
