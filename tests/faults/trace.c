/*
 * trace.c - traces carrel and all its children.
 *
 * Nothing here depends on time, except a bound on hangs: every process is stopped at each of
 * its calls until we have inspected it.
 */
#include "trace.h"
#include "confinement.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#define HANG_SECONDS 10
#define MAX_PROCS 64
#define LEN(array) (sizeof(array) / sizeof((array)[0]))

static _Noreturn void die(const char *what)
{
    (void)fprintf(stderr, "faults: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- registers ------------------------------------------------------------------------------
 */

#if defined(__x86_64__)
#include <sys/user.h>

/* The call becomes getpid(), which nothing forbids; its result is replaced on return. */
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

/* ---- processes ------------------------------------------------------------------------------
 */

struct proc {
    pid_t pid; /* 0: free */
    char role[24];
    unsigned counts[512]; /* of each call, counting from carrel's start */
    unsigned children;    /* made so far */
    long number;          /* of its current call */
    bool is_new;          /* its first stop was not seen yet */
    bool is_held;         /* it is stopped until its parent's event names it */
    int inject;           /* the result of this call; 0: its own */
};

struct tracer {
    struct proc procs[MAX_PROCS];
    pid_t carrel;
    bool has_begun; /* carrel's main() runs: its first call there is signal(SIGPIPE) */
    bool is_free;   /* the program was executed: tracing has ended */
    bool has_ended; /* carrel itself */
    bool is_landlocked;
    const struct fault *fault;
    struct trace *record;
    struct run *run;
};

static volatile sig_atomic_t is_late;

static void on_alarm(int sig)
{
    (void)sig;
    is_late = 1;
}

static struct proc *find(struct tracer *t, pid_t pid)
{
    for (size_t i = 0; i < MAX_PROCS; i++)
        if (t->procs[i].pid == pid)
            return &t->procs[i];
    return NULL;
}

static struct proc *add(struct tracer *t, pid_t pid)
{
    struct proc *proc = find(t, 0);

    if (!proc) {
        errno = ENOSPC;
        die("more processes than expected");
    }
    *proc = (struct proc){ .pid = pid, .is_new = true };
    return proc;
}

/* ---- calls ----------------------------------------------------------------------------------
 */

static void fire(struct tracer *t, struct proc *proc)
{
    t->run->has_fired = true;
    if (t->fault->error == 0) {
        (void)kill(t->carrel, SIGKILL);
        return;
    }
    proc->inject = t->fault->error;
    replace_call(proc->pid);
}

static bool begins(
        const struct tracer *t, const struct proc *proc, const struct ptrace_syscall_info *info)
{
    return proc->pid == t->carrel && info->entry.nr == SYS_rt_sigaction &&
           info->entry.args[0] == SIGPIPE;
}

/*
 * A call while the program runs already, by a parent that vfork has released: the kernel may do
 * that before or after it reports the program.
 */
static bool is_after_program(const struct ptrace_syscall_info *info)
{
    return info->entry.nr == SYS_prctl && info->entry.args[0] == PR_SET_PDEATHSIG &&
           info->entry.args[1] == 0;
}

static void note(struct trace *record, const struct proc *proc, unsigned index)
{
    if (record->n == TRACE_MAX_CALLS) {
        errno = ENOSPC;
        die("more calls than expected");
    }
    struct call *call = &record->calls[record->n++];
    *call = (struct call){ .index = index, .number = proc->number };
    memcpy(call->role, proc->role, sizeof(call->role));
}

static void on_entry(
        struct tracer *t, struct proc *proc, const struct ptrace_syscall_info *info)
{
    const struct call *at = t->fault->at;

    proc->number = (long)info->entry.nr;
    t->has_begun = t->has_begun || begins(t, proc, info);
    if (!t->has_begun)
        return;
    unsigned index = ++proc->counts[(unsigned long)proc->number % LEN(proc->counts)];
    if (t->record && !is_after_program(info))
        note(t->record, proc, index);
    if (at && !t->run->has_fired && at->index == index && at->number == proc->number &&
            strcmp(at->role, proc->role) == 0)
        fire(t, proc);
}

static void on_return(
        struct tracer *t, struct proc *proc, const struct ptrace_syscall_info *info)
{
    if (proc->inject)
        set_result(proc->pid, proc->inject);
    else if (proc->number == SYS_landlock_restrict_self && info->exit.rval == 0)
        t->is_landlocked = true;
    proc->inject = 0;
}

static void on_syscall(struct tracer *t, struct proc *proc)
{
    struct ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, proc->pid, sizeof(info), &info) <= 0)
        return; /* killed in the meantime */
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY && !t->is_free)
        on_entry(t, proc, &info);
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        on_return(t, proc, &info);
}

/* ---- stops ----------------------------------------------------------------------------------
 */

static void go_on(struct tracer *t, const struct proc *proc, int sig)
{
    /* Fails only for a killed process; its exit is reported. */
    (void)ptrace(
            t->is_free && !proc->inject ? PTRACE_CONT : PTRACE_SYSCALL, proc->pid, NULL, sig);
}

