/* host.c - facts about this machine. */
#include "runtime/local/host.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define ENTRIES_ROOM 16U /* by which their list grows */

/*
 * What programs need of the host's root. For /etc only names that programs cannot do without
 * and that contain no secret; everything else in /etc is written by the plan or absent. Each
 * name is a mount, and mounts are most of the cost of a start.
 */
static const char host_names[][24] = {
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib64",
    "etc/alternatives", /* Debian's links: awk, java, editor ... */
    "etc/crypto-policies",
    "etc/java-11-openjdk", /* the JDK's own lib directory links here */
    "etc/java-17-openjdk",
    "etc/java-21-openjdk",
    "etc/ld.so.cache",
    "etc/localtime",
    "etc/pki",
    "etc/ssl",
};

/*
 * What any user may read or write in /proc and no sandbox should. Files that only the host's
 * root can access need no mask, since no id inside is that root; the three worst are masked
 * anyway.
 */
const struct proc_mask proc_masks[] = {
    { "acpi", MASK_DIR },
    { "asound", MASK_DIR },
    { "diskstats", MASK_FILE },
    { "interrupts", MASK_FILE }, /* reveals keystrokes of the host, among others */
    { "kallsyms", MASK_FILE },
    { "kcore", MASK_FILE },
    { "keys", MASK_FILE },
    { "kmsg", MASK_CLOSED }, /* an empty log would be a wrong answer */
    { "locks", MASK_FILE },  /* of all processes, with the files' numbers */
    { "modules", MASK_FILE },
    { "partitions", MASK_FILE },
    { "scsi", MASK_DIR },
    { "softirqs", MASK_FILE },
    { "stat", MASK_STAT },     /* counts interrupts; libraries find the processors in it */
    { "sys", MASK_READ_ONLY }, /* ordinary programs read it */
    { "sysrq-trigger", MASK_FILE },
};
const size_t n_proc_masks = ARRAY_LEN(proc_masks);

bool host_is_privileged(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 };
    const uint32_t need = 1U << CAP_SYS_ADMIN | 1U << CAP_SETUID | 1U << CAP_SETGID;

    if (geteuid() != 0 || syscall(SYS_capget, &header, data) < 0)
        return false;
    return (data[0].effective & need) == need;
}

int host_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi < 0)
        return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
    return (int)abi;
}

bool host_is_new_enough(const char *release)
{
    return kernel_release_is(release, 5, 15);
}

static int check_kernel(struct carrel_error *err)
{
    struct utsname name;

    if (uname(&name) < 0)
        return err_set_errno(err, -errno, "uname");
    if (!host_is_new_enough(name.release))
        return err_set(
                err, -ENOTSUP, "Linux %s is too old: carrel needs 5.15 or later", name.release);
    return 0;
}

/* The initial user namespace has a fixed inode number. */
static bool is_nested(void)
{
    struct stat st;

    return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != 0xeffffffdU;
}

static int look(int root, const char *path, struct host_entry *entry)
{
    char link[PATH_MAX];
    struct stat st;

    if (fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
    if (S_ISDIR(st.st_mode)) {
        entry->kind = ENTRY_DIR;
    } else if (S_ISREG(st.st_mode)) {
        entry->kind = ENTRY_FILE;
    } else if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(root, path, link, sizeof(link) - 1);
        if (n < 0)
            return -errno;
        link[n] = '\0';
        entry->link = strdup(link);
        if (!entry->link)
            return -ENOMEM;
        entry->kind = ENTRY_LINK;
    }
    return 0;
}

/* Adds one entry, if the name exists. */
static int add_entry(struct host *host, int root, const char *path)
{
    if (host->n_entries % ENTRIES_ROOM == 0) {
        struct host_entry *more =
                reallocarray(host->entries, host->n_entries + ENTRIES_ROOM, sizeof(*more));
        if (!more)
            return -ENOMEM;
        host->entries = more;
    }
    struct host_entry *entry = &host->entries[host->n_entries];
    *entry = (struct host_entry){ .kind = ENTRY_ABSENT };
    int r = look(root, path, entry);
    if (r < 0 || entry->kind == ENTRY_ABSENT)
        return r;
    host->n_entries++; /* from here on host_free() frees it */
    entry->path = strdup(path);
    return entry->path ? 0 : -ENOMEM;
}

/* Names at the top of another root that the sandbox creates itself. */
static bool is_own_name(const char *name)
{
    static const char own[][16] = { "dev", "proc", "sys", "tmp", "run", "home", "workspace" };

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return false;
}

static int read_other_root(
        struct host *host, const struct sandbox_spec *spec, struct carrel_error *err)
{
    const char *path = spec->root;
    struct stat st;
    struct stat given;

