/* landlock.c - the ruleset. */
#include "runtime/serving/landlock.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers that some distributions ship; values are kernel ABI. */
#define ACCESS_REFER (UINT64_C(1) << 13)
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)
#define ACCESS_IOCTL_DEV (UINT64_C(1) << 15)
#define SCOPE_ABSTRACT_UNIX_SOCKET (UINT64_C(1) << 0)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)

struct ruleset {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

#define ACCESS_READ                                                                            \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_V1 ((UINT64_C(1) << 13) - 1) /* all rights of the first version */
/* Those that apply to a file that is not a directory. */
#define ACCESS_OF_FILE                                                                         \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |                               \
            LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)

static uint64_t all_access(int abi)
{
    uint64_t access = ACCESS_V1;

    if (abi >= 2)
        access |= ACCESS_REFER;
    if (abi >= 3)
        access |= ACCESS_TRUNCATE;
    if (abi >= 5)
        access |= ACCESS_IOCTL_DEV;
    return access;
}

static int add_rule(int rules, int fd, uint64_t access)
{
    struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };

    return (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static int allow(int rules, const char *path, uint64_t access, struct carrel_error *err)
{
    AUTO(fd_close) int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "landlock: open '%s'", path);
    int r = add_rule(rules, fd, access);
    if (r < 0 && errno == EINVAL) /* not a directory */
        r = add_rule(rules, fd, access & ACCESS_OF_FILE);
    return r < 0 ? err_set_errno(err, -errno, "landlock: rule for '%s'", path) : 0;
}

int landlock_confine(int abi, const char *const *writable, struct carrel_error *err)
{
    struct ruleset ruleset = {
        .handled_access_fs = all_access(abi),
        .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0,
    };
    /* An older kernel only accepts the shorter struct. */
    size_t size = abi >= 6 ? sizeof(ruleset) : sizeof(ruleset.handled_access_fs);

    AUTO(fd_close)
    int rules = (int)syscall(SYS_landlock_create_ruleset, &ruleset, size, 0);
    if (rules < 0)
        return err_set_errno(err, -errno, "landlock: create a ruleset");
    int r = allow(rules, "/", ACCESS_READ, err);
    for (; r == 0 && *writable; writable++)
        r = allow(rules, *writable, ruleset.handled_access_fs, err);
    if (r < 0)
        return r;
    if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        return err_set_errno(err, -errno, "landlock: confine");
    return 0;
}
