/* text.c - descriptions of the sandbox, as JSON. */
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/kernel.h"
#include "core/keeper/keeper.h"
#include "core/run/run.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LISTED 4096
#define NS_PER_MS UINT64_C(1000000)

static void write_labels(const struct keeper *keeper, struct json *json)
{
    json_object(json, "labels");
    for (size_t i = 0; keeper->labels && keeper->labels[i]; i++) {
        const char *label = keeper->labels[i];
        char key[128];
        size_t len = strcspn(label, "=");
        if (len >= sizeof(key))
            continue; /* create refuses such a label */
        memcpy(key, label, len);
        key[len] = '\0';
        json_str(json, key, label[len] ? label + len + 1 : "");
    }
    json_end_object(json);
}

/* Facts that do not change. */
static void write_facts(const struct keeper *keeper, struct json *json)
{
    const struct session *session = &keeper->session;
    const struct carrel_run_result *result = session->result;
    char now[CLOCK_STAMP];

    clock_stamp_now(now);
    json_str(json, "id", keeper->entry->id);
    json_str(json, "name", keeper->name[0] ? keeper->name : NULL);
    write_labels(keeper, json);
    json_str(json, "run", result->run);
    json_str(json, "task", result->task[0] ? result->task : NULL);
    json_str(json, "created", keeper->created);
    json_u64(json, "pid", (uint64_t)getpid());
    json_str(json, "root", session->options->root);
    json_str(json, "image", session->options->image);
    json_str(json, "runtime", result->runtime);
    json_str(json, "isolation", isolation_name(result->isolation));
    json_str(json, "workspace", session->worktree ? session->worktree->ws->path : NULL);
    json_str(json, "policy_sha256",
            session->request->policy ? policy_hash(session->request->policy) : NULL);
    result_write_protections(result, json);
    result_write_limits(result, json);
}

void keeper_write_record(const struct keeper *keeper, struct buf *out)
{
    struct json json = { .out = out };

    json_object(&json, NULL);
    write_facts(keeper, &json);
    json_end_object(&json);
}

static void write_ms(struct json *json, const char *key, uint64_t end_ns, uint64_t now_ns)
{
    if (end_ns == 0)
        json_null(json, key);
    else
        json_u64(json, key, end_ns > now_ns ? (end_ns - now_ns) / NS_PER_MS : 0);
}

/* The usage of a sandbox in which nothing ran yet is unknown. */
static void sum(uint64_t *to, uint64_t more)
{
    if (more != USAGE_UNKNOWN)
        *to = *to == USAGE_UNKNOWN ? more : *to + more;
}

static void peak(uint64_t *to, uint64_t other)
{
    if (other != USAGE_UNKNOWN && (*to == USAGE_UNKNOWN || other > *to))
        *to = other;
}

void keeper_add_usage(const struct keeper *keeper, struct sandbox_usage *usage)
{
    const struct sandbox_usage *before = &keeper->before;

    sum(&usage->cpu_ms, before->cpu_ms);
    sum(&usage->written_bytes, before->written_bytes);
    sum(&usage->oom_kills, before->oom_kills);
    sum(&usage->pids_refused, before->pids_refused);
    peak(&usage->peak_memory_bytes, before->peak_memory_bytes);
    peak(&usage->peak_pids, before->peak_pids);
    usage->is_disk_full = usage->is_disk_full || before->is_disk_full;
}

void keeper_write_state(struct keeper *keeper, struct buf *out)
{
    struct json json = { .out = out };
    struct carrel_run_result *result = keeper->session.result;

    result->usage = USAGE_INIT;
    (void)sandbox_usage(keeper->session.box, &result->usage, NULL); /* else unknown */
    keeper_add_usage(keeper, &result->usage);
    json_object(&json, NULL);
    write_facts(keeper, &json);
    json_str(&json, "state", keeper->is_paused ? "paused" : "running");
    json_str(&json, "paused_by", keeper->session.box->paused_by);
    write_ms(&json, "lease_ms", keeper->lease_end_ns, clock_boot_ns());
    if (keeper->idle_ms)
        json_u64(&json, "idle_ms", keeper->idle_ms);
    else
        json_null(&json, "idle_ms");
    json_u64(&json, "processes", keeper_count_running(keeper));
    json_u64(&json, "started", keeper->n_starts);
    result_write_usage(result, &json);
    json_end_object(&json);
}

static const struct keeper_process *started(const struct keeper *keeper, uint32_t id)
{
    for (size_t i = 0; id && i < keeper->n_processes; i++)
        if (keeper->processes[i].id == id && !keeper->processes[i].has_ended)
            return &keeper->processes[i];
    return NULL;
}

static void write_process(
        const struct keeper *keeper, const struct sandbox_process *p, struct json *json)
{
    const char state[] = { p->state, '\0' };
    const struct keeper_process *own = started(keeper, p->process);

    json_object(json, NULL);
    json_i64(json, "pid", p->inner_pid);
    json_i64(json, "parent", p->inner_parent);
    if (p->pid)
        json_i64(json, "host_pid", p->pid);
    else
        json_null(json, "host_pid");
    if (own)
        json_u64(json, "process", own->number);
    else
        json_null(json, "process");
    json_bool(json, "detached", own && own->is_detached);
    json_u64(json, "uid", p->uid);
    json_str(json, "state", state);
    json_u64(json, "cpu_ms", p->cpu_ms);
    json_u64(json, "memory_bytes", p->memory_bytes);
    json_str(json, "name", p->comm);
    json_str(json, "command", p->command);
    json_end_object(json);
}

/* A process that has ended, and whose output and status were not fetched yet. */
static void write_ended(const struct keeper_process *p, struct json *json)
{
    json_object(json, NULL);
    json_u64(json, "process", p->number);
    json_str(json, "command", p->program);
    result_write_wait_status(p->wait_status, json);
    json_end_object(json);
}

int keeper_write_processes(struct keeper *keeper, struct buf *out, struct carrel_error *err)
{
    struct json json = { .out = out };
    struct sandbox_process *list = calloc(MAX_LISTED, sizeof(*list));

    if (!list)
        return err_set_errno(err, -ENOMEM, "list of processes");
    int n = sandbox_ps(keeper->session.box, list, MAX_LISTED, err);
    if (n < 0) {
        free(list);
        return n;
    }
    json_object(&json, NULL);
    json_array(&json, "processes");
    for (int i = 0; i < n; i++)
        write_process(keeper, &list[i], &json);
    json_end_array(&json);
    free(list);
    json_array(&json, "ended");
    for (size_t i = 0; i < keeper->n_processes; i++)
        if (keeper->processes[i].number && keeper->processes[i].has_ended)
            write_ended(&keeper->processes[i], &json);
    json_end_array(&json);
    json_end_object(&json);
    return 0;
}
