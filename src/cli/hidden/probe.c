/*
 * probe.c - carrel probe: one attempt of the self-test, from within a sandbox.
 *
 * The self-test mounts carrel's own executable into the sandbox and runs this command there,
 * for what a shell cannot do. It prints one line: "done", or the name of the error. Every
 * attempt is harmless where it succeeds: arguments are such that a kernel which is reached
 * answers with another error, or does something that ends with this process.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#define NOWHERE "/no/such/place" /* a mount there fails in the kernel, not in the filter */
#define X32_BIT 0x40000000L      /* system calls of the x32 table; none on other machines */

/* Each returns 0 when it succeeded, else a negative errno. `word` is the command's argument. */

static int result_of(long r)
{
    return r < 0 ? -errno : 0;
}

static int try_mount(const char *word)
{
    (void)word;
    return result_of(mount("none", NOWHERE, "tmpfs", 0, NULL));
}

static int try_umount(const char *word)
{
    (void)word;
    return result_of(umount2(NOWHERE, MNT_DETACH));
}

static int try_fsopen(const char *word)
{
    (void)word;
    return result_of(syscall(SYS_fsopen, "tmpfs", 0));
}

static int try_chroot(const char *word)
{
    (void)word;
    return result_of(chroot(NOWHERE));
}

static int try_unshare(const char *word)
{
    (void)word;
    return result_of(unshare(CLONE_NEWUSER));
}

static int try_setns(const char *word)
{
    (void)word;
    return result_of(setns(-1, 0));
}

/* A clone that is not refused gives a child, which ends here. */
static int try_clone(const char *word)
{
    (void)word;
    long pid = syscall(SYS_clone, (long)(CLONE_NEWUSER | SIGCHLD), 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    return result_of(pid);
}

static int try_ptrace(const char *word)
{
    (void)word;
    return result_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int try_bpf(const char *word)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY,
        .key_size = 4,
        .value_size = 4,
        .max_entries = 1,
    };

    (void)word;
    return result_of(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

static int try_perf(const char *word)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_DUMMY,
    };

    (void)word;
    return result_of(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int try_io_uring(const char *word)
{
    struct io_uring_params params = { 0 };

    (void)word;
    return result_of(syscall(SYS_io_uring_setup, 1, &params));
}

static int try_keyctl(const char *word)
{
    (void)word;
    return result_of(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
}

static int try_userfaultfd(const char *word)
{
    (void)word;
    return result_of(syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY));
}

static int try_handle(const char *word)
{
    struct file_handle handle = { 0 };

    (void)word;
    return result_of(open_by_handle_at(-1, &handle, O_RDONLY));
}

/* With bit 32 set: the same command to the kernel, another number to a careless filter. */
static int try_tiocsti(const char *word)
{
    char letter = 'x';

    (void)word;
    int plain = result_of(ioctl(STDIN_FILENO, TIOCSTI, &letter));
    if (plain != -EPERM)
        return plain;
    return result_of(syscall(SYS_ioctl, STDIN_FILENO, (UINT64_C(1) << 32) | TIOCSTI, &letter));
}

static int try_x32(const char *word)
{
    (void)word;
    return result_of(syscall(X32_BIT | SYS_getpid));
}

static int try_device(const char *word)
{
    int r = result_of(mknod(word, S_IFCHR | 0600, makedev(1, 3))); /* null: harmless */
    if (r == 0)
        (void)unlink(word);
    return r;
}

static int try_packets(const char *word)
{
    (void)word;
    return result_of(socket(AF_PACKET, SOCK_RAW, 0));
}

static int connect_to(int type, const char *address, unsigned port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
    };

    AUTO(fd_close) int sock = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (sock < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1)
        return -errno;
    return result_of(connect(sock, (const struct sockaddr *)&to, sizeof(to)));
}

/* A listener of the host's on 127.0.0.1, port `word`. */
static int try_host_port(const char *word)
{
    uint64_t port;

    int r = str_parse_u64(word, &port);
    return r < 0 ? r : connect_to(SOCK_STREAM, "127.0.0.1", (unsigned)port);
}

/* Sends nothing: a datagram socket only looks for a route. The address is for examples. */
static int try_route(const char *word)
{
    (void)word;
    return connect_to(SOCK_DGRAM, "192.0.2.1", 9);
}

/* The sandbox's own loopback, there and back: here an error is the failure. */
static int try_loopback(const char *word)
{
    struct sockaddr_in here = { .sin_family = AF_INET };
    socklen_t len = sizeof(here);

    (void)word;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    AUTO(fd_close) int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (const struct sockaddr *)&here, len) < 0 ||
            listen(listener, 1) < 0 ||
            getsockname(listener, (struct sockaddr *)&here, &len) < 0)
        return -errno;
    return connect_to(SOCK_STREAM, "127.0.0.1", ntohs(here.sin_port));
}

