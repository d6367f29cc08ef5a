/* list.h - living sandboxes and waiting requests, as a list for people and programs. */
#pragma once
#include "base/arena.h"
#include "base/json.h"
#include "registry/registry.h"
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;

#define REGISTRY_NO_END UINT64_MAX

struct registry_label {
    const char *key;
    const char *value;
};

/* Texts are as they were given: nothing is escaped. "" stands for what is not known. */
struct registry_item {
    const char *id;
    const char *name;
    const char *state; /* "running", or "dead": its owner was killed */
    const char *run;
    const char *task;
    const char *created; /* the time of day */
    const char *image;
    const char *root;
    const char *workspace;
    const char *policy_sha256;
    const struct registry_label *labels;
    size_t n_labels;
    const char *limits; /* a JSON object; "": not known */
    uint64_t age_ms;
    uint64_t lease_left_ms; /* REGISTRY_NO_END: it has none */
    uint64_t idle_left_ms;  /* REGISTRY_NO_END: it is not idle, or may be for ever */
    struct registry_status status;
    bool is_alive;
};

struct registry_query {
    const char *const *labels; /* "KEY=VALUE", or "KEY" with any value; all of them must hold */
    size_t n_labels;
    bool has_dead; /* show the dead, too; else they are removed */
};

struct registry_list {
    struct registry_item *items; /* oldest first */
    size_t n;
    struct registry_item *waiting; /* the same for those in the queue: the next one first */
    size_t n_waiting;
    struct arena arena;
};

/* A record that cannot be read, or is not there yet, leaves its fields empty. */
int registry_list_read(const struct registry *reg, const struct registry_query *query,
        struct registry_list *out, struct carrel_error *err);
void registry_list_finish(struct registry_list list);
DEFINE_AUTO(struct registry_list, registry_list_finish)

/* {"sandboxes":[...],"queue":[...]} */
void registry_list_write_json(const struct registry_list *list, struct json *json);

/* The same of one sandbox: members of the object that is open. */
void registry_item_write(const struct registry_item *item, struct json *json);
