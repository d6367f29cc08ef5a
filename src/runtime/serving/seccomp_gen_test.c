/*
 * seccomp_gen_test.c - the filter as a program: a small interpreter runs it on artificial
 * system calls, so that every number and every bit can be tried, including dangerous ones.
 * seccomp_test.c tests it in the kernel.
 */
#include "base/auto.h"
#include "base/err.h"
#include "harness.h"
#include "runtime/serving/seccomp.h"
#include "runtime/serving/seccomp_rules.h"
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOWED SECCOMP_RET_ALLOW
#define KILLED SECCOMP_RET_KILL_PROCESS
#define FAILS(error) (SECCOMP_RET_ERRNO | (error))

#define BIT_32 (UINT64_C(1) << 32)
#define BIT_63 (UINT64_C(1) << 63)
#define LAST_NUMBER 471 /* that the table knows */

#if defined(__x86_64__)
static const uint32_t native_arch = AUDIT_ARCH_X86_64;
static const uint32_t foreign_arch = AUDIT_ARCH_I386;
static const bool has_x32 = true;
#elif defined(__aarch64__)
static const uint32_t native_arch = AUDIT_ARCH_AARCH64;
static const uint32_t foreign_arch = AUDIT_ARCH_ARM;
static const bool has_x32 = false;
#endif

static uint32_t word_at(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;

    CHECK(offset % 4 == 0 && offset < sizeof(*data));
    memcpy(&word, (const char *)data + offset, sizeof(word));
    return word;
}

/* Runs the filter like the kernel. Supports only the instructions that the generator uses. */
static uint32_t run_part(enum seccomp_part part, const struct seccomp_data *data)
{
    const struct sock_filter *code = seccomp_program_code(part);
    uint32_t acc = 0;

    for (size_t pc = 0; pc < seccomp_program_len(part); pc++) {
        uint32_t k = code[pc].k;
        bool is_true;

        switch (code[pc].code) {
        case BPF_LD | BPF_W | BPF_ABS:
            acc = word_at(data, k);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            acc &= k;
            continue;
        case BPF_RET | BPF_K:
            return k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            is_true = acc == k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            is_true = acc >= k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            is_true = (acc & k) != 0;
            break;
        default:
            test_fail(__FILE__, __LINE__, "instruction %zu has code 0x%x", pc, code[pc].code);
        }
        pc += is_true ? code[pc].jt : code[pc].jf;
    }
    test_fail(__FILE__, __LINE__, "the program ran past its end");
}

/* Of two filters the kernel uses the stricter answer: the smaller one, signed. */
static uint32_t stricter(uint32_t a, uint32_t b)
{
    return (int32_t)(a & SECCOMP_RET_ACTION_FULL) <= (int32_t)(b & SECCOMP_RET_ACTION_FULL) ? a
                                                                                            : b;
}

/* What applies to a program: init's filter and the rest. */
static uint32_t run_filter(const struct seccomp_data *data)
{
    return stricter(run_part(SECCOMP_INIT, data), run_part(SECCOMP_REST, data));
}

static uint32_t ask_arch(uint32_t arch, uint32_t number)
{
    return run_filter(&(struct seccomp_data){ .nr = (int)number, .arch = arch });
}

/* The filter's answer to a call with up to four arguments. */
#define ASK(...) ASK_PADDED(__VA_ARGS__, 0, 0, 0, 0)
#define ASK_PADDED(number, a, b, c, d, ...)                                                    \
    run_filter(&(struct seccomp_data){ .nr = (int)(number),                                    \
            .arch = native_arch,                                                               \
            .args = { (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d) } })

TEST(init_may_open_files_with_care_and_its_programs_may_not)
{
    const struct seccomp_data data = { .nr = SYS_openat2, .arch = native_arch };

    CHECK_EQ(run_part(SECCOMP_INIT, &data), SECCOMP_RET_ALLOW);
    CHECK_EQ(run_filter(&data), SECCOMP_RET_ERRNO | ENOSYS);
}

