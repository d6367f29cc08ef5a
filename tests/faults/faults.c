/*
 * faults.c - makes each system call of carrel's setup fail in turn, and checks the result.
 *
 * usage: faults [-e ERROR[,ERROR]] [-k] [-j JOBS] [-s PART/PARTS] [-o CALL] [-l] [-v]
 *               -- CARREL run OPTION... PROGRAM
 *
 *   -e    the errors to inject: EPERM (default), ENOMEM, EINTR ... (see calls.c)
 *   -k    instead of an error, kill -9 carrel when it, or a child, enters the call
 *   -j    so many at once
 *   -s    every PARTS-th fault, beginning with PART: a sample
 *   -o    only this call, as a breach names it: "0.2 mkdirat 3"
 *   -l    only list the calls
 *   -v    print the result of every fault
 *
 * The setup is what happens between carrel's first call and the execution of the program. At
 * that moment the program's confinement is read from outside. A first run without a fault is
 * the reference. For a run with one, either
 *
 *   - carrel refuses: status 125, one line "carrel: ...", and no program was executed, or
 *   - the program was executed, and its confinement and what the result claims are identical
 *     to the first run;
 *
 * and when carrel has exited, no process is left. Calls that confine may not fail without a
 * refusal even if no difference is visible. Prints one line for each breach, and a sum.
 */
#include "calls.h"
#include "trace.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTEMPTS 5 /* for a call that did not occur as in the first run */

/* ---- judging --------------------------------------------------------------------------------
 */

/* The part of the result that states the promises. */
static const char *claims(const struct run *run, char *text, size_t size)
{
    const char *protections = strstr(run->out, "\"protections\":");
    const char *held = strstr(run->out, "\"held_by\":");
    size_t a = protections ? strcspn(protections, "]") : 0;
    size_t b = held ? strcspn(held, "}") : 0;

    (void)snprintf(text, size, "%.*s %.*s", (int)a, protections ? protections : "", (int)b,
            held ? held : "");
    return text;
}

/* Without the note that a rootless run adds. */
static void drop_note(char *text)
{
    char *note = strstr(text, "carrel: note: ");

    if (!note)
        return;
    const char *end = strchr(note, '\n');
    const char *rest = end ? end + 1 : "";
    memmove(note, rest, strlen(rest) + 1);
}

static bool is_one_line(const char *text)
{
    const char *newline = strchr(text, '\n');

    return strncmp(text, "carrel: ", 8) == 0 && newline && newline[1] == '\0';
}

static void first_difference(const char *want, const char *got, char *text, size_t size)
{
    size_t a = 0;
    size_t b = 0;

    while (*want && *got) {
        a = strcspn(want, "\n");
        b = strcspn(got, "\n");
        if (a != b || strncmp(want, got, a) != 0)
            break;
        want += a + (want[a] == '\n');
        got += b + (got[b] == '\n');
    }
    a = strcspn(want, "\n");
    b = strcspn(got, "\n");
    (void)snprintf(text, size, "'%.*s' instead of '%.*s'", (int)(b < 80 ? b : 80), got,
            (int)(a < 80 ? a : 80), want);
}

/* In carrel or in init's branch: other children only help to prepare. */
static bool is_confining(const struct run *right, const struct fault *fault)
{
    const struct call *at = fault->at;
    size_t branch = 2 + strspn(right->program + 2, "0123456789");

    if (!call_must_refuse(at->number, fault->error))
        return false;
    if (strcmp(at->role, "0") == 0)
        return at->number != SYS_prlimit64; /* it asks for its own */
    return strncmp(at->role, right->program, branch) == 0 &&
           (at->role[branch] == '\0' || at->role[branch] == '.');
}