/* A listener of the host's on the abstract socket `word`. */
static int try_abstract(const char *word)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    size_t len = strlen(word);

    if (len + 1 > sizeof(to.sun_path))
        return -ENAMETOOLONG;
    memcpy(to.sun_path + 1, word, len);
    AUTO(fd_close) int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    return result_of(connect(sock, (const struct sockaddr *)&to, size));
}

/* Opens or forks until something says no; `word` is where to stop by itself. */
static int count_up(const char *word, int (*once)(void))
{
    uint64_t most;
    uint64_t n = 0;

    int r = str_parse_u64(word, &most);
    while (r == 0 && n < most && (r = once()) == 0)
        n++;
    printf("%ju ", (uintmax_t)n);
    return r;
}

static int open_once(void)
{
    return result_of(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static int fork_once(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)alarm(10);
        (void)pause();
        _exit(0);
    }
    return result_of(pid);
}

static int try_files(const char *word)
{
    return count_up(word, open_once);
}

static int try_forks(const char *word)
{
    return count_up(word, fork_once);
}

/* A grandchild in a session of its own that ignores what can be ignored and keeps the pipes. */
static int try_linger(const char *word)
{
    (void)word;
    if (fork() != 0)
        return 0;
    (void)setsid();
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_IGN); /* fails only for those that cannot be ignored */
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(60); /* if no other process ends it */
    for (;;)
        (void)pause();
}

static const struct {
    const char *name;
    int (*try)(const char *word);
} probes[] = {
    { "mount", try_mount },
    { "umount", try_umount },
    { "fsopen", try_fsopen },
    { "chroot", try_chroot },
    { "unshare", try_unshare },
    { "setns", try_setns },
    { "clone", try_clone },
    { "ptrace", try_ptrace },
    { "bpf", try_bpf },
    { "perf", try_perf },
    { "io_uring", try_io_uring },
    { "keyctl", try_keyctl },
    { "userfaultfd", try_userfaultfd },
    { "handle", try_handle },
    { "tiocsti", try_tiocsti },
    { "x32", try_x32 },
    { "device", try_device },
    { "packets", try_packets },
    { "host-port", try_host_port },
    { "route", try_route },
    { "loopback", try_loopback },
    { "abstract", try_abstract },
    { "files", try_files },
    { "forks", try_forks },
    { "linger", try_linger },
};

int cmd_probe(int argc, char **argv)
{
    struct carrel_error err = { 0 };

    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(probes); i++) {
        if (strcmp(probes[i].name, argv[1]) != 0)
            continue;
        int r = probes[i].try(argc > 2 ? argv[2] : "");
        (void)puts(r == 0 ? "done" : strerrorname_np(-r));
        return r == 0 ? 0 : 1;
    }
    (void)err_set(&err, -EINVAL, "probe: this command is a part of 'carrel test'");
    return report_error(STATUS_FAILED, &err);
}
