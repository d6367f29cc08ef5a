/* health_show.c - health for callers of the library: plain data that one call frees. */
#include "base/arena.h"
#include "base/err.h"
#include "core/host/apart.h"
#include "core/host/health.h"
#include <carrel/host.h>
#include <errno.h>

#define JSON_MAX (1U << 20)

struct shown {
    struct carrel_health health; /* first: the caller has its address */
    struct health found;
    struct arena arena;
    struct carrel_health_user users[HEALTH_USERS];
};

void carrel_health_free(struct carrel_health *health)
{
    if (!health)
        return;
    struct shown *shown = container_of(health, struct shown, health);
    arena_finish(shown->arena);
    free(shown);
}
DEFINE_AUTO(struct carrel_health *, carrel_health_free)

static bool show_facts(struct arena *arena, const struct runtime_health *found,
        struct carrel_health_user *user)
{
    const struct carrel_health_fact **list = arena_list(arena, found->n_facts);

    for (size_t i = 0; list && i < found->n_facts; i++) {
        struct carrel_health_fact *fact = arena_alloc(arena, sizeof(*fact));
        if (!fact)
            return false;
        *fact = (struct carrel_health_fact){ sizeof(*fact), found->facts[i].name,
            found->facts[i].value };
        list[i] = fact;
    }
    user->facts = list;
    return list;
}

static const char *const *names_of(struct arena *arena, uint64_t set)
{
    const char **list = arena_list(arena, PROTECT_COUNT);
    size_t n = 0;

    for (enum protection p = 0; list && p < PROTECT_COUNT; p++)
        if (set & PROTECT_BIT(p))
            list[n++] = protection_name(p);
    return list;
}

static bool show_gaps(struct arena *arena, const struct runtime_health *found,
        struct carrel_health_user *user)
{
    const struct carrel_health_gap **list = arena_list(arena, found->n_gaps);

    for (size_t i = 0; list && i < found->n_gaps; i++) {
        struct carrel_health_gap *gap = arena_alloc(arena, sizeof(*gap));
        const char *const *names = names_of(arena, found->gaps[i].set);
        if (!gap || !names)
            return false;
        *gap = (struct carrel_health_gap){ sizeof(*gap), names, found->gaps[i].why,
            found->gaps[i].remedy };
        list[i] = gap;
    }
    user->gaps = list;
    return list;
}

static bool show_limits(
        struct arena *arena, const struct health_view *view, struct carrel_health_user *user)
{
    const struct carrel_health_limit **list = arena_list(arena, LIMIT_COUNT);

    for (enum limit i = 0; list && view->is_able && i < LIMIT_OPTIONAL; i++) {
        struct carrel_health_limit *limit = arena_alloc(arena, sizeof(*limit));
        if (!limit)
            return false;
        *limit = (struct carrel_health_limit){ sizeof(*limit), limit_name(i),
            limit_holder_name(view->held_by[i]) };
        list[i] = limit;
    }
    user->limits = list;
    return list;
}

static bool show_user(struct shown *shown, enum health_user which)
{
    const struct health_view *view = &shown->found.views[which];
    struct carrel_health_user *user = &shown->users[which];

    *user = (struct carrel_health_user){
        .size = sizeof(*user),
        .name = health_user_name(which),
        .is_known = view->is_known,
        .is_able = view->is_able,
        .uid = view->uid,
        .error = view->error.message,
    };
    return show_facts(&shown->arena, &view->found, user) &&
           show_gaps(&shown->arena, &view->found, user) &&
           show_limits(&shown->arena, view, user);
}

static enum carrel_health_state state_of(const struct health_view *view, enum protection p)
{
    static const enum carrel_health_state states[] = {
        [HEALTH_UNKNOWN] = CARREL_HEALTH_UNKNOWN,
        [HEALTH_WORKS] = CARREL_HEALTH_WORKS,
        [HEALTH_MISSING] = CARREL_HEALTH_MISSING,
    };

    return states[health_state(view, p)];
}

static bool show_protections(struct shown *shown)
{
    const struct carrel_health_protection **list = arena_list(&shown->arena, PROTECT_COUNT);

    for (enum protection p = 0; list && p < PROTECT_COUNT; p++) {
        struct carrel_health_protection *one = arena_alloc(&shown->arena, sizeof(*one));
        if (!one)
            return false;
        *one = (struct carrel_health_protection){
            .size = sizeof(*one),
            .name = protection_name(p),
            .meaning = protection_meaning(p),
            .root = state_of(&shown->found.views[HEALTH_ROOT], p),
            .rootless = state_of(&shown->found.views[HEALTH_ROOTLESS], p),
        };
        list[p] = one;
    }
    shown->health.protections = list;
    return list;
}

static int take(void *context)
{
    (void)context;
    return 0;
}

int carrel_host_health(struct carrel_health **out, struct carrel_error *err)
{
    struct shown *shown = calloc(1, sizeof(*shown));

    err = ERR_OR_IGNORED(err);
    if (!shown)
        return err_set_errno(err, -ENOMEM, "health");
    AUTO(carrel_health_free) struct carrel_health *health = &shown->health;
    const struct apart_question question = {
        .kind = APART_HEALTH,
        .data = &shown->found,
        .len = sizeof(shown->found),
        .take = take,
    };
    int r = apart_ask(&question, err);
    if (r < 0)
        return err_wrap(err, r, "health");
    if (!show_user(shown, HEALTH_ROOT) || !show_user(shown, HEALTH_ROOTLESS) ||
            !show_protections(shown))
        return err_set_errno(err, -ENOMEM, "health");
    health->size = sizeof(*health);
    health->version = CARREL_VERSION;
    health->root = &shown->users[HEALTH_ROOT];
    health->rootless = &shown->users[HEALTH_ROOTLESS];
    health->caller = &shown->users[shown->found.caller];
    *out = ptr_steal(&health);
    return 0;
}

int carrel_health_json(const struct carrel_health *health, char **out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);

    err = ERR_OR_IGNORED(err);
    health_write_json(&container_of(health, const struct shown, health)->found, &text);
    return buf_take(&text, out, err);
}
