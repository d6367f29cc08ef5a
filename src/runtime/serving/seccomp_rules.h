/*
 * seccomp_rules.h - the system calls of a program in the sandbox, as data.
 *
 * The program may run any instruction, so every system call is attack surface. This table names
 * all of them; what it does not name does not exist in the sandbox (ENOSYS), as on an older
 * kernel. A rule is one of | RULE_ALLOW the kernel decides, as for any process without
 * privileges; | RULE_REFUSE EPERM: no program in a sandbox needs it; | RULE_ABSENT ENOSYS:
 * libraries then use the older call, which the filter can inspect; | RULE_ASK the call waits
 * for init, which makes it for the program or refuses; | CHECK_... it depends on an argument:
 * see the second table. |Namespaces, missing capabilities and no_new_privs already stop most of
 * what is refused here. |The filter comes before them, so that a bug in the kernel behind a
 * refused call cannot be |reached either.
 *
 * seccomp_gen.c turns both tables into a BPF program when carrel is built; seccomp_test.c reads
 * them too and runs the program against them.
 */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/personality.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum seccomp_rule {
    RULE_ALLOW,
    RULE_REFUSE,
    RULE_ABSENT,
    RULE_NO_FAMILY,   /* EAFNOSUPPORT: the answer of a kernel built without this family */
    RULE_NO_PROTOCOL, /* EPROTONOSUPPORT: likewise */
    RULE_IGNORE,      /* succeeds and does nothing: the requested state holds already */
    RULE_NO_OPTION,   /* ENOPROTOOPT: likewise, without this option of a socket */
    RULE_NO_PAGES,    /* ENOMEM: the answer of a machine that has reserved no huge pages */
    RULE_ASK,         /* asked.h */
    RULE_KILL,        /* the whole process: it uses another system call table */
    RULE_COUNT,

    /* A check of an argument; its result is another rule. */
    CHECK_CLONE = RULE_COUNT,
    CHECK_UNSHARE,
    CHECK_UNSHARE_HIGH,
    CHECK_IOCTL,
    CHECK_PRCTL,
    CHECK_PRCTL_FILTER,
    CHECK_SECCOMP,
    CHECK_SECCOMP_WHOSE,
    CHECK_MMAP,
    CHECK_SHMGET,
    CHECK_MEMFD,
    CHECK_SETSOCKOPT,
    CHECK_SETSOCKOPT_NAME,
    CHECK_PERSONALITY,
    CHECK_SETRLIMIT,
    CHECK_PRLIMIT_WHOSE,
    CHECK_PRLIMIT,
    CHECK_PRLIMIT_NEW,
    CHECK_PRLIMIT_NEW_HIGH,
    CHECK_SCHEDULING,
    CHECK_SETPRIORITY,
    CHECK_IOPRIO_SET,
    CHECK_SECOND_NOT_INIT,
    CHECK_OPEN,
    CHECK_OPENAT,
    CHECK_MKNOD,
    CHECK_MKNODAT,
    CHECK_MODE_1,
    CHECK_MODE_2,
    CHECK_MODE_3,
    CHECK_SOCKET,
    CHECK_SOCKET_NOT_UNIX,
    CHECK_SOCKET_NOT_INET,
    CHECK_UNIX_TYPE,
    CHECK_INET_TYPE,
    CHECK_INET_PROTOCOL,
    CHECK_NETLINK_PROTOCOL,
    CHECK_NETLINK_WHOSE,
    CHECK_COUNT
};

static const uint32_t seccomp_answers[RULE_COUNT] = {
    [RULE_ALLOW] = SECCOMP_RET_ALLOW,
    [RULE_REFUSE] = SECCOMP_RET_ERRNO | EPERM,
    [RULE_ABSENT] = SECCOMP_RET_ERRNO | ENOSYS,
    [RULE_NO_FAMILY] = SECCOMP_RET_ERRNO | EAFNOSUPPORT,
    [RULE_NO_PROTOCOL] = SECCOMP_RET_ERRNO | EPROTONOSUPPORT,
    [RULE_NO_OPTION] = SECCOMP_RET_ERRNO | ENOPROTOOPT,
    [RULE_NO_PAGES] = SECCOMP_RET_ERRNO | ENOMEM,
    [RULE_IGNORE] = SECCOMP_RET_ERRNO | 0,
    [RULE_ASK] = SECCOMP_RET_USER_NOTIF,
    [RULE_KILL] = SECCOMP_RET_KILL_PROCESS,
};

