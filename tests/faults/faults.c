/*
 * faults.c - lets each system call of carrel's setup fail in turn, and looks at what comes of
 * it.
 *
 * usage: faults [-e ERROR[,ERROR]] [-k] [-l] [-v] [-o CALL] [-s PART/PARTS] -- CARREL run ...
 * PROGRAM
 *
 *   -e    the errors to inject: EPERM (default), ENOMEM, EINTR ... (names below)
 *   -k    instead of an error, kill -9 carrel when it, or a child, enters the call
 *   -l    only list the calls
 *   -o    only this call, as a breach names it: "0.2 mkdirat 3"
 *   -s    every PARTS-th call, beginning with PART: a sample
 *   -v    say of every call what came of it
 *
 * We trace carrel and all its children with ptrace. The setup is what happens between carrel's
 * first call and the moment when the program has been executed; then we stop tracing. At that
 * moment the program's confinement is read from the outside (its /proc entries and its cgroup).
 * A first run without a fault says what is right. For a run with one, either
 *
 *   - carrel refuses: status 125, one line "carrel: ...", and no program was executed, or
 *   - the program was executed, and its confinement and what the result claims are as in the
 * first run, to the letter;
 *
 * and when carrel has ended, no process is left. Calls that confine (see must_refuse) may not
 * fail without a refusal even if no difference is seen. Prints one line for each breach and a
 * sum.
 *
 * A process is called by its way from carrel: "0" is carrel, "0.2" its second child, "0.2.1"
 * the first child of that. A call is known by its process, its name and how many of that name
 * came before it there: other sandboxes on the machine may add a call here and there (there is
 * more to sweep), but rarely one of the same name. What was missed is tried again.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>
#include <linux/sched.h>

#define HANG_SECONDS 10
#define MAX_PROCS 64
#define MAX_CALLS 4096
#define ATTEMPTS 5
#define LEN(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    long number;
    const char *name;
} names[] = {
#define CALL(name)                                                                             \
    {                                                                                          \
        SYS_##name, #name                                                                      \
    }
    CALL(brk),
    CALL(capget),
    CALL(capset),
    CALL(chdir),
    CALL(clone),
    CALL(clone3),
    CALL(close),
    CALL(close_range),
    CALL(dup),
    CALL(dup3),
    CALL(execve),
    CALL(exit),
    CALL(exit_group),
    CALL(faccessat),
    CALL(faccessat2),
    CALL(fchdir),
    CALL(fchmod),
    CALL(fchown),
    CALL(fchownat),
    CALL(fcntl),
    CALL(flock),
    CALL(fsconfig),
    CALL(fsmount),
    CALL(fsopen),
    CALL(fstat),
    CALL(fstatfs),
    CALL(getdents64),
    CALL(geteuid),
    CALL(getpid),
    CALL(getppid),
    CALL(getrandom),
    CALL(getresuid),
    CALL(getuid),
    CALL(getegid),
    CALL(getgid),
    CALL(ioctl),
    CALL(kill),
    CALL(landlock_add_rule),
    CALL(landlock_create_ruleset),
    CALL(landlock_restrict_self),
    CALL(lseek),
    CALL(memfd_create),
    CALL(mkdirat),
    CALL(mknodat),
    CALL(mmap),
    CALL(mount),
    CALL(mount_setattr),
    CALL(move_mount),
    CALL(mprotect),
    CALL(munmap),
    CALL(newfstatat),
    CALL(open_tree),
    CALL(openat),
    CALL(openat2),
    CALL(pidfd_open),
    CALL(pidfd_send_signal),
    CALL(pipe2),
    CALL(pivot_root),
    CALL(ppoll),
    CALL(prctl),
    CALL(prlimit64),
    CALL(pwrite64),
    CALL(read),
    CALL(readlinkat),
    CALL(recvmsg),
    CALL(rt_sigaction),
    CALL(rt_sigprocmask),
    CALL(seccomp),
    CALL(sendmsg),
    CALL(sendto),
    CALL(set_robust_list),
    CALL(set_tid_address),
    CALL(setfsgid),
    CALL(setfsuid),
    CALL(setgid),
    CALL(setgroups),
    CALL(sethostname),
    CALL(setns),
    CALL(setresgid),
    CALL(setresuid),
    CALL(setrlimit),
    CALL(setsid),
    CALL(signalfd4),
    CALL(socket),
    CALL(socketpair),
    CALL(statfs),
    CALL(statx),
    CALL(symlinkat),
    CALL(umask),
    CALL(umount2),
    CALL(uname),
    CALL(unlinkat),
    CALL(unshare),
    CALL(wait4),
    CALL(waitid),
    CALL(write),
    CALL(writev),
    CALL(clock_gettime),
    CALL(sched_getaffinity),
    CALL(mremap),
    CALL(madvise),
    CALL(gettid),
    CALL(rt_sigreturn),
    CALL(recvfrom),
    CALL(bind),
    CALL(connect),
    CALL(sched_yield),
    CALL(execveat),
    CALL(pread64),
    CALL(ftruncate),
    CALL(fchmodat),
    CALL(setpriority),
    CALL(personality),
#ifdef SYS_access
    CALL(access),
    CALL(arch_prctl),
    CALL(open),
    CALL(poll),
    CALL(readlink),
    CALL(mkdir),
    CALL(pipe),
    CALL(vfork),
    CALL(fork),
    CALL(unlink),
    CALL(rmdir),
    CALL(stat),
    CALL(lstat),
    CALL(dup2),
    CALL(getrlimit),
    CALL(time),
    CALL(pause),
    CALL(alarm),
#endif
#ifdef SYS_rseq
    CALL(rseq),
#endif
#undef CALL
};

static const char *call_name(long number)
{
    static char other[32];

    for (size_t i = 0; i < LEN(names); i++)
        if (names[i].number == number)
            return names[i].name;
    (void)snprintf(other, sizeof(other), "call_%ld", number);
    return other;
}

/*
 * A failure of these must always be a refusal. Those that only look at the machine, or clean
 * up, may be taken otherwise.
 */
