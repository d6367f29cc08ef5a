/* programs.c - see programs.h. */
#include "runtime/programs.h"
#include "base/clock.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

struct program *programs_place(struct programs *programs)
{
    for (size_t i = 0; i < programs->n; i++)
        if (!programs->all[i].pid)
            return &programs->all[i];
    return programs->n < PROGRAMS_MOST ? &programs->all[programs->n++] : NULL;
}

uint32_t programs_add(struct programs *programs, struct program *place, pid_t pid, bool is_last)
{
    programs->is_alone = false;
    programs->n_running++;
    *place = (struct program){
        .pid = pid,
        .id = ++programs->last_id,
        .is_last = is_last,
    };
    return place->id;
}

struct program *programs_find(struct programs *programs, uint32_t id)
{
    for (size_t i = 0; i < programs->n; i++) {
        struct program *p = &programs->all[i];
        if (p->pid && p->id == id)
            return p->has_ended ? NULL : p; /* its report is not sent yet */
    }
    return NULL;
}

void programs_reported(struct program *program)
{
    if (program->kill_ns)
        program->is_reported = true;
    else
        *program = (struct program){ 0 };
}

/*
 * A process was reaped, or is left for now. If the host started it, its exit will be reported.
 */
static void note_end(struct programs *programs, pid_t pid, int status)
{
    for (size_t i = 0; i < programs->n; i++) {
        struct program *p = &programs->all[i];
        if (p->pid != pid || p->has_ended)
            continue;
        p->has_ended = true;
        p->status = status;
        programs->is_over = programs->is_over || p->is_last;
        programs->n_running--;
        return;
    } /* else it is an orphan */
}

static bool has_ended(pid_t pid, int *status)
{
    siginfo_t info = { 0 };

    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != pid)
        return false;
    *status = info.si_code == CLD_EXITED   ? (info.si_status & 0xff) << 8
              : info.si_code == CLD_DUMPED ? info.si_status | WCOREFLAG
                                           : info.si_status;
    return true;
}

/*
 * A group that is still to be killed has the pid of its leader. As long as the leader is not
 * reaped, the pid is not reused; so it is left, and all other orphans wait with it, because
 * wait4() cannot exclude one process.
 */
static void reap_started(struct programs *programs)
{
    int status;

    for (size_t i = 0; i < programs->n; i++) {
        const struct program *p = &programs->all[i];
        if (!p->pid || p->has_ended)
            continue;
        if (p->kill_ns ? has_ended(p->pid, &status)
                       : wait4(p->pid, &status, WNOHANG, NULL) == p->pid)
            note_end(programs, p->pid, status);
    }
}

void programs_reap(struct programs *programs)
{
    int status;
    pid_t pid;

    if (programs_next_kill(programs) != CLOCK_NEVER) {
        reap_started(programs);
        return;
    }
    while ((pid = wait4(-1, &status, WNOHANG, NULL)) > 0)
        note_end(programs, pid, status);
    programs->is_alone = pid < 0;
}

void programs_terminate(struct program *program, uint64_t kill_ns)
{
    if (program->kill_ns)
        return;
    program->kill_ns = kill_ns;
    (void)kill(-program->pid, SIGTERM);
}

uint64_t programs_next_kill(const struct programs *programs)
{
    uint64_t next = CLOCK_NEVER;

    for (size_t i = 0; i < programs->n; i++)
        if (programs->all[i].kill_ns && programs->all[i].kill_ns < next)
            next = programs->all[i].kill_ns;
    return next;
}

/* Leaders that have exited are reaped after that. */
void programs_kill(struct programs *programs)
{
    const uint64_t now = clock_ns();

    for (size_t i = 0; i < programs->n; i++) {
        struct program *p = &programs->all[i];
        if (!p->kill_ns || p->kill_ns > now)
            continue;
        (void)kill(-p->pid, SIGKILL);
        p->kill_ns = 0;
        if (p->has_ended)
            (void)wait4(p->pid, NULL, WNOHANG, NULL);
        if (p->is_reported)
            *p = (struct program){ 0 };
    }
}

/* No new process can escape: fork fails in a process with SIGKILL pending. */
void programs_end(struct programs *programs, void (*kill_all)(struct programs *))
{
    int status;

    while (!programs->is_alone) {
        kill_all(programs);
        pid_t pid = wait4(-1, &status, __WALL, NULL);
        programs->is_alone = pid < 0 && errno == ECHILD;
        if (pid > 0) {
            note_end(programs, pid, status);
            programs_reap(programs); /* others that were killed at the same time */
        }
    }
    for (size_t i = 0; i < programs->n; i++)
        programs->all[i].kill_ns = 0; /* the group no longer exists */
}