/* clang-format off */

struct seccomp_group {
    enum seccomp_rule rule;
    const char *reason;
    const char *names; /* separated by spaces; a name that an architecture lacks is skipped */
};

static const struct seccomp_group seccomp_groups[] = {
    { RULE_ALLOW, "bytes through open descriptors",
        "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek "
        "sendfile splice tee copy_file_range ftruncate fallocate fadvise64 readahead fsync "
        "fdatasync sync_file_range syncfs sync" },
    { RULE_ALLOW, "descriptors themselves, and those with nothing but memory behind them",
        "close close_range dup dup2 dup3 fcntl flock pipe pipe2 eventfd eventfd2 signalfd "
        "signalfd4 timerfd_create timerfd_settime timerfd_gettime inotify_init "
        "inotify_init1 inotify_add_watch inotify_rm_watch" },
    { RULE_ALLOW, "files by name: the mount tree, Landlock and file modes decide which",
        "access faccessat faccessat2 stat lstat fstat newfstatat statx statfs fstatfs "
        "getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir link linkat symlink "
        "symlinkat readlink readlinkat unlink unlinkat rename renameat renameat2 truncate "
        "utime utimes utimensat futimesat umask chown fchown lchown fchownat" },
    { RULE_ALLOW, "extended attributes: privileged names need a capability",
        "setxattr lsetxattr fsetxattr setxattrat getxattr lgetxattr fgetxattr getxattrat "
        "listxattr llistxattr flistxattr listxattrat removexattr lremovexattr fremovexattr "
        "removexattrat" },
    { RULE_ALLOW, "waiting for descriptors",
        "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait "
        "epoll_pwait epoll_pwait2" },
    { RULE_ALLOW, "a process's own memory, within its limits",
        "brk mprotect munmap mremap madvise process_madvise msync mincore mlock mlock2 "
        "munlock mlockall munlockall pkey_alloc pkey_free pkey_mprotect map_shadow_stack "
        "mseal membarrier get_mempolicy" },
    { RULE_ALLOW, "processes of the own pid namespace: start, wait, signal, count",
        "fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open "
        "pidfd_send_signal getpid getppid gettid getpgid getpgrp setpgid getsid setsid "
        "getrlimit getrusage times" },
    { CHECK_SETRLIMIT, "lower limits are welcome, but for core dumps", "setrlimit" },
    { CHECK_PRLIMIT_WHOSE, "the same, and reading them", "prlimit64" },
    { RULE_ALLOW, "signals",
        "rt_sigaction rt_sigprocmask rt_sigpending rt_sigqueueinfo rt_tgsigqueueinfo "
        "rt_sigsuspend rt_sigtimedwait sigaltstack pause alarm getitimer setitimer" },
    { RULE_ALLOW, "called by the kernel's own return paths and trampolines, not by programs",
        "restart_syscall rt_sigreturn uretprobe uprobe" },
    { RULE_ALLOW, "threads and their scheduling: raising it needs a capability",
        "futex futex_waitv futex_wait futex_wake futex_requeue set_robust_list "
        "get_robust_list set_tid_address rseq rseq_slice_yield arch_prctl getcpu sched_yield "
        "sched_getaffinity sched_getattr sched_getparam sched_getscheduler "
        "sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority "
        "ioprio_get" },
    { CHECK_SCHEDULING, "the same: of all but init",
        "sched_setaffinity sched_setattr sched_setparam sched_setscheduler" },
    { CHECK_SETPRIORITY, "the same, by number or group", "setpriority" },
    { CHECK_IOPRIO_SET, "the same", "ioprio_set" },
    { RULE_ALLOW, "reading the clocks, and own timers",
        "time gettimeofday clock_gettime clock_getres nanosleep clock_nanosleep timer_create "
        "timer_settime timer_gettime timer_getoverrun timer_delete" },
    { RULE_ALLOW, "ids and capabilities: only ever downwards, as the sets are empty",
        "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid "
        "setregid setresuid setresgid setfsuid setfsgid setgroups capget capset" },
    { RULE_ALLOW, "sockets that exist: which ones may is the check of socket()",
        "connect bind listen accept accept4 getsockname getpeername getsockopt "
        "sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg shutdown" },
    { RULE_ALLOW, "System V and POSIX messages: the ipc namespace is the sandbox's own",
        "shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl "
        "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr" },
    { RULE_ALLOW, "facts about the machine", "uname sysinfo getrandom" },
    { RULE_ALLOW, "further confinement by the program itself: it can only tighten",
        "landlock_create_ruleset landlock_add_rule landlock_restrict_self" },

    { CHECK_SECCOMP, "the same; compiled filters take room that the whole host shares", "seccomp" },
    /* Such pages are in a pool of the machine that no memory limit counts. */
    { CHECK_MMAP, "no huge pages", "mmap" },
    { CHECK_SHMGET, "likewise", "shmget" },
    { CHECK_MEMFD, "likewise", "memfd_create" },
    { CHECK_SETSOCKOPT, "no filters on sockets: they take the same room, one for each socket",
        "setsockopt" },

    { CHECK_CLONE, "new threads and processes, but no new namespaces", "clone" },
    { CHECK_UNSHARE_HIGH, "likewise", "unshare" },
    { CHECK_IOCTL, "no commands that type for, or rewire, a terminal", "ioctl" },
    { CHECK_PRCTL, "no core scheduling: it idles a core's other thread, which no quota counts; "
        "filters as for seccomp",
        "prctl" },
    { CHECK_PERSONALITY, "address space randomisation stays on", "personality" },
    { CHECK_SOCKET, "local, IPv4, IPv6, routing queries: other families are code few look at",
        "socket socketpair" },

    /*
     * A set-uid file that leaves the sandbox by a writable mount would lend its owner's id to
     * others.
     */
    { CHECK_OPEN, "no set-uid or set-gid bit on a new file", "open" },
    { CHECK_OPENAT, "likewise", "openat" },
    { CHECK_MODE_1, "no set-uid or set-gid bit", "creat chmod fchmod" },
    { CHECK_MODE_2, "likewise", "fchmodat fchmodat2" },
    { CHECK_MKNOD, "files, FIFOs and sockets, but no devices, not even an overlay's whiteout",
        "mknod" },
    { CHECK_MKNODAT, "likewise", "mknodat" },

    { RULE_ABSENT, "their flags sit in memory, where a filter cannot look", "clone3 openat2" },
    { RULE_ABSENT, "does in the kernel, unseen by this filter, what other calls do",
        "io_uring_setup io_uring_enter io_uring_register" },
    { RULE_ABSENT, "takes requests from one pool (fs.aio-max-nr) that the whole host shares",
        "io_setup io_destroy io_getevents io_pgetevents io_submit io_cancel" },
    { RULE_ABSENT, "tells which pages of shared files others have read", "cachestat" },
    { RULE_ABSENT, "shows mounts, namespaces and security modules; /proc says what is needed",
        "statmount listmount listns lsm_get_self_attr lsm_set_self_attr lsm_list_modules" },
    { RULE_ABSENT, "new or nearly unused, and everything works without",
        "file_getattr file_setattr process_mrelease remap_file_pages" },
    { RULE_ABSENT, "relics that 64-bit kernels no longer have, or that nothing calls",
        "uselib ustat sysfs _sysctl create_module get_kernel_syms query_module getpmsg "
        "putpmsg afs_syscall tuxcall security vserver epoll_ctl_old epoll_wait_old "
        "set_thread_area get_thread_area" },

    { RULE_REFUSE, "another process's memory, registers and descriptors",
        "ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp" },
    { RULE_REFUSE, "the mount tree is finished before the program starts",
        "mount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig "
        "fsmount fspick mount_setattr" },
    { RULE_REFUSE, "namespaces of others", "setns" },
    { RULE_REFUSE, "file handles reach past the mount tree (the way out of early Docker)",
        "name_to_handle_at open_by_handle_at" },
    { RULE_REFUSE, "programs and probes in the kernel", "bpf perf_event_open" },
    { RULE_REFUSE, "stops the kernel in the middle of a copy: a tool of many exploits",
        "userfaultfd" },
    { RULE_REFUSE, "lends the program's own pages to a pipe while it can still change them",
        "vmsplice" },
    { RULE_REFUSE, "keyrings belong to the user, not to a namespace",
        "add_key request_key keyctl" },
    { RULE_REFUSE, "hides memory from the kernel, and keeps the machine from hibernating",
        "memfd_secret" },
    { RULE_REFUSE, "watches files of a whole mount or filesystem",
        "fanotify_init fanotify_mark" },
    { RULE_REFUSE, "places memory on chosen nodes of a machine that others share",
        "mbind set_mempolicy set_mempolicy_home_node migrate_pages move_pages" },
    { RULE_REFUSE, "segments and ports of the processor", "modify_ldt iopl ioperm" },
    { RULE_REFUSE, "another kernel, or another piece of it",
        "kexec_load kexec_file_load init_module finit_module delete_module reboot" },
    { RULE_REFUSE, "the clock, name, log, swap, quotas and consoles of the machine",
        "settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname syslog "
        "acct swapon swapoff quotactl quotactl_fd vhangup lookup_dcookie nfsservctl" },
};