static const char *const must_refuse[] = {
    "capset",
    "clone",
    "clone3",
    "close_range",
    "dup3",
    "fsconfig",
    "fsmount",
    "fsopen",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "mkdirat",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "pivot_root",
    "prlimit64",
    "prctl",
    "seccomp",
    "setgroups",
    "sethostname",
    "setresgid",
    "setresuid",
    "setrlimit",
    "setsid",
    "socket",
    "symlinkat",
    "umount2",
    "unshare",
    "fchownat",
    "openat2",
};

static const struct {
    const char *name;
    int number;
} errors[] = {
    { "EPERM", EPERM },
    { "ENOENT", ENOENT },
    { "EINTR", EINTR },
    { "EIO", EIO },
    { "EAGAIN", EAGAIN },
    { "ENOMEM", ENOMEM },
    { "EACCES", EACCES },
    { "EBUSY", EBUSY },
    { "EEXIST", EEXIST },
    { "EINVAL", EINVAL },
    { "EMFILE", EMFILE },
    { "ENOSPC", ENOSPC },
    { "EROFS", EROFS },
    { "ENOSYS", ENOSYS },
    { "EOPNOTSUPP", EOPNOTSUPP },
    { "EUSERS", EUSERS },
};

static _Noreturn void die(const char *what)
{
    (void)fprintf(stderr, "faults: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- one process, as ptrace sees it ---------------------------------------------------------
 */

#if defined(__x86_64__)
#include <sys/user.h>

/* The call becomes getpid(), which nothing forbids; its result is replaced at the end. */
static void replace_call(pid_t pid)
{
    struct user_regs_struct regs;

    if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
        return;
    regs.orig_rax = SYS_getpid;
    (void)ptrace(PTRACE_SETREGS, pid, NULL, &regs);
}

static void set_result(pid_t pid, int error)
{
    struct user_regs_struct regs;

    if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
        return;
    regs.rax = (unsigned long long)-(long long)error;
    (void)ptrace(PTRACE_SETREGS, pid, NULL, &regs);
}
#elif defined(__aarch64__)
#include <asm/ptrace.h>

static void replace_call(pid_t pid)
{
    int number = SYS_getpid;
    struct iovec io = { &number, sizeof(number) };

    (void)ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &io);
}

static void set_result(pid_t pid, int error)
{
    struct user_pt_regs regs;
    struct iovec io = { &regs, sizeof(regs) };

    if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io) < 0)
        return;
    regs.regs[0] = (uint64_t) - (int64_t)error;
    (void)ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &io);
}
#endif

