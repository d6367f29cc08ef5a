/* seccomp.c - loads the filter that seccomp_gen prepared at build time, and its second part. */
#include "runtime/serving/seccomp.h"
#include "base/auto.h"
#include "base/err.h"
#include "runtime/serving/seccomp_program.h"
#include "runtime/serving/seccomp_rules.h"
#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(
        ARRAY_LEN(seccomp_program) <= BPF_MAXINSNS, "the kernel takes no longer program");

/* The first part has checked the architecture. */
static const struct sock_filter trim_program_words[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 6, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 2, 6),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + 4),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_INIT_MARK, 3, 4),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]) + 4),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_INIT_MARK, 1, 2),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static const struct {
    const struct sock_filter *code;
    size_t len;
} programs[] = {
    [SECCOMP_INIT] = { seccomp_program, ARRAY_LEN(seccomp_program) },
    [SECCOMP_REST] = { trim_program_words, ARRAY_LEN(trim_program_words) },
};

const struct sock_filter *seccomp_program_code(enum seccomp_part part)
{
    return programs[part].code;
}

size_t seccomp_program_len(enum seccomp_part part)
{
    return programs[part].len;
}

/*
 * The kernel's own ENOTSUPP, which errno.h lacks: the room for compiled filters, of all
 * processes of the machine, is used up. It may be for a moment only.
 */
#define NO_ROOM 524
#define LONGEST_WAIT_MS 512 /* about a second in all */

/* Returns what the kernel does: 0, or with NEW_LISTENER a descriptor. */
static int load_once(enum seccomp_part part, unsigned flags)
{
    /* The kernel copies the program; its interface only lacks the const. */
    union {
        const struct sock_filter *prepared;
        struct sock_filter *filter;
    } code = { .prepared = programs[part].code };
    const struct sock_fprog program = {
        .len = (unsigned short)programs[part].len,
        .filter = code.filter,
    };

    /*
     * Not SECCOMP_FILTER_FLAG_SPEC_ALLOW: before Linux 5.16 it would remove the Spectre
     * mitigations from an untrusted program; since then a filter does not enable them anyway,
     * and the flag has no effect.
     */
    const uint64_t mark = part == SECCOMP_REST ? (uint64_t)SECCOMP_INIT_MARK << 32 : 0;
    long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER | mark, flags, &program);
    return r < 0 ? -errno : (int)r;
}

static int load(enum seccomp_part part, unsigned flags)
{
    int r = load_once(part, flags);

    for (int wait_ms = 1; r == -NO_ROOM && wait_ms <= LONGEST_WAIT_MS; wait_ms *= 2) {
        (void)poll(NULL, 0, wait_ms);
        r = load_once(part, flags);
    }
    return r;
}

static int check(int r, struct carrel_error *err)
{
    if (r == -NO_ROOM)
        return err_set(err, -ENOSPC,
                "install the seccomp filter: the machine's room for compiled filters is full "
                "(error 524); as root, raise net.core.bpf_jit_limit");
    return r < 0 ? err_set_errno(err, r, "install the seccomp filter") : r;
}

/*
 * A process has at most one listener, and if carrel itself runs under a filter with a listener,
 * that is it. Then ours has none, and the calls that would ask init fail with ENOSYS.
 */
int seccomp_install_init(int *listener, struct carrel_error *err)
{
    int r = load(SECCOMP_INIT, SECCOMP_FILTER_FLAG_NEW_LISTENER);

    *listener = r < 0 ? -1 : r;
    if (r == -EBUSY)
        r = load(SECCOMP_INIT, 0);
    r = check(r, err);
    return r < 0 ? r : 0;
}

int seccomp_install_rest(struct carrel_error *err)
{
    return check(load(SECCOMP_REST, 0), err);
}