/*
 * Numbers of calls that are newer than the libseccomp of the oldest system carrel builds on
 * (2.5.4, Linux 5.17). From 424 on they are the same on both architectures.
 */
struct seccomp_number {
    const char *name;
    int number;
    enum { ON_BOTH, ON_X86_64 } where;
};

static const struct seccomp_number seccomp_numbers[] = {
    { "uretprobe", 335, ON_X86_64 },
    { "uprobe", 336, ON_X86_64 },
    { "cachestat", 451, ON_BOTH },
    { "fchmodat2", 452, ON_BOTH },
    { "map_shadow_stack", 453, ON_BOTH },
    { "futex_wake", 454, ON_BOTH },
    { "futex_wait", 455, ON_BOTH },
    { "futex_requeue", 456, ON_BOTH },
    { "statmount", 457, ON_BOTH },
    { "listmount", 458, ON_BOTH },
    { "lsm_get_self_attr", 459, ON_BOTH },
    { "lsm_set_self_attr", 460, ON_BOTH },
    { "lsm_list_modules", 461, ON_BOTH },
    { "mseal", 462, ON_BOTH },
    { "setxattrat", 463, ON_BOTH },
    { "getxattrat", 464, ON_BOTH },
    { "listxattrat", 465, ON_BOTH },
    { "removexattrat", 466, ON_BOTH },
    { "open_tree_attr", 467, ON_BOTH },
    { "file_getattr", 468, ON_BOTH },
    { "file_setattr", 469, ON_BOTH },
    { "listns", 470, ON_BOTH },
    { "rseq_slice_yield", 471, ON_BOTH },
};

