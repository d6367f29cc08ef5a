/*
 * Removes what carrel depends on from everything that it starts, like a kernel or a container
 * that lacks it; and reports whether it is missing.
 *
 *     85-prerequisites without WHAT PROGRAM ARG...
 *     85-prerequisites attack WHAT...
 */
#include "attack.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_LANDLOCK_CREATE_RULESET 444
#define NR_LANDLOCK_RESTRICT_SELF 446
#define NR_OPEN_TREE 428
#define NR_FSMOUNT 432

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define ERROR(error) ANSWER(SECCOMP_RET_ERRNO | (error))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define HAS(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))
#define FROM(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (value), (yes), (no))

/*
 * As if an administrator had forbidden them; clone3 has its flags where a filter cannot look.
 */
static const struct sock_filter no_user_namespaces[] = {
    LOAD(nr),
    IS(SYS_clone3, 5, 0),
    IS(SYS_clone, 1, 0),
    IS(SYS_unshare, 0, 2),
    LOAD(args[0]),
    HAS(CLONE_NEWUSER, 1, 0),
    ANSWER(SECCOMP_RET_ALLOW),
    ERROR(EPERM),
};

/*
 * As with AppArmor's restriction: they are made, but without a capability in them. The C
 * library does without clone3, of which a filter sees too little.
 */
static const struct sock_filter no_capabilities[] = {
    LOAD(nr),
    IS(SYS_clone3, 7, 0),
    IS(SYS_clone, 1, 0),
    IS(SYS_unshare, 0, 3),
    LOAD(args[0]),
    HAS(CLONE_NEWUSER, 0, 1),
    HAS(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID, 1, 0),
    ANSWER(SECCOMP_RET_ALLOW),
    ERROR(EPERM),
    ERROR(ENOSYS),
};

static const struct sock_filter no_seccomp[] = {
    LOAD(nr),
    IS(SYS_seccomp, 4, 0),
    IS(SYS_prctl, 0, 2),
    LOAD(args[0]),
    IS(PR_SET_SECCOMP, 2, 0),
    ANSWER(SECCOMP_RET_ALLOW),
    ERROR(ENOSYS),
    ERROR(EINVAL),
};

/* What the kernel answers when no compiled filter fits any more. */
static const struct sock_filter no_filter_room[] = {
    LOAD(nr),
    IS(SYS_seccomp, 0, 3),
    LOAD(args[0]),
    IS(SECCOMP_SET_MODE_FILTER, 0, 1),
    ERROR(524),
    ANSWER(SECCOMP_RET_ALLOW),
};

static const struct sock_filter no_landlock[] = {
    LOAD(nr),
    FROM(NR_LANDLOCK_CREATE_RULESET, 0, 1),
    FROM(NR_LANDLOCK_RESTRICT_SELF + 1, 0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ERROR(ENOSYS),
};

static const struct sock_filter no_mount_api[] = {
    LOAD(nr),
    FROM(NR_OPEN_TREE, 0, 1),
    FROM(NR_FSMOUNT + 1, 0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ERROR(ENOSYS),
};

static long user_namespaces(void)
{
    return unshare(CLONE_NEWUSER);
}

static long capabilities(void)
{
    return unshare(CLONE_NEWUSER | CLONE_NEWUTS);
}

static long seccomp_filters(void)
{
    const unsigned action = SECCOMP_RET_ALLOW;

    /* If it is supported, it reads the filter, which is NULL. */
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno == EFAULT)
        return 0;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
}

static long filter_room(void)
{
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) < 0 && errno == EFAULT)
        return 0;
    return -1;
}

static long landlock(void)
{
    return syscall(NR_LANDLOCK_CREATE_RULESET, NULL, 0, 1); /* asks for the version */
}

static long mount_api(void)
{
    return syscall(NR_OPEN_TREE, -1, "/", 0);
}

static const struct prerequisite {
    const char *name;
    const struct sock_filter *filter;
    size_t len;
    long (*use)(void);
} all[] = {
    { "user-namespaces", no_user_namespaces, ARRAY_LEN(no_user_namespaces), user_namespaces },
    { "capabilities", no_capabilities, ARRAY_LEN(no_capabilities), capabilities },
    { "seccomp", no_seccomp, ARRAY_LEN(no_seccomp), seccomp_filters },
    { "filter-room", no_filter_room, ARRAY_LEN(no_filter_room), filter_room },
    { "landlock", no_landlock, ARRAY_LEN(no_landlock), landlock },
    { "mount-api", no_mount_api, ARRAY_LEN(no_mount_api), mount_api },
};

static const struct prerequisite *find(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(all); i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    cannot("there is no '%s'", name ? name : "");
}

static void without(char **args)
{
    const struct prerequisite *gone = find(args[0]);
    struct sock_filter filter[16];
    const struct sock_fprog program = { .len = (unsigned short)gone->len, .filter = filter };

    memcpy(filter, gone->filter, gone->len * sizeof(*filter));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        cannot("filter: %s", errno_name(errno));
    execv(args[1], args + 1);
    cannot("%s: %s", args[1], errno_name(errno));
}

/* The attack "succeeds" if it is missing. */
static void attack(char **args)
{
    for (; *args; args++)
        if (find(*args)->use() < 0)
            succeeded(*args, "%s", errno_name(errno));
        else
            refused(*args, "it is there");
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "without", without }, { "attack", attack }, { 0 } });
}
