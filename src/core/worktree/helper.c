/* helper.c - start, read, wait. */
#include "core/worktree/helper.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/request/spec.h"
#include "core/state/state.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)

void helper_finish(struct helper helper)
{
    process_close(helper.process);
    sandbox_free(helper.box);
}

/* The run's limit, but at least `least`, which git needs, and at most `most`. */
static uint64_t bound(
        const struct helper_spec *spec, enum limit limit, uint64_t least, uint64_t most)
{
    const uint64_t own = spec->limits ? spec->limits[limit] : most;
    const uint64_t value = own < least ? least : own > most ? most : own;
    const uint64_t maximum = spec->maxima ? spec->maxima[limit] : 0;

    return maximum > 0 && maximum < value ? maximum : value;
}

/* The run's, which is no more than the maximum; 0: none. */
static uint64_t rate(const struct helper_spec *spec, enum limit limit)
{
    if (spec->limits && spec->limits[limit])
        return spec->limits[limit];
    return spec->maxima ? spec->maxima[limit] : 0;
}

int helper_start(const struct helper_spec *spec, unsigned timeout_ms, struct helper *out,
        struct carrel_error *err)
{
    const uint64_t own_disk = spec->disk_bytes ? spec->disk_bytes : UINT64_C(1) << 30;
    char id[20];
    AUTO(environment_free) char **env = NULL;
    AUTO(helper_finish) struct helper helper = HELPER_INIT;

    int r = state_new_id('I', id, err);
    if (r < 0)
        return r;
    const struct sandbox_spec box = {
        .id = id,
        .root = spec->root,
        .root_overlay = spec->root_overlay,
        .mounts = spec->mounts,
        .n_mounts = spec->n_mounts,
        .network = spec->network,
        .has_user = spec->has_user,
        .uid = spec->uid,
        .gid = spec->gid,
        .limits.value = {
            [LIMIT_MEMORY] = bound(spec, LIMIT_MEMORY, UINT64_C(512) << 20, UINT64_C(2) << 30),
            [LIMIT_PIDS] = bound(spec, LIMIT_PIDS, 64, 512),
            [LIMIT_CPU] = bound(spec, LIMIT_CPU, 1000, 4000),
            [LIMIT_DISK] = bound(spec, LIMIT_DISK, own_disk, own_disk),
            [LIMIT_FILES] = bound(spec, LIMIT_FILES, 1024, 1024),
            [LIMIT_IO_READ] = rate(spec, LIMIT_IO_READ),
            [LIMIT_IO_WRITE] = rate(spec, LIMIT_IO_WRITE),
        },
    };
    r = sandbox_begin(spec->runtime, &box, &helper.box, err);
    if (r == 0 && spec->has_limit)
        r = disk_add(&helper.disk, spec->limited, spec->max_bytes, err);
    if (r == 0)
        r = environment_make(helper.box, spec->env, false, &env, err);
    if (r < 0)
        return r;
    const char *argv[4 + HELPER_ARGS_MAX + 1] = { "/bin/sh", "-c", spec->script, "sh" };
    for (size_t i = 0; spec->args && spec->args[i]; i++) {
        assert(i < HELPER_ARGS_MAX);
        argv[4 + i] = spec->args[i];
    }
    const struct process_spec process = {
        .argv = argv,
        .env = (const char *const *)env,
        .ends_sandbox = true,
    };
    r = sandbox_start(helper.box, &process, &helper.process, err);
    if (r < 0)
        return r;
    helper.deadline_ns = clock_ns() + timeout_ms * NS_PER_MS;
    *out = helper;
    helper = HELPER_INIT;
    return 0;
}

static int await(struct helper *helper, int fd, struct carrel_error *err)
{
    struct pollfd wait = { .fd = fd, .events = POLLIN };

    for (;;) {
        struct disk *disk = &helper->disk;
        bool is_look = disk->next_ns < helper->deadline_ns;
        int n = clock_poll(&wait, 1, is_look ? disk->next_ns : helper->deadline_ns);
        if (n < 0 && errno != EINTR)
            return err_set_errno(err, -errno, "poll");
        if (clock_ns() >= disk->next_ns && disk_poll(disk))
            return err_set(
                    err, -EDQUOT, "git in the sandbox, or a program of its, filled the disk");
        if (n > 0)
            return 0;
        if (n == 0 && clock_ns() >= helper->deadline_ns)
            return err_set(err, -ETIMEDOUT, "git in the sandbox took too long");
    }
}

int helper_read_line(struct helper *helper, char *line, size_t size, struct carrel_error *err)
{
    for (size_t used = 0; used < size; used++) {
        int r = await(helper, helper->process.stdout_fd, err);
        if (r < 0)
            return r;
        /* Byte by byte: what follows the line is for another reader. */
        ssize_t n = read(helper->process.stdout_fd, line + used, 1);
        if (n <= 0)
            return err_set(err, -EIO, "git in the sandbox ended without an answer");
        if (line[used] == '\n') {
            line[used] = '\0';
            return 0;
        }
    }
    return err_set(err, -EPROTO, "git in the sandbox gave a wrong answer");
}

int helper_wait(struct helper *helper, struct carrel_error *err)
{
    for (;;) {
        struct sandbox_event event;
        int r = sandbox_next_event(helper->box, &event, err);
        if (r < 0)
            return r;
        if (event.kind == EVENT_GONE)
            return err_set(err, -EIO, "the sandbox for git ended by itself");
        if (event.kind == EVENT_EXITED)
            return WIFEXITED(event.wait_status)
                           ? WEXITSTATUS(event.wait_status)
                           : err_set(err, -EIO, "git in the sandbox was killed");
        r = await(helper, helper->box->event_fd, err);
        if (r < 0)
            return r;
    }
}