struct proc {
    pid_t pid; /* 0: free */
    char role[24];
    unsigned counts[512]; /* of each call, counting from carrel's start */
    unsigned children;    /* made so far */
    long number;          /* of the call that it is in */
    bool is_in_call;
    bool is_new; /* its first stop has not been seen */
    int inject;  /* at the end of this call, this result; 0: its own */
};

/* ---- one run --------------------------------------------------------------------------------
 */

struct call {
    char role[24];
    unsigned index;
    long number;
};

struct fault {
    const struct call *at; /* NULL: none */
    int error;             /* 0: kill carrel instead */
};

struct run {
    struct proc procs[MAX_PROCS];
    pid_t carrel;
    bool has_begun;   /* carrel's main() runs: its first call there is signal(SIGPIPE) */
    bool is_free;     /* the program was executed: nothing is traced any more */
    bool has_run;     /* the program was executed at all */
    char program[24]; /* its role */
    bool is_landlocked;
    bool has_fired;
    bool is_hung;
    bool has_ended;
    int status; /* wait status of carrel */
    int left;   /* processes that outlived it */
    char left_names[256];
    char *confinement;
    char out[16384];
    char err[4096];
};

static struct call calls[MAX_CALLS];
static size_t n_calls;
static bool is_recording;
static volatile sig_atomic_t is_late;

static void on_alarm(int sig)
{
    (void)sig;
    is_late = 1;
}

static struct proc *find(struct run *run, pid_t pid)
{
    for (size_t i = 0; i < MAX_PROCS; i++)
        if (run->procs[i].pid == pid)
            return &run->procs[i];
    return NULL;
}

static struct proc *add(struct run *run, pid_t pid)
{
    struct proc *proc = find(run, 0);

    if (!proc) {
        (void)fprintf(stderr, "faults: more than %d processes\n", MAX_PROCS);
        exit(2);
    }
    *proc = (struct proc){ .pid = pid, .is_new = true };
    return proc;
}

/* ---- confinement, seen from outside ---------------------------------------------------------
 */

static char *read_proc(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    size_t got = 0;
    while (fd >= 0 && got < size - 1 && (n = read(fd, text + got, size - 1 - got)) > 0)
        got += (size_t)n;
    if (fd < 0)
        got = (size_t)snprintf(text, size, "unreadable: %s\n", strerror(errno));
    else
        (void)close(fd);
    text[got] = '\0';
    return text;
}

