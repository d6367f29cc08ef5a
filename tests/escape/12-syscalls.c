/*
 * Calls that reach deep into the kernel, or that act on the whole machine. Each is made in a
 * form that does nothing: if the kernel complains about the arguments instead of the caller,
 * the attack is real.
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static long do_bpf(const void *arg)
{
    /* BPF_MAP_CREATE: an array of one. */
    struct {
        uint32_t type, key_size, value_size, entries, rest[24];
    } attr = { 2, 4, 4, 1, { 0 } };
    (void)arg;
    return syscall(SYS_bpf, 0, &attr, sizeof(attr));
}

static long do_perf(const void *arg)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr) };
    (void)arg;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static long do_userfaultfd(const void *arg)
{
    (void)arg;
    return syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
}

static long do_kexec_load(const void *arg)
{
    (void)arg;
    return syscall(SYS_kexec_load, 0, 0, NULL, ~0UL);
}

static long do_kexec_file_load(const void *arg)
{
    (void)arg;
    return syscall(SYS_kexec_file_load, -1, -1, 0, NULL, ~0UL);
}

static long do_add_key(const void *arg)
{
    (void)arg;
    return syscall(SYS_add_key, "user", "carrel-escape", "x", 1, KEY_SPEC_PROCESS_KEYRING);
}

static long do_request_key(const void *arg)
{
    (void)arg;
    return syscall(SYS_request_key, "user", "carrel-escape-none", NULL, 0);
}

static long do_keyctl(const void *arg)
{
    (void)arg;
    return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1);
}

static long do_init_module(const void *arg)
{
    (void)arg;
    return syscall(SYS_init_module, NULL, 0, "");
}

static long do_finit_module(const void *arg)
{
    (void)arg;
    return syscall(SYS_finit_module, -1, "", 0);
}

static long do_delete_module(const void *arg)
{
    (void)arg;
    return syscall(SYS_delete_module, "carrel-no-such-module", O_NONBLOCK);
}

static long do_open_by_handle(const void *arg)
{
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } h = { .head = { .handle_bytes = 128 } };
    int mount_id;
    (void)arg;
    if (syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", &h.head, &mount_id, 0) < 0)
        h.head.handle_bytes = 8; /* the attack only needs a guess (shocker.c) */
    return syscall(SYS_open_by_handle_at, open("/", O_RDONLY | O_CLOEXEC), &h.head, O_RDONLY);
}

static long do_personality(const void *arg)
{
    (void)arg;
    return syscall(SYS_personality, 0x0040000UL /* ADDR_NO_RANDOMIZE */);
}

static long do_personality_compat(const void *arg)
{
    (void)arg;
    return syscall(SYS_personality, 0x0400000UL /* READ_IMPLIES_EXEC */);
}

static long do_reboot(const void *arg)
{
    (void)arg;
    return syscall(SYS_reboot, 1, 2, 3, NULL); /* no magic: refused by every kernel */
}

static long do_swapon(const void *arg)
{
    (void)arg;
    return syscall(SYS_swapon, "/carrel/no/such/file", 0);
}

static long do_acct(const void *arg)
{
    (void)arg;
    return syscall(SYS_acct, "/carrel/no/such/file");
}

static long do_syslog(const void *arg)
{
    char text[64];
    (void)arg;
    return syscall(SYS_syslog, 3, text, sizeof(text));
}

static long do_settimeofday(const void *arg)
{
    (void)arg;
    return syscall(SYS_settimeofday, NULL, NULL);
}

static long do_clock_settime(const void *arg)
{
    struct timespec never = { .tv_sec = 0, .tv_nsec = -1 };
    (void)arg;
    return syscall(SYS_clock_settime, CLOCK_MONOTONIC, &never);
}

static long do_quotactl(const void *arg)
{
    (void)arg;
    return syscall(SYS_quotactl, 0x80000301 /* Q_SYNC, by name */, "/carrel/none", 0, NULL);
}

static long do_fanotify(const void *arg)
{
    (void)arg;
    return syscall(SYS_fanotify_init, 4 /* FAN_CLASS_CONTENT */, O_RDONLY);
}

static long do_memfd_secret(const void *arg)
{
    (void)arg;
    return syscall(447 /* memfd_secret */, O_CLOEXEC);
}