TEST(init_may_make_netlink_sockets_and_its_programs_may_not)
{
    const uint64_t marked = SOCK_RAW | (uint64_t)SECCOMP_INIT_MARK << 32;
    struct seccomp_data data = {
        .nr = SYS_socket, .arch = native_arch, .args = { AF_NETLINK, marked, NETLINK_ROUTE }
    };

    CHECK_EQ(run_part(SECCOMP_INIT, &data), SECCOMP_RET_ALLOW);
    CHECK_EQ(run_filter(&data), SECCOMP_RET_ERRNO | EINVAL);
    data.args[2] = NETLINK_AUDIT;
    CHECK_EQ(run_part(SECCOMP_INIT, &data), SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    data.args[2] = NETLINK_ROUTE;
    data.args[1] = SOCK_RAW | (uint64_t)(SECCOMP_INIT_MARK ^ 1) << 32;
    CHECK_EQ(run_part(SECCOMP_INIT, &data), SECCOMP_RET_USER_NOTIF);
}

TEST(a_call_from_another_architecture_ends_the_process)
{
    for (uint32_t number = 0; number < 600; number++) {
        CHECK_EQ(ask_arch(foreign_arch, number), KILLED);
        CHECK_EQ(ask_arch(0, number), KILLED);
        CHECK_EQ(ask_arch(AUDIT_ARCH_RISCV64, number), KILLED);
    }
}

TEST(x32_numbers_end_the_process)
{
    if (!has_x32)
        SKIP("only x86_64 has them");
    for (uint32_t number = 0; number < 600; number++)
        CHECK_EQ(ask_arch(native_arch, SECCOMP_X32_FIRST | number), KILLED);
    CHECK_EQ(ask_arch(native_arch, SECCOMP_X32_FIRST - 1), FAILS(ENOSYS));
    CHECK_EQ(ask_arch(native_arch, SECCOMP_X32_LAST), KILLED);
    CHECK_EQ(ask_arch(native_arch, SECCOMP_X32_LAST + 1), FAILS(ENOSYS));
}

TEST(a_number_that_nobody_knows_does_not_exist)
{
    for (uint32_t number = LAST_NUMBER + 1; number < 5000; number++)
        CHECK_EQ(ask_arch(native_arch, number), FAILS(ENOSYS));
    for (uint32_t number = 0x80000000; number != 0; number += 0x01000000)
        CHECK_EQ(ask_arch(native_arch, number), FAILS(ENOSYS));
    CHECK_EQ(ask_arch(native_arch, UINT32_MAX), FAILS(ENOSYS));
}

/* Numbers from the kernel's headers, not from libseccomp: the two must agree. */
static const int harmless_calls[] = { SYS_read, SYS_write, SYS_close, SYS_munmap, SYS_brk,
    SYS_rt_sigaction, SYS_rt_sigreturn, SYS_restart_syscall, SYS_execve, SYS_execveat, SYS_exit,
    SYS_exit_group, SYS_wait4, SYS_waitid, SYS_kill, SYS_futex, SYS_rseq, SYS_uname,
    SYS_getrandom, SYS_membarrier, SYS_statx, SYS_faccessat2, SYS_close_range, SYS_epoll_pwait2,
    SYS_futex_waitv, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_copy_file_range,
    SYS_inotify_add_watch, SYS_timerfd_create, SYS_mq_open, SYS_landlock_restrict_self,
    SYS_capset, SYS_setgroups, SYS_setresuid, SYS_setresgid, SYS_setsid, SYS_dup3, SYS_ppoll,
    SYS_sendmsg, SYS_recvmsg, SYS_statfs, SYS_fstatfs, SYS_getdents64, SYS_chdir, SYS_fchownat,
    SYS_setxattr };

static const int refused_calls[] = { SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_pidfd_getfd, SYS_kcmp, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl,
    SYS_add_key, SYS_request_key, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot,
    SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
    SYS_mount_setattr, SYS_setns, SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_kexec_load,
    SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_reboot,
    SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_quotactl_fd, SYS_syslog,
    SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_sethostname,
    SYS_setdomainname, SYS_vhangup, SYS_fanotify_init, SYS_fanotify_mark, SYS_vmsplice,
    SYS_memfd_secret, SYS_mbind, SYS_set_mempolicy, SYS_migrate_pages, SYS_move_pages,
#ifdef __x86_64__
    SYS_iopl, SYS_ioperm, SYS_modify_ldt
#endif
};

static const int absent_calls[] = { SYS_clone3, SYS_openat2, SYS_io_uring_setup,
    SYS_io_uring_enter, SYS_io_uring_register, SYS_io_setup, SYS_io_submit };

/* Arguments with all bits set must not matter if the rule does not check them. */
static void check_calls(const int *numbers, size_t n, uint32_t expected)
{
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ(ASK(numbers[i]), expected);
        CHECK_EQ(ASK(numbers[i], UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX), expected);
    }
}