static const char *judge_refusal(const struct run *run, const struct fault *fault)
{
    static char text[600];
    int code = WIFEXITED(run->status) ? WEXITSTATUS(run->status) : 128;
    bool is_exec = fault->at->number == SYS_execve; /* only then 126 and 127 are valid */

    if (code == 125 || (is_exec && (code == 126 || code == 127))) {
        if (is_one_line(run->err))
            return NULL;
        (void)snprintf(text, sizeof(text), "not one line on stderr: '%.300s'", run->err);
    } else {
        (void)snprintf(text, sizeof(text), "refused with status %d: %.300s", code, run->err);
    }
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static const char *judge_program(
        const struct run *run, const struct run *right, const struct fault *fault)
{
    static char text[1500];
    char a[2048];
    char b[2048];

    if (strcmp(run->confinement, right->confinement) != 0) {
        first_difference(right->confinement, run->confinement, a, sizeof(a));
        (void)snprintf(text, sizeof(text), "WEAKER: %.400s", a);
        return text;
    }
    if (run->status == 0 &&
            strcmp(claims(run, a, sizeof(a)), claims(right, b, sizeof(b))) != 0) {
        (void)snprintf(text, sizeof(text), "claims %.700s instead of %.700s", a, b);
        return text;
    }
    return is_confining(right, fault) ? "ran, though this failed" : NULL;
}

/* Returns what is wrong, or NULL. */
static const char *judge(struct run *run, const struct run *right, const struct fault *fault)
{
    static char text[400];

    drop_note(run->err);
    if (run->is_hung)
        return "carrel hangs";
    if (run->n_left) {
        (void)snprintf(text, sizeof(text), "processes are left:%s", run->left);
        return text;
    }
    if (!run->has_fired || fault->error == 0)
        return NULL; /* killed, and nothing is left */
    return run->has_run ? judge_program(run, right, fault) : judge_refusal(run, fault);
}

/* ---- all of them ----------------------------------------------------------------------------
 */

struct options {
    const char *errors;
    bool is_killing;
    bool is_listing;
    bool is_loud;
    const char *only;
    unsigned jobs;
    unsigned part;
    unsigned parts;
    char **argv;
};

static _Noreturn void usage(void)
{
    (void)fprintf(stderr, "usage: faults [options] -- CARREL run ... PROGRAM; see faults.c\n");
    exit(2);
}

static struct options parse(int argc, char **argv)
{
    struct options o = { .errors = "EPERM", .jobs = 1, .part = 0, .parts = 1 };
    int c;

    while ((c = getopt(argc, argv, "+e:j:klo:s:v")) >= 0) {
        if (c == 'e')
            o.errors = optarg;
        else if (c == 'j' && sscanf(optarg, "%u", &o.jobs) == 1 && o.jobs > 0)
            continue;
        else if (c == 'k')
            o.is_killing = true;
        else if (c == 'l')
            o.is_listing = true;
        else if (c == 'o')
            o.only = optarg;
        else if (c == 's' && sscanf(optarg, "%u/%u", &o.part, &o.parts) == 2 && o.parts > 0)
            continue;
        else if (c == 'v')
            o.is_loud = true;
        else
            usage();
    }
    o.argv = argv + optind;
    if (!*o.argv)
        usage();
    return o;
}

/* Shared by the jobs. */
struct sums {
    atomic_uint tried;
    atomic_uint missed;
    atomic_uint breaches;
};

static void try_one(const struct options *o, const struct run *right, const struct fault *fault,
        const char *error, struct sums *sums)
{
    static struct run run;

    for (int i = 0; i < ATTEMPTS && !run.has_fired; i++) {
        free(run.confinement);
        trace_run(o->argv, fault, &run, NULL);
    }
    const char *wrong = judge(&run, right, fault);
    const char *came = !run.has_fired ? "did not come to it" : run.has_run ? "ran" : "refused";
    if (wrong || o->is_loud)
        (void)printf("%s: %s %s %u: %s: %s%s%s", wrong ? "BREACH" : "fine", fault->at->role,
                call_name(fault->at->number), fault->at->index, error, wrong ? wrong : came,
                wrong || !run.err[0] ? "\n" : ": ", wrong ? "" : run.err);
    (void)fflush(stdout);
    sums->tried++;
    sums->missed += run.has_fired ? 0 : 1;
    sums->breaches += wrong ? 1 : 0;
    free(run.confinement);
    run = (struct run){ 0 };
}

static bool is_wanted(const struct options *o, const struct call *call)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "%.20s %.40s %u", call->role, call_name(call->number),
            call->index);
    if (o->only)
        return strcmp(o->only, text) == 0;
    return o->is_killing || !call_cannot_fail(call->number);
}

/* The share of one job: every o->jobs-th of those in the sample. */
static void work(const struct options *o, const struct run *right, const struct trace *trace,
        unsigned job, struct sums *sums)
{
    unsigned n = 0;

    for (size_t i = 0; i < trace->n; i++) {
        struct fault fault = { .at = &trace->calls[i] };
        if (!is_wanted(o, fault.at))
            continue;
        for (const char *name = o->is_killing ? "KILL" : o->errors; *name; n++) {
            size_t len = strcspn(name, ",");
            char error[16];
            (void)snprintf(error, sizeof(error), "%.*s", (int)len, name);
            fault.error = o->is_killing ? 0 : error_number(name, len);
            if (n % o->parts == o->part && n / o->parts % o->jobs == job)
                try_one(o, right, &fault, error, sums);
            name += len + (name[len] == ',');
        }
    }
}

static int try_all(const struct options *o, const struct run *right, const struct trace *trace)
{
    struct sums *sums = mmap(
            NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0;
    int status;

    if (sums == MAP_FAILED)
        return 2;
    for (unsigned job = 0; job < o->jobs; job++) {
        pid_t pid = fork();
        if (pid < 0)
            return 2;
        if (pid == 0) {
            trace_begin();
            work(o, right, trace, job, sums);
            _exit(0);
        }
    }
    while (wait(&status) > 0)
        failed |= status;
    (void)printf("%u faults in %zu calls, %u not reached, %u breaches\n", sums->tried, trace->n,
            sums->missed, sums->breaches);
    return failed ? 2 : sums->breaches ? 1 : 0;
}

int main(int argc, char **argv)
{
    static struct run right;
    static struct trace trace;
    const struct fault none = { 0 };
    const struct options o = parse(argc, argv);

    for (const char *name = o.errors; *name; name += strcspn(name, ","), name += *name == ',')
        if (error_number(name, strcspn(name, ",")) == 0)
            usage();
    trace_begin();
    trace_run(o.argv, &none, &right, &trace);
    if (!right.has_run || right.status != 0) {
        (void)fprintf(stderr, "faults: without a fault it does not run: %s\n", right.err);
        return 2;
    }
    if (o.is_loud)
        (void)printf("%s", right.confinement);
    (void)fflush(stdout); /* or each job would print it again */
    if (!o.is_listing)
        return try_all(&o, &right, &trace);
    for (size_t i = 0; i < trace.n; i++)
        (void)printf("%s %s %u\n", trace.calls[i].role, call_name(trace.calls[i].number),
                trace.calls[i].index);
    return 0;
}