static long do_ptrace(const void *arg)
{
    (void)arg;
    return syscall(SYS_ptrace, 0 /* PTRACE_TRACEME */, 0, 0, 0);
}

static long do_sethostname(const void *arg)
{
    char name[128];
    (void)arg;
    if (gethostname(name, sizeof(name)) < 0)
        return -1;
    return syscall(SYS_sethostname, name, strlen(name));
}

static long do_vhangup(const void *arg)
{
    (void)arg;
    if (setsid() < 0)
        return -1; /* without our own terminal there is nothing to hang up */
    return syscall(SYS_vhangup);
}

/* Gives our pages to a pipe, then changes them: the reader sees what was never written. */
static long do_vmsplice(const void *arg)
{
    static char page[4096] __attribute__((aligned(4096)));
    struct iovec iov = { page, sizeof(page) };
    int fds[2];
    (void)arg;
    return pipe2(fds, O_CLOEXEC) < 0 ? -1 : syscall(SYS_vmsplice, fds[1], &iov, 1, 0);
}

#ifdef SYS_iopl
static long do_iopl(const void *arg)
{
    (void)arg;
    return syscall(SYS_iopl, 3);
}

static long do_ioperm(const void *arg)
{
    (void)arg;
    return syscall(SYS_ioperm, 0x80, 1, 1);
}

static long do_modify_ldt(const void *arg)
{
    char table[64];
    (void)arg;
    return syscall(SYS_modify_ldt, 0, table, sizeof(table));
}
#endif

static const struct {
    const char *what;
    attempt_fn *fn;
    int reached[4]; /* errors of a call that was allowed */
} tries[] = {
    { "bpf", do_bpf, { 0 } },
    { "perf_event_open", do_perf, { 0 } },
    { "userfaultfd", do_userfaultfd, { 0 } },
    { "kexec_load", do_kexec_load, { EINVAL } },
    { "kexec_file_load", do_kexec_file_load, { EINVAL, EBADF } },
    { "add_key", do_add_key, { 0 } },
    { "request_key", do_request_key, { ENOKEY } },
    { "keyctl", do_keyctl, { ENOKEY } },
    { "init_module", do_init_module, { EFAULT, ENOEXEC } },
    { "finit_module", do_finit_module, { EBADF } },
    { "delete_module", do_delete_module, { ENOENT } },
    { "open_by_handle_at", do_open_by_handle, { ESTALE, EINVAL } },
    { "personality-no-aslr", do_personality, { 0 } },
    { "personality-exec", do_personality_compat, { 0 } },
    { "reboot", do_reboot, { EINVAL } },
    { "swapon", do_swapon, { ENOENT } },
    { "acct", do_acct, { ENOENT } },
    { "syslog", do_syslog, { 0 } },
    { "settimeofday", do_settimeofday, { 0 } },
    { "clock_settime", do_clock_settime, { EINVAL } },
    { "quotactl", do_quotactl, { ENOENT, ENOTBLK, EINVAL } },
    { "fanotify_init", do_fanotify, { 0 } },
    { "memfd_secret", do_memfd_secret, { 0 } },
    { "ptrace-traceme", do_ptrace, { 0 } },
    { "sethostname", do_sethostname, { 0 } },
    { "vhangup", do_vhangup, { 0 } },
    { "vmsplice", do_vmsplice, { 0 } },
#ifdef SYS_iopl
    { "iopl", do_iopl, { 0 } },
    { "ioperm", do_ioperm, { 0 } },
    { "modify_ldt", do_modify_ldt, { 0 } },
#endif
};

static void attack(char **args)
{
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(tries); i++)
        attempt_in_child(tries[i].what, tries[i].fn, NULL, tries[i].reached, BY_FILTER);
}

static void control(char **args)
{
    struct timespec now;
    (void)args;
    works("clock_gettime", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0);
    works("personality-read", syscall(SYS_personality, 0xffffffffUL) == 0);
    works("memfd_create", memfd_create("own", MFD_CLOEXEC) >= 0);
    works("mmap",
            mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    char byte;
    works("getrandom", syscall(SYS_getrandom, &byte, 1, 0) == 1);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