static void put_status(FILE *to, pid_t pid)
{
    static const char *const wanted[] = { "Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn",
        "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
        "Seccomp_filters" };
    char text[8192];
    char *rest = NULL;

    (void)read_proc(pid, "status", text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        size_t len = strcspn(line, ":");
        bool is_id = strncmp(line, "Uid:", 4) == 0 || strncmp(line, "Gid:", 4) == 0;
        for (size_t i = 0; i < LEN(wanted); i++) {
            if (strlen(wanted[i]) != len || strncmp(line, wanted[i], len) != 0)
                continue;
            /* As root each sandbox has ids of its own: only that all four agree is of interest.
             */
            unsigned id[4] = { 0 };
            if (is_id &&
                    sscanf(line + len + 1, "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4)
                (void)fprintf(to, "%.3s: %s, %s\n", line, id[0] ? "not root" : "ROOT",
                        id[0] == id[1] && id[1] == id[2] && id[2] == id[3] ? "one" : "MIXED");
            else
                (void)fprintf(to, "%s\n", line);
        }
        if (strncmp(line, "NSpid:", 6) == 0) {
            unsigned depth = 0;
            for (const char *c = line; *c; c++)
                depth += isdigit((unsigned char)*c) && !isdigit((unsigned char)c[-1]);
            (void)fprintf(to, "pid namespaces: %u\n", depth);
        }
    }
}

static void put_map(FILE *to, pid_t pid, const char *file)
{
    char text[1024];
    char *rest = NULL;

    (void)read_proc(pid, file, text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        unsigned inside = 0;
        unsigned outside = 0;
        unsigned count = 0;
        if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3)
            (void)fprintf(to, "%s: %u %s %u\n", file, inside,
                    outside == 0       ? "ROOT"
                    : outside < 100000 ? "a user's"
                                       : "own range",
                    count);
        else
            (void)fprintf(to, "%s: %s\n", file, line);
    }
}

static void put_namespaces(FILE *to, pid_t pid)
{
    static const char *const kinds[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };

    for (size_t i = 0; i < LEN(kinds); i++) {
        char theirs[64];
        char ours[64];
        struct stat a;
        struct stat b;
        (void)snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", (int)pid, kinds[i]);
        (void)snprintf(ours, sizeof(ours), "/proc/self/ns/%s", kinds[i]);
        if (stat(theirs, &a) < 0 || stat(ours, &b) < 0)
            (void)fprintf(to, "%s namespace: unknown (%s)\n", kinds[i], strerror(errno));
        else
            (void)fprintf(
                    to, "%s namespace: %s\n", kinds[i], a.st_ino == b.st_ino ? "HOST" : "own");
    }
}

/* Mount point, options, type: without the numbers that differ from run to run. */
static void put_mounts(FILE *to, pid_t pid)
{
    static char text[65536];
    char *rest = NULL;

    (void)read_proc(pid, "mountinfo", text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char at[512];
        char how[256];
        char *type = strstr(line, " - ");
        char *owner =
                type ? strstr(type, ",uid=") : NULL; /* of the tmpfs: ids of this sandbox */
        if (owner)
            *owner = '\0';
        if (sscanf(line, "%*s %*s %*s %*s %511s %255s", at, how) == 2 && type)
            (void)fprintf(to, "mount: %s %s%s\n", at, how, type + 2);
        else
            (void)fprintf(to, "mount: %s\n", line);
    }
}

static void put_setting(FILE *to, const char *dir, const char *file)
{
    char path[PATH_MAX + 64];
    char value[64] = "unreadable";

    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    FILE *from = fopen(path, "re");
    if (!from)
        return; /* a controller without such a file */
    if (fgets(value, sizeof(value), from))
        value[strcspn(value, "\n")] = '\0';
    (void)fclose(from);
    (void)fprintf(to, "cgroup %s: %s\n", file, value);
}

static void put_cgroups(FILE *to, pid_t pid)
{
    static const char *const files[] = { "memory.limit_in_bytes", "memory.max", "pids.max",
        "cpu.cfs_quota_us", "cpu.max", "memory.memsw.limit_in_bytes", "memory.swap.max" };
    char text[4096];
    char *rest = NULL;

    (void)read_proc(pid, "cgroup", text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        char *ours = path ? strstr(path, "/carrel/") : NULL;
        if (!ours)
            continue;
        *path++ = '\0';
        controllers++;
        char dir[PATH_MAX];
        size_t len = strcspn(controllers, ",");
        (void)snprintf(dir, sizeof(dir), "/sys/fs/cgroup/%.*s%s", (int)len, controllers, path);
        (void)fprintf(to, "cgroup %s: member\n", controllers);
        for (size_t i = 0; i < LEN(files); i++)
            put_setting(to, dir, files[i]);
    }
}

static void put_descriptors(FILE *to, pid_t pid)
{
    char path[64];
    bool is_open[1024] = { false };

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) < 1024)
            is_open[atoi(entry->d_name)] = true;
    if (dir)
        (void)closedir(dir);
    (void)fprintf(to, "descriptors:");
    for (int i = 0; i < 1024; i++)
        if (is_open[i])
            (void)fprintf(to, " %d", i);
    (void)fprintf(to, "\n");
}

static void put_rest(FILE *to, pid_t pid)
{
    char text[16384];
    char path[64];
    int session = 0;

    (void)fprintf(to, "%s", read_proc(pid, "limits", text, sizeof(text)));
    (void)read_proc(pid, "environ", text, sizeof(text));
    (void)fprintf(to, "environment:");
    for (const char *entry = text; *entry; entry += strlen(entry) + 1)
        (void)fprintf(to, " %s", entry);
    (void)fprintf(to, "\n");
    (void)snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
    ssize_t n = readlink(path, text, sizeof(text) - 1);
    text[n < 0 ? 0 : n] = '\0';
    (void)fprintf(to, "directory: %s\n", text);
    (void)read_proc(pid, "stat", text, sizeof(text));
    const char *after = strrchr(text, ')');
    if (after && sscanf(after + 1, " %*c %*d %*d %d", &session) == 1)
        (void)fprintf(to, "session: %s\n", session == (int)pid ? "own" : "NOT ITS OWN");
}

