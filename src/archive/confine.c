/*
 * confine.c - restricts a process that parses untrusted bytes.
 *
 * It works on descriptors that it was given. The table of system calls is short enough to read:
 * memory, reading and writing, and, for the process that creates files, names below a
 * directory. The filter answers EPERM to everything else. Landlock restricts where names may
 * be.
 */
#include "archive/confine.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers that some distributions ship; values are kernel ABI. */
#define ACCESS_REFER (UINT64_C(1) << 13)
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)
#define ACCESS_ALL_V2 ((UINT64_C(1) << 14) - 1)
#define ABI_WITH_REFER 2 /* without it no hard link across directories */
#define ABI_WITH_TRUNCATE 3

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#else
#error "no audit architecture is known for this machine"
#endif

#ifndef __has_feature /* clang's equivalent of gcc's __SANITIZE_ADDRESS__ */
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define HAS_SHADOW 1 /* the sanitizer's shadow memory is larger than any limit */
#else
#define HAS_SHADOW 0
#endif

static const int for_all[] = {
    SYS_read,
    SYS_write,
    SYS_close,
    SYS_lseek,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
};

static const int for_files[] = {
    SYS_openat,
    SYS_openat2,
    SYS_mkdirat,
    SYS_symlinkat,
    SYS_linkat,
    SYS_mknodat, /* without a capability only a whiteout (device 0/0) can be made */
    SYS_unlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_newfstatat,
    SYS_fstat,
    SYS_statx,
    SYS_getdents64,
    SYS_pwrite64,
    SYS_ftruncate,
    SYS_fchmod, /* by descriptor only: Landlock does not restrict changes of mode */
    SYS_fsetxattr,
};

#define MAX_RULES (ARRAY_LEN(for_all) + ARRAY_LEN(for_files))

struct program {
    struct sock_filter code[4 + 2 * MAX_RULES + 6 + 1];
    unsigned short len;
};

static void emit(struct program *program, struct sock_filter line)
{
    program->code[program->len++] = line;
}

static void allow(struct program *program, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        emit(program, (struct sock_filter)BPF_JUMP(
                              BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1));
        emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
}

/* futimens() is utimensat() without a path. Must be the last rule: it loads another word. */
static void allow_futimens(struct program *program)
{
    const uint32_t path = offsetof(struct seccomp_data, args[1]);

    emit(program, (struct sock_filter)BPF_JUMP(
                          BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)SYS_utimensat, 0, 5));
    emit(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, path));
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3));
    emit(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, path + 4));
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1));
    emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

static int filter(int dir, struct carrel_error *err)
{
    struct program program = { .len = 0 };

    emit(&program, (struct sock_filter)BPF_STMT(
                           BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
    emit(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0));
    emit(&program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    emit(&program, (struct sock_filter)BPF_STMT(
                           BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    allow(&program, for_all, ARRAY_LEN(for_all));
    if (dir >= 0) {
        allow(&program, for_files, ARRAY_LEN(for_files));
        allow_futimens(&program);
    }
    emit(&program, (struct sock_filter)BPF_STMT(
                           BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA)));

    struct sock_fprog loaded = { .len = program.len, .filter = program.code };
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &loaded) < 0)
        return err_set_errno(err, -errno, "load a system call filter");
    return 0;
}

static int only_below(int dir, struct carrel_error *err)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < ABI_WITH_REFER)
        return 0;
    struct {
        uint64_t handled_access_fs;
    } ruleset = { ACCESS_ALL_V2 | (abi >= ABI_WITH_TRUNCATE ? ACCESS_TRUNCATE : 0) };
    struct landlock_path_beneath_attr rule = {
        .parent_fd = dir,
        .allowed_access =
                ruleset.handled_access_fs &
                ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                            LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK),
    };
    AUTO(fd_close)
    int rules = (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0);
    if (rules < 0)
        return err_set_errno(err, -errno, "landlock: create a ruleset");
    if (dir >= 0 &&
            syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_set_errno(err, -errno, "landlock: rule for a directory");
    if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        return err_set_errno(err, -errno, "landlock: restrict");
    return 0;
}

static int drop_capabilities(struct carrel_error *err)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0,
            0); /* before Linux 4.3 there are no ambient capabilities */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set_errno(err, -errno, "set no_new_privs");
    if (syscall(SYS_capset, &header, none) < 0)
        return err_set_errno(err, -errno, "drop capabilities");
    return 0;
}

static int by_number(const void *a, const void *b)
{
    int left = *(const int *)a;
    int right = *(const int *)b;

    return (left > right) - (left < right);
}

static int close_others(const int *keep, unsigned n, struct carrel_error *err)
{
    int kept[8];
    unsigned from = 0;

    if (n > ARRAY_LEN(kept))
        return err_set(err, -EINVAL, "too many descriptors to keep");
    for (unsigned i = 0; i < n; i++)
        kept[i] = keep[i];
    qsort(kept, n, sizeof(*kept), by_number);
    for (unsigned i = 0; i <= n; i++) {
        unsigned to = i < n ? (unsigned)kept[i] : ~0U;
        if (to > from && close_range(from, i < n ? to - 1 : to, 0) < 0)
            return err_set_errno(err, -errno, "close descriptors");
        if (i < n && (unsigned)kept[i] >= from)
            from = (unsigned)kept[i] + 1;
    }
    return 0;
}

static int bound(uint64_t memory_bytes, struct carrel_error *err)
{
    struct rlimit none = { 0, 0 };
    struct rlimit files = { 64, 64 };
    struct rlimit memory = { memory_bytes, memory_bytes };

    if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_set_errno(err, -errno, "set limits");
    if (!HAS_SHADOW && setrlimit(RLIMIT_AS, &memory) < 0)
        return err_set_errno(err, -errno, "set limits");
    return 0;
}

int confine_self(int dir, const int *keep, unsigned n_keep, uint64_t memory_bytes,
        struct carrel_error *err)
{
    int r = close_others(keep, n_keep, err);
    if (r == 0)
        r = bound(memory_bytes, err);
    if (r == 0)
        r = drop_capabilities(err);
    if (r == 0)
        r = only_below(dir, err);
    if (r == 0) /* last: the filter forbids the calls of the steps above */
        r = filter(dir, err);
    return r;
}
