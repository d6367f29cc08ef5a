/* plan_mounts.c - what of the host is mounted, and where; pure. */
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "runtime/local/plan_build.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct plan_text {
    struct plan_text *next;
    char text[];
};

char *plan_text(struct plan *plan, const char *fmt, ...)
{
    va_list ap;
    va_list again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, ap);
    struct plan_text *text = len < 0 ? NULL : malloc(sizeof(*text) + (size_t)len + 1);
    if (text) {
        (void)vsnprintf(text->text, (size_t)len + 1, fmt, again);
        text->next = plan->texts;
        plan->texts = text;
    }
    va_end(again);
    va_end(ap);
    return text ? text->text : NULL;
}

void plan_free_texts(struct plan *plan)
{
    while (plan->texts) {
        struct plan_text *text = plan->texts;
        plan->texts = text->next;
        free(text);
    }
}

void plan_add(struct builder *b, struct step step)
{
    struct plan *plan = b->plan;

    if (plan->n_steps == b->room) {
        size_t room = b->room ? 2 * b->room : 64;
        struct step *steps = reallocarray(plan->steps, room, sizeof(*steps));
        if (!steps) {
            b->is_short = true;
            return;
        }
        plan->steps = steps;
        b->room = room;
    }
    if (!step.path)
        b->is_short = true;
    else
        plan->steps[plan->n_steps++] = step;
}

void plan_writable(struct builder *b, const char *path)
{
    if (b->plan->disk_use == DISK_IS_ROOT && b->n_writable > 0)
        return; /* "/" exists already, and everything is below it */
    const char **list =
            reallocarray(b->plan->writable, b->n_writable + 2, sizeof(b->plan->writable[0]));
    if (!list || !path) {
        b->is_short = true;
        if (list)
            b->plan->writable = list;
        return;
    }
    list[b->n_writable++] = path;
    list[b->n_writable] = NULL;
    b->plan->writable = list;
}

/* Sorted by depth, so that a mount below another one comes after it. */
static int by_target(const void *a, const void *b)
{
    const struct plan_mount *x = a;
    const struct plan_mount *y = b;

    return strcmp(x->target, y->target); /* "a" sorts before "a/b" */
}

static int check_target(const char *target, struct carrel_error *err)
{
    static const char *const reserved[] = { "/proc", "/dev", "/sys" };
    char shown[128];

    if (!path_is_clean(target))
        return err_set(err, -EINVAL,
                "mount target '%s' is not an absolute path without '.', '..' and '//'",
                str_escape(target, strlen(target), shown, sizeof(shown)));
    if (strcmp(target, "/") == 0)
        return err_set(err, -EINVAL, "mount target '/' is the root itself; use --root");
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (path_is_below(target, reserved[i]))
            return err_set(err, -EINVAL,
                    "mount target '%s' is reserved: %s is the sandbox's own",
                    str_escape(target, strlen(target), shown, sizeof(shown)), reserved[i]);
    return 0;
}

static void source(struct builder *b, const char *path, int fd, bool is_writable)
{
    struct plan *plan = b->plan;
    struct plan_source *sources =
            reallocarray(plan->sources, plan->n_sources + 1, sizeof(*sources));

    if (!sources) {
        b->is_short = true;
        return;
    }
    plan->sources = sources;
    sources[plan->n_sources] = (struct plan_source){
        .path = plan_text(plan, "%s", path),
        .fd = fd,
        .is_writable = is_writable,
    };
    if (!sources[plan->n_sources].path)
        b->is_short = true;
    else
        plan->n_sources++;
}

/* Its layers become sources, topmost first, and its writable directory the last. */
static int plan_overlay(struct builder *b, const struct sandbox_overlay *overlay,
        const char *where, struct plan_mount *out, struct carrel_error *err)
{
    out->is_overlay = true;
    out->source = b->plan->n_sources;
    for (; overlay->lower && overlay->lower[out->n_lower]; out->n_lower++) {
        if (out->n_lower == PLAN_MAX_LOWER)
            return err_set(err, -E2BIG, "'%s' has more than %u layers", where, PLAN_MAX_LOWER);
        source(b, overlay->lower[out->n_lower], -1, false);
    }
    out->is_in_memory = !overlay->space;
    if (out->is_in_memory)
        return b->is_short ? err_set_errno(err, -ENOMEM, "plan mounts") : 0;
    source(b, overlay->space, -1, true);
    out->upper = plan_text(b->plan, "%s", overlay->upper);
    out->work = plan_text(b->plan, "%s", overlay->work);
    if (b->is_short || !out->upper || !out->work)
        return err_set_errno(err, -ENOMEM, "plan mounts");
    return 0;
}

static int plan_mount(struct builder *b, const struct sandbox_mount *mount,
        struct plan_mount *out, struct carrel_error *err)
{
    *out = (struct plan_mount){
        .target = plan_text(b->plan, "%s", mount->target + 1),
        .is_writable = mount->access == ACCESS_READ_WRITE,
        .source = b->plan->n_sources,
    };
    if (mount->overlay)
        return plan_overlay(b, mount->overlay, mount->target, out, err);
    source(b, mount->source, mount->source_fd ? *mount->source_fd : -1, out->is_writable);
    if (b->is_short || !out->target)
        return err_set_errno(err, -ENOMEM, "plan mounts");
    return 0;
}

int plan_disk(struct builder *b, const struct sandbox_spec *spec, struct carrel_error *err)
{
    struct plan *plan = b->plan;

    if (!spec->space && !spec->root_overlay)
        return 0;
    plan->disk_use = spec->root_overlay ? DISK_IS_ROOT : DISK_HAS_PLACES;
    plan->disk.is_writable = true;
    return plan_overlay(b, spec->root_overlay ? spec->root_overlay : spec->space,
            spec->root_overlay ? "/" : "the private space", &plan->disk, err);
}

int plan_mounts(struct builder *b, const struct sandbox_spec *spec, struct carrel_error *err)
{
    struct plan *plan = b->plan;

    if (spec->n_mounts == 0)
        return 0;
    plan->mounts = calloc(spec->n_mounts, sizeof(*plan->mounts));
    if (!plan->mounts)
        return err_set_errno(err, -ENOMEM, "plan mounts");
    for (size_t i = 0; i < spec->n_mounts; i++) {
        int r = check_target(spec->mounts[i].target, err);
        if (r == 0)
            r = plan_mount(b, &spec->mounts[i], &plan->mounts[i], err);
        if (r < 0)
            return r;
    }
    plan->n_mounts = spec->n_mounts;
    qsort(plan->mounts, plan->n_mounts, sizeof(*plan->mounts), by_target);
    for (size_t i = 0; i < plan->n_mounts; i++) {
        const struct plan_mount *mount = &plan->mounts[i];
        if (i > 0 && strcmp(mount->target, plan->mounts[i - 1].target) == 0)
            return err_set(err, -EINVAL, "two mounts have the target '/%s'", mount->target);
        plan_add(b, (struct step){ .kind = mount->is_overlay ? STEP_OVERLAY : STEP_MOUNT,
                            .path = mount->target,
                            .index = i });
        if (mount->is_writable)
            plan_writable(b, plan_text(plan, "/%s", mount->target));
    }
    return 0;
}

int plan_set_source(struct plan *plan, size_t i, const char *source, struct carrel_error *err)
{
    char *copy = plan_text(plan, "%s", source);

    if (!copy)
        return err_set_errno(err, -ENOMEM, "plan mounts");
    plan->sources[i].path = copy;
    return 0;
}
