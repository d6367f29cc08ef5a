/* cgroup_limits.c - see cgroup_limits.h. */
#include "runtime/local/cgroup/cgroup_limits.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/local/cgroup/cgroup.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU_PERIOD_US 100000U

/*
 * v1 counts TCP and UDP buffers beside the memory, not in it. They get this part of the memory
 * limit, on top of it: enough to work, and little enough to ignore in the sum.
 */
#define SOCKETS_SHARE 16

struct setting {
    enum limit limit;
    enum cgroup_controller controller;
    const char *v1;
    const char *v2;   /* NULL: counted in any case */
    bool is_optional; /* a kernel without swap accounting has no such file */
};

enum { SET_MEMORY, SET_SWAP, SET_SOCKETS, SET_PIDS, SET_CPU, SETTINGS };

/* Swap comes after memory: v1 refuses a sum that is smaller than its part. */
static const struct setting settings[SETTINGS] = {
    [SET_MEMORY] = { LIMIT_MEMORY, CGROUP_MEMORY, "memory.limit_in_bytes", "memory.max",
            false },
    [SET_SWAP] = { LIMIT_MEMORY, CGROUP_MEMORY, "memory.memsw.limit_in_bytes",
            "memory.swap.max", true },
    /* v1 counts them only if there is a limit. */
    [SET_SOCKETS] = { LIMIT_MEMORY, CGROUP_MEMORY, "memory.kmem.tcp.limit_in_bytes", NULL,
            true },
    [SET_PIDS] = { LIMIT_PIDS, CGROUP_PIDS, "pids.max", "pids.max", false },
    [SET_CPU] = { LIMIT_CPU, CGROUP_CPU, "cpu.cfs_quota_us", "cpu.max", false },
};

struct values {
    char text[SETTINGS][48];
};

static void format(
        const struct cgroup *group, const struct sandbox_limits *limits, struct values *values)
{
    const bool is_v1 = group->version == CGROUP_V1;
    const size_t size = sizeof(values->text[0]);
    uint64_t quota = limits->value[LIMIT_CPU] * CPU_PERIOD_US / 1000;
    uint64_t memory = limits->value[LIMIT_MEMORY];

    (void)snprintf(values->text[SET_MEMORY], size, "%" PRIu64, memory);
    (void)snprintf(values->text[SET_SWAP], size, "%" PRIu64, is_v1 ? memory : 0);
    (void)snprintf(values->text[SET_SOCKETS], size, "%" PRIu64, memory / SOCKETS_SHARE);
    /* init counts too, and does not belong to the program */
    (void)snprintf(values->text[SET_PIDS], size, "%" PRIu64, limits->value[LIMIT_PIDS] + 1);
    if (is_v1)
        (void)snprintf(values->text[SET_CPU], size, "%" PRIu64, quota);
    else
        (void)snprintf(values->text[SET_CPU], size, "%" PRIu64 " %u", quota, CPU_PERIOD_US);
}

static int parent_of(const struct cgroup *group, size_t i)
{
    return group->parent[group->version == CGROUP_V1 ? settings[i].controller : 0];
}

static const char *file_of(const struct cgroup *group, size_t i)
{
    return group->version == CGROUP_V1 ? settings[i].v1 : settings[i].v2;
}

static int write_setting(
        const struct cgroup *group, size_t i, const char *text, struct carrel_error *err)
{
    char path[128];

    if (!file_of(group, i))
        return 0;
    (void)snprintf(path, sizeof(path), "%s/%s", group->name, file_of(group, i));
    int r = fd_write_file(parent_of(group, i), path, text);
    if (r == 0 || (settings[i].is_optional && r == -ENOENT))
        return 0;
    return err_set_errno(err, r, "write '%s' to %s of the cgroup", text, file_of(group, i));
}

int cgroup_set_limits(const struct cgroup *group, const struct sandbox_limits *limits,
        struct carrel_error *err)
{
    struct values values;
    int r = 0;