static char *describe(const struct run *run, pid_t pid)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (!to)
        die("memory");
    put_status(to, pid);
    put_map(to, pid, "uid_map");
    put_map(to, pid, "gid_map");
    put_namespaces(to, pid);
    put_cgroups(to, pid);
    put_mounts(to, pid);
    put_descriptors(to, pid);
    put_rest(to, pid);
    (void)fprintf(to, "landlock: %s\n", run->is_landlocked ? "yes" : "NO");
    (void)fclose(to);
    return text;
}

/* ---- following ------------------------------------------------------------------------------
 */

static void fire(struct run *run, struct proc *proc, const struct fault *fault)
{
    run->has_fired = true;
    if (fault->error == 0) {
        (void)kill(run->carrel, SIGKILL);
        return;
    }
    proc->inject = fault->error;
    replace_call(proc->pid);
}

static bool begins(
        const struct run *run, const struct proc *proc, const struct ptrace_syscall_info *info)
{
    return proc->pid == run->carrel && info->entry.nr == SYS_rt_sigaction &&
           info->entry.args[0] == SIGPIPE;
}

static void on_entry(struct run *run, struct proc *proc, const struct ptrace_syscall_info *info,
        const struct fault *fault)
{
    proc->is_in_call = true;
    proc->number = (long)info->entry.nr;
    if (!run->has_begun)
        run->has_begun = begins(run, proc, info);
    if (!run->has_begun)
        return;
    unsigned index = ++proc->counts[(unsigned long)proc->number % LEN(proc->counts)];
    if (is_recording) {
        if (n_calls == MAX_CALLS) {
            (void)fprintf(stderr, "faults: more than %d calls\n", MAX_CALLS);
            exit(2);
        }
        struct call *call = &calls[n_calls++];
        *call = (struct call){ .index = index, .number = proc->number };
        memcpy(call->role, proc->role, sizeof(call->role));
    }
    if (fault->at && !run->has_fired && fault->at->index == index &&
            strcmp(fault->at->role, proc->role) == 0 && fault->at->number == proc->number)
        fire(run, proc, fault);
}

static void on_exit_of_call(
        struct run *run, struct proc *proc, const struct ptrace_syscall_info *info)
{
    if (proc->inject)
        set_result(proc->pid, proc->inject);
    else if (proc->number == SYS_landlock_restrict_self && info->exit.rval == 0)
        run->is_landlocked = true;
    proc->inject = 0;
    proc->is_in_call = false;
}

static void on_syscall(struct run *run, struct proc *proc, const struct fault *fault)
{
    struct ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, proc->pid, sizeof(info), &info) <= 0)
        return; /* killed in the meantime */
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY && !run->is_free)
        on_entry(run, proc, &info, fault);
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        on_exit_of_call(run, proc, &info);
}

static void on_event(struct run *run, struct proc *proc, int event)
{
    unsigned long message = 0;

    if (event == PTRACE_EVENT_EXEC) {
        if (proc->pid == run->carrel || run->has_run)
            return;
        run->has_run = true;
        run->is_free = true;
        memcpy(run->program, proc->role, sizeof(run->program));
        run->confinement = describe(run, proc->pid);
        return;
    }
    if (event != PTRACE_EVENT_CLONE && event != PTRACE_EVENT_FORK &&
            event != PTRACE_EVENT_VFORK)
        return;
    if (ptrace(PTRACE_GETEVENTMSG, proc->pid, NULL, &message) < 0)
        return;
    struct proc *child = find(run, (pid_t)message);
    if (!child)
        child = add(run, (pid_t)message);
    proc->children++;
    (void)snprintf(child->role, sizeof(child->role), "%.15s.%u", proc->role, proc->children);
}