/* clang-format on */

/*
 * What init may do and its programs may not; a second filter, seccomp.c, removes it from them.
 * init opens files for the host, and only this call can restrict path resolution. And it
 * creates netlink sockets and installs the second filter: with this mark in the half of the
 * register of the type, or of the operation, that the kernel ignores.
 */
#define SECCOMP_INIT_ALONE "openat2"
#define SECCOMP_INIT_MARK UINT32_C(0x6361726c)

/*
 * The x32 calls of x86_64: numbers with bit 30 set. Without bit 31: the kernel answers ENOSYS
 * to negative numbers.
 */
#define SECCOMP_X32_FIRST UINT32_C(0x40000000)
#define SECCOMP_X32_LAST UINT32_C(0x7fffffff)

/*
 * One check: is (half of argument `arg`) & mask one of the values? A filter sees registers, 64
 * bits wide; most calls take an int and the kernel ignores the upper half. Such a check must
 * look at the lower half alone: TIOCSTI with bit 32 set differs from TIOCSTI as a 64-bit number
 * and is TIOCSTI to the kernel.
 */
struct seccomp_check {
    unsigned arg;
    enum { LOW_HALF, HIGH_HALF } half;
    uint32_t mask;
    unsigned n_values;
    uint32_t values[5];
    enum seccomp_rule if_in;
    enum seccomp_rule if_not;
};