    format(group, limits, &values);
    for (size_t i = 0; r == 0 && i < SETTINGS; i++)
        r = write_setting(group, i, values.text[i], err);
    return r;
}

/* An optional file that does not exist reads as empty. */
static int read_settings(
        const struct cgroup *group, struct values *values, struct carrel_error *err)
{
    char path[128];

    for (size_t i = 0; i < SETTINGS; i++) {
        char *text = values->text[i];
        text[0] = '\0';
        if (!file_of(group, i))
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", group->name, file_of(group, i));
        ssize_t n = fd_read_file(parent_of(group, i), path, text, sizeof(values->text[i]));
        if (n < 0 && !(settings[i].is_optional && n == -ENOENT))
            return err_set_errno(err, (int)n, "read %s of the cgroup", file_of(group, i));
        text[n < 0 ? 0 : strcspn(text, "\n")] = '\0';
    }
    return 0;
}

static uint64_t memory_in_use(const struct cgroup *group)
{
    char path[128];
    char text[32];

    (void)snprintf(path, sizeof(path), "%s/%s", group->name,
            group->version == CGROUP_V1 ? "memory.usage_in_bytes" : "memory.current");
    if (fd_read_file(group->parent[0], path, text, sizeof(text)) <= 0)
        return 0;
    return strtoull(text, NULL, 10);
}

static int too_much_in_use(
        const struct cgroup *group, uint64_t memory, struct carrel_error *err)
{
    return err_set(err, -EBUSY,
            "%" PRIu64 " bytes of memory are in use, more than a limit of %" PRIu64 " allows",
            memory_in_use(group), memory);
}

/*
 * v1 refuses a limit below the current usage. v2 accepts it and kills until it fits: there we
 * reclaim the difference first, and refuse instead.
 */
static int make_room(const struct cgroup *group, uint64_t memory, struct carrel_error *err)
{
    char path[128];
    char text[32];
    uint64_t used = memory_in_use(group);

    if (group->version == CGROUP_V1 || used <= memory)
        return 0;
    (void)snprintf(path, sizeof(path), "%s/memory.reclaim", group->name);
    (void)snprintf(text, sizeof(text), "%" PRIu64, used - memory);
    (void)fd_write_file(group->parent[0], path, text); /* since 5.19; only the outcome counts */
    return memory_in_use(group) > memory ? too_much_in_use(group, memory, err) : 0;
}

/* If the sum grows, it is written first, so that it is never smaller than its part. */
static void choose_order(
        const struct cgroup *group, const struct values *before, uint64_t memory, size_t *order)
{
    for (size_t i = 0; i < SETTINGS; i++)
        order[i] = i;
    if (group->version == CGROUP_V1 && memory > strtoull(before->text[SET_MEMORY], NULL, 10)) {
        order[0] = SET_SWAP;
        order[1] = SET_MEMORY;
    }
}

int cgroup_update_limits(const struct cgroup *group, const struct sandbox_limits *limits,
        unsigned which, struct carrel_error *err)
{
    const uint64_t memory = limits->value[LIMIT_MEMORY];
    struct values before;
    struct values after;
    size_t order[SETTINGS];
    size_t done = 0;

    int r = read_settings(group, &before, err);
    if (r == 0 && (which & LIMIT_BIT(LIMIT_MEMORY)))
        r = make_room(group, memory, err);
    if (r < 0)
        return r;
    format(group, limits, &after);
    choose_order(group, &before, memory, order);
    for (; r == 0 && done < SETTINGS; done++) {
        size_t i = order[done];
        if (which & LIMIT_BIT(settings[i].limit))
            r = write_setting(group, i, after.text[i], err);
        if (r == -EBUSY && settings[i].limit == LIMIT_MEMORY)
            r = too_much_in_use(group, memory, err);
    }
    while (r < 0 && done-- > 0) {
        size_t i = order[done];
        if ((which & LIMIT_BIT(settings[i].limit)) && before.text[i][0])
            (void)write_setting(group, i, before.text[i], NULL); /* the old value: must fit */
    }
    return r;
}