TEST(what_programs_and_the_init_of_the_sandbox_need_is_allowed)
{
    check_calls(harmless_calls, ARRAY_LEN(harmless_calls), ALLOWED);
}

TEST(dangerous_calls_are_refused)
{
    check_calls(refused_calls, ARRAY_LEN(refused_calls), FAILS(EPERM));
}

TEST(calls_with_an_older_form_do_not_exist)
{
    check_calls(absent_calls, ARRAY_LEN(absent_calls), FAILS(ENOSYS));
}

TEST(clone_makes_threads_and_processes)
{
    uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                      CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

    CHECK_EQ(ASK(SYS_clone, SIGCHLD), ALLOWED);
    CHECK_EQ(ASK(SYS_clone, thread), ALLOWED);
    CHECK_EQ(ASK(SYS_clone, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD), ALLOWED);
    CHECK_EQ(ASK(SYS_clone, CLONE_IO | SIGCHLD), ALLOWED);
    /* A caller may leave anything in the half that the kernel ignores. */
    CHECK_EQ(ASK(SYS_clone, BIT_63 | BIT_32 | SIGCHLD), ALLOWED);
}

TEST(clone_and_unshare_make_no_namespace_however_the_flags_are_dressed)
{
    const uint64_t spaces[] = { CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
        CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, 0x80 };

    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        CHECK_EQ(ASK(SYS_clone, spaces[i]), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_clone, spaces[i] | CLONE_VM | CLONE_VFORK | SIGCHLD), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_clone, spaces[i] | BIT_32 | BIT_63), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_unshare, spaces[i]), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_unshare, spaces[i] | CLONE_FILES), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_unshare, spaces[i] | BIT_32), FAILS(EPERM));
    }
}

TEST(unshare_takes_only_flags_that_are_known_to_be_harmless)
{
    CHECK_EQ(ASK(SYS_unshare, 0), ALLOWED);
    CHECK_EQ(ASK(SYS_unshare, CLONE_FS | CLONE_FILES | CLONE_SYSVSEM), ALLOWED);
    CHECK_EQ(ASK(SYS_unshare, CLONE_PARENT_SETTID), FAILS(EPERM));
    CHECK_EQ(ASK(SYS_unshare, CLONE_FS | BIT_32), FAILS(EPERM));
    CHECK_EQ(ASK(SYS_unshare, BIT_63), FAILS(EPERM));
}

TEST(terminal_commands_are_compared_as_the_kernel_reads_them)
{
    const uint64_t refused[] = { TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD };
    const uint64_t allowed[] = { TCGETS, TCSETS, TIOCGWINSZ, TIOCSWINSZ, TIOCSCTTY, TIOCSPGRP,
        TIOCGETD, FIONREAD, FIOCLEX, TIOCSTI + 1, TIOCSTI - 1, UINT64_C(0x80000000) | TIOCSTI };

    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        CHECK_EQ(ASK(SYS_ioctl, 0, refused[i]), FAILS(EPERM));
        for (unsigned bit = 32; bit < 64; bit++)
            CHECK_EQ(ASK(SYS_ioctl, 0, refused[i] | UINT64_C(1) << bit), FAILS(EPERM));
    }
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        CHECK_EQ(ASK(SYS_ioctl, TIOCSTI, allowed[i], TIOCSTI), ALLOWED);
}