/* The program: from here on only its exit matters. */
static void on_exec(struct tracer *t, struct proc *proc)
{
    if (proc->pid == t->carrel || t->run->has_run)
        return;
    t->run->has_run = true;
    t->is_free = true;
    memcpy(t->run->program, proc->role, sizeof(t->run->program));
    char *facts = confinement_describe(proc->pid);
    if (!facts || asprintf(&t->run->confinement, "%slandlock: %s\n", facts,
                          t->is_landlocked ? "yes" : "NO") < 0)
        die("memory");
    free(facts);
}

static void on_child(struct tracer *t, struct proc *parent)
{
    unsigned long pid = 0;

    if (ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid) < 0)
        return;
    struct proc *child = find(t, (pid_t)pid);
    if (!child)
        child = add(t, (pid_t)pid);
    parent->children++;
    (void)snprintf(
            child->role, sizeof(child->role), "%.15s.%u", parent->role, parent->children);
    if (child->is_held) {
        child->is_held = false;
        go_on(t, child, 0);
    }
}

static void on_stop(struct tracer *t, struct proc *proc, int status)
{
    int sig = WSTOPSIG(status);
    int event = status >> 16;

    if (proc->is_new && sig == SIGSTOP) { /* the kernel's, for a new child */
        proc->is_new = false;
        proc->is_held = !proc->role[0];
        if (!proc->is_held)
            go_on(t, proc, 0);
        return;
    }
    if (sig == (SIGTRAP | 0x80))
        on_syscall(t, proc);
    else if (event == PTRACE_EVENT_EXEC)
        on_exec(t, proc);
    else if (event)
        on_child(t, proc);
    go_on(t, proc, event || sig == (SIGTRAP | 0x80) ? 0 : sig);
}

static void follow(struct tracer *t)
{
    int status;

    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR && !is_late)
            continue;
        if (pid < 0) {
            t->run->is_hung = errno == EINTR && !t->has_ended;
            return; /* late, or no process is left */
        }
        struct proc *proc = find(t, pid);
        if (!proc)
            proc = add(t, pid); /* a child that stops before its parent's event */
        if (WIFSTOPPED(status)) {
            on_stop(t, proc, status);
            continue;
        }
        proc->pid = 0;
        if (pid == t->carrel) {
            t->run->status = status;
            t->has_ended = true;
            (void)alarm(HANG_SECONDS); /* for the rest to exit */
        }
    }
}

/* Kills what did not exit by itself. */
static void end_rest(struct tracer *t)
{
    struct run *run = t->run;
    size_t len = 0;

    for (size_t i = 0; i < MAX_PROCS; i++) {
        const struct proc *proc = &t->procs[i];
        if (proc->pid == 0)
            continue;
        run->n_left++;
        if (len < sizeof(run->left))
            len += (size_t)snprintf(
                    run->left + len, sizeof(run->left) - len, " %s", proc->role);
        (void)kill(proc->pid, SIGKILL);
    }
    for (size_t i = 0; i < MAX_PROCS; i++)
        if (t->procs[i].pid)
            (void)waitpid(t->procs[i].pid, NULL, __WALL);
}

/* ---- one run --------------------------------------------------------------------------------
 */

static _Noreturn void become_carrel(char *const *argv, int out, int err)
{
    int null = open("/dev/null", O_RDONLY);

    if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 ||
            close_range(3, ~0U, 0) < 0 || ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(99);
    (void)raise(SIGSTOP); /* until the options are set */
    execv(argv[0], argv);
    _exit(99);
}

static void start(struct tracer *t, char *const *argv, int out, int err)
{
    const unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE |
                                  PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                                  PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    int status;

    t->carrel = fork();
    if (t->carrel < 0)
        die("fork");
    if (t->carrel == 0)
        become_carrel(argv, out, err);
    struct proc *proc = add(t, t->carrel);
    proc->role[0] = '0';
    proc->is_new = false;
    if (waitpid(t->carrel, &status, __WALL) < 0 || !WIFSTOPPED(status) ||
            ptrace(PTRACE_SETOPTIONS, t->carrel, NULL, options) < 0)
        die("trace");
    go_on(t, proc, 0);
}

static void take_text(FILE *file, char *text, size_t size)
{
    rewind(file);
    size_t n = fread(text, 1, size - 1, file);
    text[n] = '\0';
    (void)fclose(file);
}

void trace_begin(void)
{
    const struct sigaction late = { .sa_handler =
                                            on_alarm }; /* waitpid must not be restarted */

    /* Orphans become our children, so that we see which processes outlive carrel. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || sigaction(SIGALRM, &late, NULL) < 0)
        die("prepare");
}

void trace_run(
        char *const *argv, const struct fault *fault, struct run *run, struct trace *record)
{
    static struct tracer t;
    FILE *out = tmpfile();
    FILE *err = tmpfile();

    if (!out || !err)
        die("temporary file");
    *run = (struct run){ .status = -1 };
    t = (struct tracer){ .fault = fault, .record = record, .run = run };
    is_late = 0;
    (void)alarm(HANG_SECONDS);
    start(&t, argv, fileno(out), fileno(err));
    follow(&t);
    (void)alarm(0);
    end_rest(&t);
    take_text(out, run->out, sizeof(run->out));
    take_text(err, run->err, sizeof(run->err));
}