#define ANY_BIT UINT32_C(0xffffffff)
#define SET_ID_BITS (S_ISUID | S_ISGID)
#define O_TMPFILE_BIT 020000000 /* O_TMPFILE less O_DIRECTORY, whose value varies */
#define TYPE_MASK 0xf           /* of a socket's type, below SOCK_CLOEXEC and SOCK_NONBLOCK */

/* A list of bits to accept, not to refuse: a later kernel may give an unused one a meaning. */
#define UNSHARE_HARMLESS                                                                       \
    (CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)

/* clone() has no unused bits. 0x80 is CLONE_NEWTIME; no signal number has that bit. */
#define CLONE_NEW_ANY                                                                          \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
            CLONE_NEWPID | CLONE_NEWNET | 0x80)

#define INIT 1 /* the pid of init in its sandbox */

#define VALUES(n, ...) .n_values = (n), .values = { __VA_ARGS__ }

/* clang-format off */

static const struct seccomp_check seccomp_checks[CHECK_COUNT] = {
    /* The kernel uses the lower half of the flags (kernel/fork.c); glibc passes an int. */
    [CHECK_CLONE] = { .arg = 0, .mask = CLONE_NEW_ANY, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = RULE_REFUSE },
    /* unshare() looks at all 64 bits. */
    [CHECK_UNSHARE_HIGH] = { .arg = 0, .half = HIGH_HALF, .mask = ANY_BIT, VALUES(1, 0),
        .if_in = CHECK_UNSHARE, .if_not = RULE_REFUSE },
    [CHECK_UNSHARE] = { .arg = 0, .mask = ~(uint32_t)UNSHARE_HARMLESS, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = RULE_REFUSE },

    /* They type, paste, take the console, or set a line discipline of the kernel. */
    [CHECK_IOCTL] = { .arg = 1, .mask = ANY_BIT,
        VALUES(4, TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD),
        .if_in = RULE_REFUSE, .if_not = RULE_ALLOW },
    [CHECK_PRCTL] = { .arg = 0, .mask = ANY_BIT, VALUES(1, PR_SCHED_CORE),
        .if_in = RULE_REFUSE, .if_not = CHECK_PRCTL_FILTER },
    [CHECK_PRCTL_FILTER] = { .arg = 0, .mask = ANY_BIT, VALUES(1, PR_SET_SECCOMP),
        .if_in = RULE_ASK, .if_not = RULE_ALLOW },
    [CHECK_SECCOMP] = { .arg = 0, .mask = ANY_BIT, VALUES(1, SECCOMP_SET_MODE_FILTER),
        .if_in = CHECK_SECCOMP_WHOSE, .if_not = RULE_ALLOW },
    [CHECK_SECCOMP_WHOSE] = { .arg = 0, .half = HIGH_HALF, .mask = ANY_BIT,
        VALUES(1, SECCOMP_INIT_MARK), .if_in = RULE_ALLOW, .if_not = RULE_ASK },

    [CHECK_MMAP] = { .arg = 3, .mask = MAP_HUGETLB, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = RULE_NO_PAGES },
    [CHECK_SHMGET] = { .arg = 2, .mask = SHM_HUGETLB, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = RULE_NO_PAGES },
    [CHECK_MEMFD] = { .arg = 1, .mask = MFD_HUGETLB, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = RULE_NO_PAGES },

    [CHECK_SETSOCKOPT] = { .arg = 1, .mask = ANY_BIT, VALUES(1, SOL_SOCKET),
        .if_in = CHECK_SETSOCKOPT_NAME, .if_not = RULE_ALLOW },
    [CHECK_SETSOCKOPT_NAME] = { .arg = 2, .mask = ANY_BIT,
        VALUES(4, SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF,
            SO_ATTACH_REUSEPORT_EBPF),
        .if_in = RULE_NO_OPTION, .if_not = RULE_ALLOW },
    /*
     * The current one, the default, and those that `setarch` uses to show another name or
     * version.
     */
    [CHECK_PERSONALITY] = { .arg = 0, .mask = ANY_BIT,
        VALUES(5, 0xffffffff, PER_LINUX, UNAME26, PER_LINUX32, PER_LINUX32 | UNAME26),
        .if_in = RULE_ALLOW, .if_not = RULE_REFUSE },

    /*
     * The core limit is 1, the one value at which the kernel starts no handler for a crash; at
     * 0 it would (core(5)). Programs that set it to 0 want no core dumps: there are none
     * already.
     */
    [CHECK_SETRLIMIT] = { .arg = 0, .mask = ANY_BIT, VALUES(1, RLIMIT_CORE),
        .if_in = RULE_IGNORE, .if_not = RULE_ALLOW },
    [CHECK_PRLIMIT_WHOSE] = { .arg = 0, .mask = ANY_BIT, VALUES(1, INIT),
        .if_in = RULE_REFUSE, .if_not = CHECK_PRLIMIT },
    [CHECK_PRLIMIT] = { .arg = 1, .mask = ANY_BIT, VALUES(1, RLIMIT_CORE),
        .if_in = CHECK_PRLIMIT_NEW, .if_not = RULE_ALLOW },
    [CHECK_PRLIMIT_NEW] = { .arg = 2, .mask = ANY_BIT, VALUES(1, 0),
        .if_in = CHECK_PRLIMIT_NEW_HIGH, .if_not = RULE_IGNORE },
    [CHECK_PRLIMIT_NEW_HIGH] = { .arg = 2, .half = HIGH_HALF, .mask = ANY_BIT, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = RULE_IGNORE },

    /*
     * Every program is a child of init and would inherit what an earlier one did to init's
     * scheduling. If init has the programs' user id the kernel permits that: by its pid, by its
     * group, and by its user (then for all processes of that user, including init).
     */
    [CHECK_SCHEDULING] = { .arg = 0, .mask = ANY_BIT, VALUES(1, INIT),
        .if_in = RULE_REFUSE, .if_not = RULE_ALLOW },
    [CHECK_SETPRIORITY] = { .arg = 0, .mask = ANY_BIT, VALUES(2, PRIO_PROCESS, PRIO_PGRP),
        .if_in = CHECK_SECOND_NOT_INIT, .if_not = RULE_REFUSE },
    [CHECK_IOPRIO_SET] = { .arg = 0, .mask = ANY_BIT,
        VALUES(2, IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP),
        .if_in = CHECK_SECOND_NOT_INIT, .if_not = RULE_REFUSE },
    [CHECK_SECOND_NOT_INIT] = { .arg = 1, .mask = ANY_BIT, VALUES(1, INIT),
        .if_in = RULE_REFUSE, .if_not = RULE_ALLOW },

    [CHECK_OPEN] = { .arg = 1, .mask = O_CREAT | O_TMPFILE_BIT, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = CHECK_MODE_2 },
    [CHECK_OPENAT] = { .arg = 2, .mask = O_CREAT | O_TMPFILE_BIT, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = CHECK_MODE_3 },
    [CHECK_MKNOD] = { .arg = 1, .mask = S_IFMT, VALUES(4, 0, S_IFREG, S_IFIFO, S_IFSOCK),
        .if_in = CHECK_MODE_1, .if_not = RULE_REFUSE },
    [CHECK_MKNODAT] = { .arg = 2, .mask = S_IFMT, VALUES(4, 0, S_IFREG, S_IFIFO, S_IFSOCK),
        .if_in = CHECK_MODE_2, .if_not = RULE_REFUSE },
    [CHECK_MODE_1] = { .arg = 1, .mask = SET_ID_BITS, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = RULE_REFUSE },
    [CHECK_MODE_2] = { .arg = 2, .mask = SET_ID_BITS, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = RULE_REFUSE },
    [CHECK_MODE_3] = { .arg = 3, .mask = SET_ID_BITS, VALUES(1, 0),
        .if_in = RULE_ALLOW, .if_not = RULE_REFUSE },

    /*
     * A refused family or protocol gets the answer of a kernel that lacks it. Libraries handle
     * that answer, while EPERM would stop some (libaudit in `su`).
     */
    [CHECK_SOCKET] = { .arg = 0, .mask = ANY_BIT, VALUES(1, AF_UNIX),
        .if_in = CHECK_UNIX_TYPE, .if_not = CHECK_SOCKET_NOT_UNIX },
    [CHECK_SOCKET_NOT_UNIX] = { .arg = 0, .mask = ANY_BIT, VALUES(2, AF_INET, AF_INET6),
        .if_in = CHECK_INET_TYPE, .if_not = CHECK_SOCKET_NOT_INET },
    [CHECK_SOCKET_NOT_INET] = { .arg = 0, .mask = ANY_BIT, VALUES(1, AF_NETLINK),
        .if_in = CHECK_NETLINK_PROTOCOL, .if_not = RULE_NO_FAMILY },
    [CHECK_UNIX_TYPE] = { .arg = 1, .mask = TYPE_MASK,
        VALUES(3, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET),
        .if_in = RULE_ALLOW, .if_not = RULE_REFUSE },
    /* Sequenced packets would be SCTP; SOCK_PACKET is an old way to AF_PACKET. */
    [CHECK_INET_TYPE] = { .arg = 1, .mask = TYPE_MASK, VALUES(2, SOCK_STREAM, SOCK_DGRAM),
        .if_in = CHECK_INET_PROTOCOL, .if_not = RULE_REFUSE },
    [CHECK_INET_PROTOCOL] = { .arg = 2, .mask = ANY_BIT,
        VALUES(5, 0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6),
        .if_in = RULE_ALLOW, .if_not = RULE_NO_PROTOCOL },
    [CHECK_NETLINK_PROTOCOL] = { .arg = 2, .mask = ANY_BIT, VALUES(1, NETLINK_ROUTE),
        .if_in = CHECK_NETLINK_WHOSE, .if_not = RULE_NO_PROTOCOL },
    [CHECK_NETLINK_WHOSE] = { .arg = 1, .half = HIGH_HALF, .mask = ANY_BIT,
        VALUES(1, SECCOMP_INIT_MARK), .if_in = RULE_ALLOW, .if_not = RULE_ASK },
};

/* clang-format on */

/*
 * The generator runs where carrel is built and uses the values there; the two architectures
 * agree on every one of them.
 */
_Static_assert(O_CREAT == 0100 && (O_TMPFILE & ~O_DIRECTORY) == O_TMPFILE_BIT, "open flags");
_Static_assert(TIOCSTI == 0x5412 && TIOCLINUX == 0x541c && TIOCSETD == 0x5423, "tty commands");
_Static_assert(
        MAP_HUGETLB == 0x40000 && SHM_HUGETLB == 04000 && MFD_HUGETLB == 4, "huge pages");
_Static_assert(SOL_SOCKET == 1 && SO_ATTACH_FILTER == 26 && SO_ATTACH_BPF == 50, "options");
_Static_assert(SOCK_STREAM == 1 && SOCK_DGRAM == 2 && SOCK_SEQPACKET == 5, "socket types");