TEST(a_filter_of_a_program_waits_for_init)
{
    const uint64_t mark = (uint64_t)SECCOMP_INIT_MARK << 32;
    struct seccomp_data data = {
        .nr = SYS_seccomp, .arch = native_arch, .args = { SECCOMP_SET_MODE_FILTER | mark }
    };

    CHECK_EQ(run_part(SECCOMP_INIT, &data), SECCOMP_RET_ALLOW);
    CHECK_EQ(run_filter(&data), FAILS(EINVAL));
    CHECK_EQ(ASK(SYS_seccomp, SECCOMP_SET_MODE_FILTER), SECCOMP_RET_USER_NOTIF);
    CHECK_EQ(ASK(SYS_seccomp, SECCOMP_SET_MODE_FILTER | BIT_32), SECCOMP_RET_USER_NOTIF);
    CHECK_EQ(ASK(SYS_seccomp, SECCOMP_SET_MODE_STRICT), ALLOWED);
    CHECK_EQ(ASK(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL), ALLOWED);
    CHECK_EQ(ASK(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER), SECCOMP_RET_USER_NOTIF);
    CHECK_EQ(ASK(SYS_prctl, PR_SET_SECCOMP | BIT_32, 2), SECCOMP_RET_USER_NOTIF);
}

TEST(huge_pages_look_as_if_none_were_reserved)
{
    const uint64_t size_1g = UINT64_C(30) << 26;

    CHECK_EQ(ASK(SYS_mmap, 0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS), ALLOWED);
    CHECK_EQ(ASK(SYS_mmap, MAP_HUGETLB, MAP_HUGETLB, 3, ~(uint64_t)MAP_HUGETLB), ALLOWED);
    CHECK_EQ(ASK(SYS_mmap, 0, 4096, 3, MAP_HUGETLB | MAP_ANONYMOUS), FAILS(ENOMEM));
    CHECK_EQ(ASK(SYS_mmap, 0, 4096, 3, MAP_HUGETLB | size_1g | BIT_63), FAILS(ENOMEM));
    CHECK_EQ(ASK(SYS_shmget, 0, 4096, 0600), ALLOWED);
    CHECK_EQ(ASK(SYS_shmget, 0, 4096, 0600 | SHM_HUGETLB | BIT_32), FAILS(ENOMEM));
    CHECK_EQ(ASK(SYS_memfd_create, 0, MFD_CLOEXEC | MFD_ALLOW_SEALING), ALLOWED);
    CHECK_EQ(ASK(SYS_memfd_create, 0, MFD_HUGETLB | size_1g), FAILS(ENOMEM));
}

TEST(a_socket_gets_no_filter)
{
    const uint64_t refused[] = { SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF,
        SO_ATTACH_REUSEPORT_EBPF };
    const uint64_t allowed[] = { SO_DETACH_FILTER, SO_REUSEADDR, SO_RCVBUF, SO_LOCK_FILTER };

    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        CHECK_EQ(ASK(SYS_setsockopt, 3, SOL_SOCKET, refused[i]), FAILS(ENOPROTOOPT));
        CHECK_EQ(ASK(SYS_setsockopt, 3, SOL_SOCKET | BIT_32, refused[i] | BIT_63),
                FAILS(ENOPROTOOPT));
        CHECK_EQ(ASK(SYS_setsockopt, 3, IPPROTO_TCP, refused[i]), ALLOWED);
    }
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        CHECK_EQ(ASK(SYS_setsockopt, 3, SOL_SOCKET, allowed[i]), ALLOWED);
}