    AUTO(fd_close) int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(root, &st) < 0)
        return err_set_errno(err, -errno, "root '%s'", path);
    host->root = named_id_of(&st);
    if (spec->root_fd &&
            (fstat(*spec->root_fd, &given) < 0 || !named_id_is(&host->root, &given)))
        return err_set(err, -ESTALE, "root '%s' was exchanged meanwhile", path);
    AUTO(dir_close) DIR *dir = dir_open(root, ".");
    if (!dir)
        return err_set_errno(err, -errno, "root '%s'", path);

    int r = 0;
    for (const char *name; r == 0 && (name = dir_next(dir));)
        if (!is_own_name(name))
            r = add_entry(host, root, name);
    if (r < 0)
        return err_set_errno(err, r, "root '%s'", path);
    if (host->n_entries == 0)
        return err_set(err, -EINVAL,
                "root '%s' is empty; expected a root filesystem (bin, lib, usr ...)", path);
    return 0;
}

static int read_host_root(struct host *host, struct carrel_error *err)
{
    AUTO(fd_close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_set_errno(err, -errno, "open '/'");
    for (size_t i = 0; i < ARRAY_LEN(host_names); i++) {
        int r = add_entry(host, root, host_names[i]);
        if (r < 0)
            return err_set_errno(err, r, "look at '/%s'", host_names[i]);
    }
    return 0;
}

static int read_proc(struct host *host, struct carrel_error *err)
{
    struct stat st;
    AUTO(fd_close) int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return err_set_errno(err, -errno, "open '/proc'");
    for (size_t i = 0; i < n_proc_masks; i++) {
        if (fstatat(proc, proc_masks[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            host->proc_masks |= UINT64_C(1) << i;
        else if (errno != ENOENT) /* an entry that cannot be examined may exist, unmasked */
            return err_set_errno(err, -errno, "look at '/proc/%s'", proc_masks[i].name);
    }
    return 0;
}

static int read_resolv_conf(
        struct host *host, const struct sandbox_spec *spec, struct carrel_error *err)
{
    char text[8192] = "";

    if (spec->network == NETWORK_HOST) {
        ssize_t n = fd_read_file(AT_FDCWD, "/etc/resolv.conf", text, sizeof(text));
        if (n < 0 && n != -ENOENT)
            return err_set_errno(err, (int)n, "read '/etc/resolv.conf'");
    }
    host->resolv_conf = strdup(text);
    return host->resolv_conf ? 0 : err_set_errno(err, -ENOMEM, "resolv.conf");
}

/*
 * What libraries look for in /proc/stat: the processors, and when the machine was booted. libuv
 * ends the program if the file is empty.
 */
static int write_proc_stat(struct host *host, struct carrel_error *err)
{
    static const char zeros[] = " 0 0 0 0 0 0 0 0 0 0\n";
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const intmax_t boot = (intmax_t)time(NULL) - (intmax_t)(clock_boot_ns() / 1000000000);

    buf_addf(&text, "cpu %s", zeros);
    for (long i = 0; i < n_cpus; i++)
        buf_addf(&text, "cpu%ld%s", i, zeros);
    buf_addf(&text, "intr 0\nctxt 0\nbtime %jd\nprocesses 0\nprocs_running 1\n", boot);
    buf_addf(&text, "procs_blocked 0\n");
    return buf_take(&text, &host->proc_stat, err);
}

bool host_has_ranges(void)
{
    return host_is_privileged() && !is_nested();
}

int host_read(const struct sandbox_spec *spec, struct host **out, struct carrel_error *err)
{
    int r = check_kernel(err);
    if (r < 0)
        return r;
    AUTO(host_free) struct host *host = calloc(1, sizeof(*host));
    if (!host)
        return err_set_errno(err, -ENOMEM, "facts about the host");

    host->uid = geteuid();
    host->gid = getegid();
    host->is_nested = is_nested();
    host->is_root = host_is_privileged() && !host->is_nested;
    if (spec->ids == IDS_SUB && !host->is_root) {
        r = subids_find(&host->subids, err);
        if (r < 0)
            return err_wrap(err, r, "ids of this user's own range");
        host->has_subids = true;
    }
    host->landlock = host_landlock_abi();
    if (host->landlock < 0)
        return err_set_errno(err, host->landlock, "ask for Landlock");
    if (spec->root)
        r = read_other_root(host, spec, err);
    else if (!spec->root_overlay) /* which is mounted as a whole */
        r = read_host_root(host, err);
    if (r == 0)
        r = read_proc(host, err);
    if (r == 0)
        r = read_resolv_conf(host, spec, err);
    if (r == 0)
        r = write_proc_stat(host, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&host);
    return 0;
}

void host_free(struct host *host)
{
    if (!host)
        return;
    for (size_t i = 0; i < host->n_entries; i++) {
        free(host->entries[i].path);
        free(host->entries[i].link);
    }
    free(host->entries);
    free(host->resolv_conf);
    free(host->proc_stat);
    free(host);
}