/* One stop of one process. Returns the signal to go on with. */
static int on_stop(struct run *run, struct proc *proc, int status, const struct fault *fault)
{
    int sig = WSTOPSIG(status);

    if (sig == (SIGTRAP | 0x80)) {
        on_syscall(run, proc, fault);
        return 0;
    }
    if (sig == SIGTRAP && status >> 16) {
        on_event(run, proc, status >> 16);
        return 0;
    }
    if (proc->is_new && sig == SIGSTOP) {
        proc->is_new = false;
        return 0;
    }
    return sig;
}

static void follow(struct run *run, const struct fault *fault)
{
    int status;

    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR && is_late) {
            run->is_hung = !run->has_ended;
            break;
        }
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            break; /* nobody is left */
        struct proc *proc = find(run, pid);
        if (!proc)
            proc = add(run, pid); /* a child that stops before its parent's event */
        if (WIFSTOPPED(status)) {
            int sig = on_stop(run, proc, status, fault);
            (void)ptrace(run->is_free && !proc->inject ? PTRACE_CONT : PTRACE_SYSCALL, pid,
                    NULL, sig);
            continue;
        }
        proc->pid = 0;
        if (pid == run->carrel) {
            run->status = status;
            run->has_ended = true;
            alarm(HANG_SECONDS); /* for the rest to go */
        }
    }
}

/* What did not go by itself. */
static void end_rest(struct run *run)
{
    size_t len = 0;

    for (size_t i = 0; i < MAX_PROCS; i++) {
        struct proc *proc = &run->procs[i];
        if (proc->pid == 0)
            continue;
        run->left++;
        len += (size_t)snprintf(
                run->left_names + len, sizeof(run->left_names) - len, " %s", proc->role);
        if (len >= sizeof(run->left_names))
            len = sizeof(run->left_names) - 1;
        (void)kill(proc->pid, SIGKILL);
    }
    for (size_t i = 0; i < MAX_PROCS; i++)
        if (run->procs[i].pid)
            (void)waitpid(run->procs[i].pid, NULL, __WALL);
}

static void take_text(FILE *file, char *text, size_t size)
{
    rewind(file);
    size_t n = fread(text, 1, size - 1, file);
    text[n] = '\0';
}