TEST(core_scheduling_is_all_that_prctl_refuses)
{
    CHECK_EQ(ASK(SYS_prctl, PR_SCHED_CORE), FAILS(EPERM));
    CHECK_EQ(ASK(SYS_prctl, PR_SCHED_CORE | BIT_32), FAILS(EPERM));
    for (uint32_t option = 0; option < 200; option++)
        if (option != PR_SCHED_CORE && option != PR_SET_SECCOMP)
            CHECK_EQ(ASK(SYS_prctl, option), ALLOWED);
}

TEST(personality_keeps_address_space_randomisation)
{
    const uint64_t allowed[] = { PER_LINUX, 0xffffffff, UINT64_MAX, UNAME26, PER_LINUX32,
        PER_LINUX32 | UNAME26, BIT_32 };

    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        CHECK_EQ(ASK(SYS_personality, allowed[i]), ALLOWED);
    for (unsigned bit = 0; bit < 32; bit++)
        if ((1U << bit) != UNAME26 && (1U << bit) != PER_LINUX32)
            CHECK_EQ(ASK(SYS_personality, 1U << bit), FAILS(EPERM));
    CHECK_EQ(ASK(SYS_personality, ADDR_NO_RANDOMIZE | BIT_32), FAILS(EPERM));
}

TEST(the_core_limit_stays_where_no_handler_is_started)
{
    const uint64_t pointer = UINT64_C(0x7fff00000000); /* its lower half is 0 */

    CHECK_EQ(ASK(SYS_setrlimit, RLIMIT_CORE), FAILS(0)); /* succeeds and does nothing */
    CHECK_EQ(ASK(SYS_setrlimit, RLIMIT_CORE | BIT_32), FAILS(0));
    CHECK_EQ(ASK(SYS_setrlimit, RLIMIT_NOFILE), ALLOWED);
    CHECK_EQ(ASK(SYS_prlimit64, 0, RLIMIT_CORE, pointer), FAILS(0));
    CHECK_EQ(ASK(SYS_prlimit64, 0, RLIMIT_CORE, 0x1000), FAILS(0));
    CHECK_EQ(ASK(SYS_prlimit64, 0, RLIMIT_CORE | BIT_32, 0x1000), FAILS(0));
    CHECK_EQ(ASK(SYS_prlimit64, 0, RLIMIT_CORE, 0, pointer), ALLOWED); /* reading */
    CHECK_EQ(ASK(SYS_prlimit64, 0, RLIMIT_NOFILE, pointer), ALLOWED);
}

TEST(what_later_programs_begin_with_is_not_changed_in_init)
{
    const long of_one[] = { SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam,
        SYS_sched_setscheduler };

    for (size_t i = 0; i < ARRAY_LEN(of_one); i++) {
        CHECK_EQ(ASK(of_one[i], 0), ALLOWED);
        CHECK_EQ(ASK(of_one[i], 2), ALLOWED);
        CHECK_EQ(ASK(of_one[i], 1), FAILS(EPERM));
        CHECK_EQ(ASK(of_one[i], 1 | BIT_32), FAILS(EPERM));
    }
    CHECK_EQ(ASK(SYS_prlimit64, 1, RLIMIT_NOFILE, 0x1000), FAILS(EPERM));
    CHECK_EQ(ASK(SYS_prlimit64, 1 | BIT_32, RLIMIT_CORE, 0x1000), FAILS(EPERM));
    CHECK_EQ(ASK(SYS_prlimit64, 2, RLIMIT_NOFILE, 0x1000), ALLOWED);
    for (uint64_t who = 0; who < 4; who++) {
        CHECK_EQ(ASK(SYS_setpriority, PRIO_PROCESS, who), who == 1 ? FAILS(EPERM) : ALLOWED);
        CHECK_EQ(ASK(SYS_setpriority, PRIO_PGRP, who), who == 1 ? FAILS(EPERM) : ALLOWED);
        CHECK_EQ(ASK(SYS_setpriority, PRIO_USER, who), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_setpriority, PRIO_USER | BIT_32, who), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_ioprio_set, IOPRIO_WHO_PROCESS, who),
                who == 1 ? FAILS(EPERM) : ALLOWED);
        CHECK_EQ(ASK(SYS_ioprio_set, IOPRIO_WHO_PGRP, who), who == 1 ? FAILS(EPERM) : ALLOWED);
        CHECK_EQ(ASK(SYS_ioprio_set, IOPRIO_WHO_USER, who), FAILS(EPERM));
    }
}

