/* health.c - trying a default run as two kinds of users. */
#include "core/host/health.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "core/result/result.h"
#include <assert.h>
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALL_PROTECTIONS (PROTECT_BIT(PROTECT_COUNT) - 1)
#define RUN_TIMEOUT_MS 20000

const char *health_user_name(enum health_user user)
{
    static const char *const names[] = { "root", "rootless" };

    assert(user < ARRAY_LEN(names));
    return names[user];
}

enum health_state health_state(const struct health_view *view, enum protection p)
{
    if (view->works & PROTECT_BIT(p))
        return HEALTH_WORKS;
    return view->missing & PROTECT_BIT(p) ? HEALTH_MISSING : HEALTH_UNKNOWN;
}

/* A default run: that it comes to its end shows more than any list of kernel features. */
static void try_run(struct health_view *view)
{
    static const char *const argv[] = { "true", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;

    options.argv = argv;
    options.timeout_ms = RUN_TIMEOUT_MS;
    options.journal = CARREL_JOURNAL_OFF; /* an ordinary user below has no directory for one */
    if (carrel_run(&options, &result, &view->error) < 0)
        return;
    view->is_able = carrel_run_result_status(result) == 0;
    if (view->is_able) {
        view->works = result->protections;
        memcpy(view->held_by, result->held_by, sizeof(view->held_by));
    } else {
        (void)err_set(&view->error, -EIO, "'true' ended with status %d in the sandbox: %s",
                carrel_run_result_status(result), carrel_run_result_message(result));
    }
    carrel_run_result_free(result);
}

static void look(struct health_view *view)
{
    struct runtime *runtime;
    struct carrel_error err = { 0 };

    view->is_known = true;
    view->uid = geteuid();
    try_run(view);
    view->missing = view->is_able ? ALL_PROTECTIONS & ~view->works : 0;
    int r = runtime_find("local", &runtime, &err);
    if (r == 0)
        r = runtime_health(runtime, ALL_PROTECTIONS & ~view->works, &view->found, &err);
    if (r < 0 && view->is_able)
        view->error = err; /* else the first failure is the one to report */
    view->works |= view->found.works;
    for (size_t i = 0; i < view->found.n_gaps; i++)
        view->missing |= view->found.gaps[i].set & ~view->works;
}

/*
 * Gives up root for good. The id is one that no process has: a process with the same id could
 * look into us, since we must stay readable to ourselves (/proc/self) to map ids. Where a
 * container has no such id, the last resort is nobody; so nothing of the caller's is kept in
 * either case.
 */
static int become_ordinary_user(struct carrel_error *err)
{
    static const id_t ids[] = { 0x0fffffff, 65534 };
    size_t i;

    for (char **entry = environ; entry && *entry; entry++)
        explicit_bzero(*entry, strlen(*entry));
    (void)clearenv();
    if (chdir("/") < 0 || setgroups(0, NULL) < 0)
        return err_set_errno(err, -errno, "become an ordinary user");
    for (i = 0; i < ARRAY_LEN(ids); i++)
        if (setresgid(ids[i], ids[i], ids[i]) == 0 && setresuid(ids[i], ids[i], ids[i]) == 0)
            break;
    if (i == ARRAY_LEN(ids))
        return err_set_errno(err, -errno, "become an ordinary user");
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
        return err_set_errno(err, -errno, "prctl");
    return 0;
}

static _Noreturn void look_as_ordinary_user(int out)
{
    struct health_view view = { 0 };

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (dup3(out, 3, O_CLOEXEC) < 0 && out != 3)
        _exit(1);
    if (syscall(SYS_close_range, 4U, ~0U, 0U) < 0)
        _exit(1);
    if (become_ordinary_user(&view.error) == 0)
        look(&view);
    _exit(fd_write_all(3, &view, sizeof(view)) < 0);
}

static int ask_child(struct health_view *view, struct carrel_error *err)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "pipe");
    AUTO(fd_close) int in = pair[0];
    AUTO(fd_close) int out = pair[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_set_errno(err, -errno, "fork");
    if (pid == 0)
        look_as_ordinary_user(out);
    fd_close(fd_steal(&out));
    struct health_view got;
    ssize_t n = fd_read_all(in, &got, sizeof(got));
    (void)waitpid(pid, NULL, 0); /* what it had to say is in the pipe */
    if (n != (ssize_t)sizeof(got))
        return err_set(err, -EIO, "the child that became an ordinary user ended early");
    *view = got;
    return 0;
}

void health_check(struct health *health)
{
    *health = (struct health){ .caller = geteuid() == 0 ? HEALTH_ROOT : HEALTH_ROOTLESS };
    struct health_view *views = health->views;

    look(&views[health->caller]);
    if (health->caller == HEALTH_ROOT)
        (void)ask_child(&views[HEALTH_ROOTLESS], &views[HEALTH_ROOTLESS].error);
    else
        (void)err_set(&views[HEALTH_ROOT].error, -EPERM, "run as root to see");
}

static void write_set(struct json *json, const char *key, uint64_t set)
{
    json_array(json, key);
    for (enum protection p = 0; p < PROTECT_COUNT; p++)
        if (set & PROTECT_BIT(p))
            json_str(json, NULL, protection_name(p));
    json_end_array(json);
}

static void write_view(struct json *json, const char *key, const struct health_view *view)
{
    json_object(json, key);
    json_bool(json, "known", view->is_known);
    json_bool(json, "ok", view->is_able);
    json_str(json, "error", view->error.message[0] ? view->error.message : NULL);
    if (view->is_known)
        json_u64(json, "uid", view->uid);
    else
        json_null(json, "uid");
    write_set(json, "works", view->works);
    json_array(json, "missing");
    for (size_t i = 0; i < view->found.n_gaps; i++) {
        const struct health_gap *gap = &view->found.gaps[i];
        json_object(json, NULL);
        write_set(json, "protections", gap->set);
        json_str(json, "why", gap->why);
        json_str(json, "remedy", gap->remedy);
        json_end_object(json);
    }
    json_end_array(json);
    json_object(json, "held_by");
    for (enum limit i = 0; view->is_able && i < LIMIT_OPTIONAL; i++)
        json_str(json, limit_name(i), limit_holder_name(view->held_by[i]));
    json_end_object(json);
    json_object(json, "facts");
    for (size_t i = 0; i < view->found.n_facts; i++)
        json_str(json, view->found.facts[i].name, view->found.facts[i].value);
    json_end_object(json);
    json_end_object(json);
}

static void write_protection(struct json *json, const struct health *health, enum protection p)
{
    json_object(json, NULL);
    json_str(json, "name", protection_name(p));
    json_str(json, "meaning", protection_meaning(p));
    for (enum health_user user = 0; user < HEALTH_USERS; user++) {
        enum health_state state = health_state(&health->views[user], p);
        if (state == HEALTH_UNKNOWN)
            json_null(json, health_user_name(user));
        else
            json_bool(json, health_user_name(user), state == HEALTH_WORKS);
    }
    json_end_object(json);
}

void health_write_json(const struct health *health, struct buf *out)
{
    struct json json = { .out = out };

    json_object(&json, NULL);
    json_bool(&json, "ok", health->views[health->caller].is_able);
    json_str(&json, "version", CARREL_VERSION);
    json_str(&json, "caller", health_user_name(health->caller));
    json_array(&json, "protections");
    for (enum protection p = 0; p < PROTECT_COUNT; p++)
        write_protection(&json, health, p);
    json_end_array(&json);
    for (enum health_user user = 0; user < HEALTH_USERS; user++)
        write_view(&json, health_user_name(user), &health->views[user]);
    json_end_object(&json);
}