static void run_once(struct run *run, char **argv, const struct fault *fault)
{
    FILE *out = tmpfile();
    FILE *err = tmpfile();

    if (!out || !err)
        die("tmpfile");
    *run = (struct run){ .status = -1 };
    run->carrel = fork();
    if (run->carrel < 0)
        die("fork");
    if (run->carrel == 0) {
        int null = open("/dev/null", O_RDONLY);
        (void)dup2(null, 0);
        (void)dup2(fileno(out), 1);
        (void)dup2(fileno(err), 2);
        (void)close_range(3, ~0U, 0);
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
        execv(argv[0], argv);
        _exit(99);
    }
    struct proc *proc = add(run, run->carrel);
    (void)strcpy(proc->role, "0");
    proc->is_new = false;
    int status;
    if (waitpid(run->carrel, &status, __WALL) < 0 || !WIFSTOPPED(status))
        die("start");
    if (ptrace(PTRACE_SETOPTIONS, run->carrel, NULL,
                PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                        PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0)
        die("ptrace");
    is_late = 0;
    alarm(HANG_SECONDS);
    (void)ptrace(PTRACE_SYSCALL, run->carrel, NULL, 0);
    follow(run, fault);
    alarm(0);
    end_rest(run);
    take_text(out, run->out, sizeof(run->out));
    take_text(err, run->err, sizeof(run->err));
    (void)fclose(out);
    (void)fclose(err);
}

/* ---- judging --------------------------------------------------------------------------------
 */

/* The part of the result that says what was promised. */
static const char *claims(const struct run *run, char *text, size_t size)
{
    const char *from = strstr(run->out, "\"protections\":");
    const char *held = strstr(run->out, "\"held_by\":");
    size_t a = from ? strcspn(from, "]") : 0;
    size_t b = held ? strcspn(held, "}") : 0;

    (void)snprintf(text, size, "%.*s %.*s", (int)a, from ? from : "", (int)b, held ? held : "");
    return text;
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static bool is_one_line(const char *text)
{
    const char *newline = strchr(text, '\n');

    return strncmp(text, "carrel: ", 8) == 0 && newline && newline[1] == '\0';
}

/* Without the note that a rootless run adds. */
static void drop_note(char *text)
{
    char *note = strstr(text, "carrel: note: ");

    if (!note)
        return;
    const char *end = strchr(note, '\n');
    memmove(note, end ? end + 1 : "", strlen(end ? end + 1 : "") + 1);
}

/* The first line that differs. */
static void first_difference(const char *want, const char *got, char *text, size_t size)
{
    while (*want && *got) {
        size_t a = strcspn(want, "\n");
        size_t b = strcspn(got, "\n");
        if (a != b || strncmp(want, got, a) != 0)
            break;
        want += a + (want[a] == '\n');
        got += b + (got[b] == '\n');
    }
    size_t a = strcspn(want, "\n");
    size_t b = strcspn(got, "\n");
    (void)snprintf(text, size, "'%.*s' instead of '%.*s'", (int)(b < 80 ? b : 80), got,
            (int)(a < 80 ? a : 80), want);
}

/* In carrel or in the branch of init: other children only help to prepare. */
static bool is_confining(const struct run *right, const struct call *at)
{
    size_t branch = 2 + strspn(right->program + 2, "0123456789");

    if (strcmp(at->role, "0") == 0)
        return at->number != SYS_prlimit64; /* it asks for its own */
    return strncmp(at->role, right->program, branch) == 0 &&
           (at->role[branch] == '\0' || at->role[branch] == '.');
}

/* Returns what is wrong, or NULL. */
static const char *judge(struct run *run, const struct run *right, const struct fault *fault)
{
    static char text[1500];
    char a[2048];
    char b[2048];
    const char *name = call_name(fault->at->number);
    int code = WIFEXITED(run->status) ? WEXITSTATUS(run->status) : 128;

    drop_note(run->err);
    if (run->is_hung)
        return "carrel hangs";
    if (run->left) {
        (void)snprintf(text, sizeof(text), "processes are left:%s", run->left_names);
        return text;
    }
    if (!run->has_fired || fault->error == 0)
        return NULL; /* another order of things than in the first run; or killed, and all is
                        gone */
    if (!run->has_run) {
        bool is_exec = strcmp(name, "execve") == 0;
        if (code == 0 || (!is_exec && code != 125) || (is_exec && (code < 125 || code > 127)))
            (void)snprintf(
                    text, sizeof(text), "refused with status %d: %.300s", code, run->err);
        else if (!is_one_line(run->err))
            (void)snprintf(text, sizeof(text), "not one line on stderr: '%.300s'", run->err);
        else
            return NULL;
        text[strcspn(text, "\n")] = '\0';
        return text;
    }
    if (strcmp(run->confinement, right->confinement) != 0) {
        char difference[1200];
        first_difference(right->confinement, run->confinement, difference, sizeof(difference));
        (void)snprintf(text, sizeof(text), "WEAKER: %s", difference);
        return text;
    }
    if (code == 0 && strcmp(claims(run, a, sizeof(a)), claims(right, b, sizeof(b))) != 0) {
        (void)snprintf(text, sizeof(text), "claims %.700s instead of %.700s", a, b);
        return text;
    }
    if (is_confining(right, fault->at) && is_one_of(name, must_refuse, LEN(must_refuse)))
        return "ran, though this failed";
    return NULL;
}

static int number_of_error(const char *name, size_t len)
{
    for (size_t i = 0; i < LEN(errors); i++)
        if (strlen(errors[i].name) == len && strncmp(errors[i].name, name, len) == 0)
            return errors[i].number;
    (void)fprintf(stderr, "faults: unknown error '%.*s'\n", (int)len, name);
    exit(2);
}

struct options {
    const char *errors;
    bool is_killing;
    bool is_listing;
    bool is_loud;
    const char *only;
    unsigned part;
    unsigned parts;
    char **argv;
};

static struct options parse(int argc, char **argv)
{
    struct options o = { .errors = "EPERM", .part = 0, .parts = 1 };
    int c;

    while ((c = getopt(argc, argv, "+e:klo:s:v")) >= 0) {
        if (c == 'e')
            o.errors = optarg;
        else if (c == 'k')
            o.is_killing = true;
        else if (c == 'l')
            o.is_listing = true;
        else if (c == 'o')
            o.only = optarg;
        else if (c == 'v')
            o.is_loud = true;
        else if (c != 's' || sscanf(optarg, "%u/%u", &o.part, &o.parts) != 2 || o.parts == 0)
            exit(2);
    }
    o.argv = argv + optind;
    if (!*o.argv) {
        (void)fprintf(stderr, "usage: faults [options] -- CARREL run ... PROGRAM\n");
        exit(2);
    }
    return o;
}

/* With the arguments that carrel gives them; and close() has closed whatever it says. */
static bool cannot_fail(long number)
{
    static const char *const list[] = { "brk", "clock_gettime", "close", "exit", "exit_group",
        "getegid", "geteuid", "getgid", "getpid", "getppid", "gettid", "getuid", "munmap",
        "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "setfsgid", "setfsuid", "umask" };

    return is_one_of(call_name(number), list, LEN(list));
}

/* One call with one error. Returns 1 if it was a breach. */
static int try_one(const struct options *o, const struct run *right, const struct fault *fault,
        const char *error)
{
    static struct run run;

    for (int i = 0; i == 0 || (i < ATTEMPTS && !run.has_fired); i++) {
        free(run.confinement);
        run_once(&run, o->argv, fault);
    }
    const char *wrong = judge(&run, right, fault);
    const char *came = !run.has_fired ? "did not come to it" : run.has_run ? "ran" : "refused";
    if (wrong || o->is_loud)
        (void)printf("%s: %s %s %u: %s: %s%s", wrong ? "BREACH" : "fine", fault->at->role,
                call_name(fault->at->number), fault->at->index, error, wrong ? wrong : came,
                wrong || !run.err[0] ? "\n" : ": ");
    if (o->is_loud && !wrong)
        (void)printf("%s", run.err);
    (void)fflush(stdout);
    free(run.confinement);
    run.confinement = NULL;
    return wrong ? 1 : 0;
}

static bool is_wanted(const struct options *o, const struct call *call)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "%.20s %.40s %u", call->role, call_name(call->number),
            call->index);
    if (o->only)
        return strcmp(o->only, text) == 0;
    return o->is_killing || !cannot_fail(call->number);
}

static int try_all(const struct options *o, const struct run *right)
{
    unsigned tried = 0;
    unsigned breaches = 0;

    for (size_t i = 0; i < n_calls; i++) {
        struct fault fault = { .at = &calls[i] };
        if (!is_wanted(o, &calls[i]))
            continue;
        if (o->is_killing) {
            if (i % o->parts == o->part) {
                breaches += (unsigned)try_one(o, right, &fault, "KILL");
                tried++;
            }
            continue;
        }
        unsigned n = 0;
        for (const char *name = o->errors; *name; n++) {
            size_t len = strcspn(name, ",");
            char word[16];
            (void)snprintf(word, sizeof(word), "%.*s", (int)len, name);
            fault.error = number_of_error(name, len);
            if ((i + n) % o->parts == o->part) {
                breaches += (unsigned)try_one(o, right, &fault, word);
                tried++;
            }
            name += len + (name[len] == ',');
        }
    }
    (void)printf("%u faults in %zu calls, %u breaches\n", tried, n_calls, breaches);
    return breaches ? 1 : 0;
}

int main(int argc, char **argv)
{
    static struct run right;
    const struct fault none = { 0 };
    struct options o = parse(argc, argv);
    struct sigaction late = { .sa_handler = on_alarm }; /* no SA_RESTART: waitpid must return */

    (void)sigaction(SIGALRM, &late, NULL);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        die("subreaper");
    is_recording = true;
    run_once(&right, o.argv, &none);
    is_recording = false;
    if (!right.has_run || !WIFEXITED(right.status) || WEXITSTATUS(right.status) != 0) {
        (void)fprintf(stderr, "faults: without a fault it does not run: %s\n", right.err);
        return 2;
    }
    if (o.is_loud)
        (void)printf("%s", right.confinement);
    if (o.is_listing) {
        for (size_t i = 0; i < n_calls; i++)
            (void)printf(
                    "%s %s %u\n", calls[i].role, call_name(calls[i].number), calls[i].index);
        return 0;
    }
    return try_all(&o, &right);
}