TEST(sockets_are_local_or_internet_streams_and_datagrams)
{
    const uint64_t flags[] = { 0, SOCK_CLOEXEC, SOCK_CLOEXEC | SOCK_NONBLOCK, BIT_32 };

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        CHECK_EQ(ASK(SYS_socket, AF_UNIX, SOCK_STREAM | flags[i]), ALLOWED);
        CHECK_EQ(ASK(SYS_socket, AF_UNIX, SOCK_DGRAM | flags[i]), ALLOWED);
        CHECK_EQ(ASK(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | flags[i]), ALLOWED);
        CHECK_EQ(ASK(SYS_socket, AF_INET, SOCK_STREAM | flags[i], IPPROTO_TCP), ALLOWED);
        CHECK_EQ(ASK(SYS_socket, AF_INET6, SOCK_DGRAM | flags[i], IPPROTO_UDP), ALLOWED);
        CHECK_EQ(ASK(SYS_socket, AF_INET, SOCK_DGRAM | flags[i], IPPROTO_ICMP), ALLOWED);
        CHECK_EQ(ASK(SYS_socket, AF_INET, SOCK_RAW | flags[i]), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_socket, AF_INET6, SOCK_RAW | flags[i], IPPROTO_TCP), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_socket, AF_INET, SOCK_PACKET | flags[i]), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_socket, AF_INET, SOCK_SEQPACKET | flags[i]), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_socket, AF_UNIX, SOCK_RAW | flags[i]), FAILS(EPERM));
        CHECK_EQ(ASK(SYS_socket, AF_NETLINK, SOCK_RAW | flags[i], NETLINK_ROUTE),
                SECCOMP_RET_USER_NOTIF);
    }
}

TEST(other_families_and_protocols_look_as_if_the_kernel_lacked_them)
{
    for (uint64_t family = 0; family < 64; family++) {
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
                family == AF_NETLINK)
            continue;
        CHECK_EQ(ASK(SYS_socket, family, SOCK_STREAM), FAILS(EAFNOSUPPORT));
        CHECK_EQ(ASK(SYS_socket, family | BIT_32, SOCK_RAW), FAILS(EAFNOSUPPORT));
        CHECK_EQ(ASK(SYS_socketpair, family, SOCK_STREAM), FAILS(EAFNOSUPPORT));
    }
    for (uint64_t protocol = 1; protocol < 32; protocol++)
        CHECK_EQ(ASK(SYS_socket, AF_NETLINK, SOCK_RAW, protocol), FAILS(EPROTONOSUPPORT));
    CHECK_EQ(ASK(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP), FAILS(EPROTONOSUPPORT));
    CHECK_EQ(ASK(SYS_socket, AF_INET, SOCK_STREAM, 262 /* MPTCP */), FAILS(EPROTONOSUPPORT));
    CHECK_EQ(ASK(SYS_socket, AF_INET6, SOCK_DGRAM, 115 /* L2TP */), FAILS(EPROTONOSUPPORT));
}

/* Calls that set a mode, and the argument it is in. */
static const struct {
    int number;
    unsigned arg;
} mode_calls[] = {
    { SYS_fchmod, 1 },
    { SYS_fchmodat, 2 },
    { 452, 2 }, /* fchmodat2 */
    { SYS_mknodat, 2 },
#ifdef SYS_chmod
    { SYS_chmod, 1 },
    { SYS_creat, 1 },
    { SYS_mknod, 1 },
#endif
};

/* Calls that open files, and the argument that the flags are in; the mode follows. */
static const struct {
    int number;
    unsigned arg;
} open_calls[] = {
    { SYS_openat, 2 },
#ifdef SYS_open
    { SYS_open, 1 },
#endif
};

/* A call whose argument `arg` is `value` and the one after it `next`. */
static uint32_t ask_args(int number, unsigned arg, uint64_t value, uint64_t next)
{
    struct seccomp_data data = { .nr = number, .arch = native_arch };

    data.args[arg] = value;
    data.args[arg + 1] = next;
    return run_filter(&data);
}

TEST(no_call_sets_a_set_id_bit)
{
    for (size_t i = 0; i < ARRAY_LEN(mode_calls); i++) {
        int number = mode_calls[i].number;
        unsigned arg = mode_calls[i].arg;
        CHECK_EQ(ask_args(number, arg, 01777, 0), ALLOWED);
        CHECK_EQ(ask_args(number, arg, 0644 | BIT_32, 0), ALLOWED);
        CHECK_EQ(ask_args(number, arg, 04755, 0), FAILS(EPERM));
        CHECK_EQ(ask_args(number, arg, 02755, 0), FAILS(EPERM));
        CHECK_EQ(ask_args(number, arg, 06000 | BIT_63, 0), FAILS(EPERM));
    }
}

TEST(a_new_file_has_no_set_id_bit)
{
    const uint64_t creating[] = { O_CREAT, O_CREAT | O_EXCL | O_RDWR, O_TMPFILE | O_RDWR,
        O_TMPFILE_BIT, O_CREAT | BIT_32 };

    for (size_t i = 0; i < ARRAY_LEN(creating) * ARRAY_LEN(open_calls); i++) {
        int number = open_calls[i % ARRAY_LEN(open_calls)].number;
        unsigned arg = open_calls[i % ARRAY_LEN(open_calls)].arg;
        uint64_t flags = creating[i / ARRAY_LEN(open_calls)];
        CHECK_EQ(ask_args(number, arg, flags, 0644), ALLOWED);
        CHECK_EQ(ask_args(number, arg, flags, 04755), FAILS(EPERM));
        CHECK_EQ(ask_args(number, arg, flags, 02000 | BIT_32), FAILS(EPERM));
        /* Without creation the register has an undefined value. */
        CHECK_EQ(ask_args(number, arg, O_RDONLY | O_CLOEXEC, UINT64_MAX), ALLOWED);
        CHECK_EQ(ask_args(number, arg, O_DIRECTORY | BIT_32, UINT64_MAX), ALLOWED);
    }
}

TEST(mknod_makes_no_devices)
{
    const uint64_t allowed[] = { 0, S_IFREG, S_IFIFO, S_IFSOCK };
    const uint64_t refused[] = { S_IFCHR, S_IFBLK, S_IFDIR, S_IFLNK, S_IFMT, S_IFCHR | BIT_32 };

    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        CHECK_EQ(ask_args(SYS_mknodat, 2, allowed[i] | 0600, 0), ALLOWED);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        CHECK_EQ(ask_args(SYS_mknodat, 2, refused[i] | 0600, 0), FAILS(EPERM));
}

/*
 * libseccomp, which turns names into numbers. carrel does not link it, and neither do its
 * tests; it is installed wherever carrel was built.
 */
struct names {
    int (*number_of)(const char *name);
    char *(*name_of)(uint32_t arch, int number);
};

static struct names load_names(void)
{
    void *library = dlopen("libseccomp.so.2", RTLD_NOW);
    struct names names;

    if (!library)
        SKIP("%s", dlerror());
    *(void **)&names.number_of = dlsym(library, "seccomp_syscall_resolve_name");
    *(void **)&names.name_of = dlsym(library, "seccomp_syscall_resolve_num_arch");
    CHECK(names.number_of && names.name_of);
    return names;
}

static int number_of(const struct names *names, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(seccomp_numbers); i++)
        if (strcmp(seccomp_numbers[i].name, name) == 0)
            return has_x32 || seccomp_numbers[i].where == ON_BOTH ? seccomp_numbers[i].number
                                                                  : -1;
    return names->number_of(name);
}

/* The table by number; -1: not in it. */
static void read_table(const struct names *names, int rule_of[LAST_NUMBER + 1])
{
    for (size_t i = 0; i <= LAST_NUMBER; i++)
        rule_of[i] = -1;
    for (size_t i = 0; i < ARRAY_LEN(seccomp_groups); i++) {
        AUTO(free) char *text = strdup(seccomp_groups[i].names);
        char *rest = text;
        for (char *name = strsep(&rest, " "); name; name = strsep(&rest, " ")) {
            int number = number_of(names, name);
            if (number < 0)
                continue;
            CHECK(number <= LAST_NUMBER);
            CHECK_EQ(rule_of[number], -1); /* in one group only */
            rule_of[number] = (int)seccomp_groups[i].rule;
        }
    }
}

/* The answer according to the tables, computed the slow way. */
static uint32_t expected_answer(int rule, const struct seccomp_data *data)
{
    while (rule >= RULE_COUNT) {
        const struct seccomp_check *check = &seccomp_checks[rule];
        uint64_t arg = data->args[check->arg];
        uint32_t half = (uint32_t)(check->half == HIGH_HALF ? arg >> 32 : arg) & check->mask;
        bool is_in = false;

        for (size_t i = 0; i < check->n_values; i++)
            is_in = is_in || half == check->values[i];
        rule = (int)(is_in ? check->if_in : check->if_not);
    }
    return seccomp_answers[rule];
}

static void check_against_tables(int rule, struct seccomp_data data)
{
    CHECK_EQ(run_filter(&data), expected_answer(rule, &data));
}

TEST(the_program_says_what_the_tables_say)
{
    const uint64_t values[] = { 0, 1, 2, 3, 5, 6, 8, 10, 16, 17, 58, PR_SCHED_CORE, 0100, 0644,
        02000, 04000, 06755, S_IFREG, S_IFCHR, S_IFSOCK | 04000, TIOCSTI, TIOCLINUX, TIOCSETD,
        UNAME26, O_TMPFILE_BIT, CLONE_FS, CLONE_NEWUSER, BIT_32, BIT_32 | TIOCSTI, UINT32_MAX,
        UINT64_MAX };
    const size_t n = ARRAY_LEN(values);
    struct names names = load_names();
    int rule_of[LAST_NUMBER + 1];

    read_table(&names, rule_of);
    for (int number = 0; number <= LAST_NUMBER; number++) {
        int rule = rule_of[number] < 0 ? RULE_ABSENT : rule_of[number];
        /* All triples where arguments matter, some where they should not. */
        for (size_t i = 0; i < n * n * n; i += rule < RULE_COUNT ? 1009 : 1) {
            uint64_t a = values[i % n];
            uint64_t b = values[i / n % n];
            uint64_t c = values[i / n / n];
            check_against_tables(
                    rule, (struct seccomp_data){ number, native_arch, 0, { a, b, c } });
            check_against_tables(
                    rule, (struct seccomp_data){ number, native_arch, 0, { 0, a, b, c } });
        }
    }
}

TEST(no_call_that_libseccomp_knows_is_left_undecided)
{
    struct names names = load_names();
    int rule_of[LAST_NUMBER + 1];

    read_table(&names, rule_of);
    for (int number = 0; number <= LAST_NUMBER; number++) {
        AUTO(free) char *name = names.name_of(native_arch, number);
        if (name && rule_of[number] < 0)
            test_fail(__FILE__, __LINE__, "%s (%d) is in no group", name, number);
    }
}
