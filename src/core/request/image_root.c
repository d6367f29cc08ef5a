/* image_root.c - docker's rules for what an image says, as far as they make sense here. */
#include "core/request/image_root.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "core/request/image_user.h"
#include "core/state/state.h"
#include <errno.h>
#include <limits.h>
#include <string.h>

void image_root_free(struct image_root *root)
{
    if (!root)
        return;
    image_free(root->image);
    free(root->own);
    free(root->env);
    free(root->argv);
    free(root->cwd);
    free(root);
}

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static int no_memory(struct carrel_error *err)
{
    return err_set_errno(err, -ENOMEM, "image");
}

/* The image's first: a later one replaces an earlier one. Names that are none are left out. */
static int merge_env(
        struct image_root *root, struct carrel_run_options *o, struct carrel_error *err)
{
    const char *const *theirs = root->image->settings.env;
    size_t n = 0;

    root->own = calloc(count(theirs) + 1, sizeof(*root->own));
    root->env = calloc(count(theirs) + count(o->env) + 1, sizeof(*root->env));
    if (!root->own || !root->env)
        return no_memory(err);
    for (; *theirs; theirs++)
        if (str_is_env_name(*theirs, strcspn(*theirs, "=")))
            root->own[n++] = *theirs;
    memcpy(root->env, root->own, n * sizeof(*root->env));
    for (const char *const *ours = o->env; ours && *ours; ours++)
        root->env[n++] = *ours;
    o->env = root->env;
    return 0;
}

static bool has_workspace(const struct carrel_run_options *o)
{
    if (o->workspace)
        return true;
    for (size_t i = 0; i < o->n_mounts; i++)
        if (strcmp(o->mounts[i].target, "/workspace") == 0)
            return true;
    return false;
}

/* A mounted work directory is the better place to start in. */
static int merge_cwd(
        struct image_root *root, struct carrel_run_options *o, struct carrel_error *err)
{
    const char *workdir = root->image->settings.workdir;
    char path[PATH_MAX];

    if (o->cwd || !workdir[0] || has_workspace(o))
        return 0;
    if (!path_absolute("/", workdir, path, sizeof(path)))
        return err_set_errno(err, -ENAMETOOLONG, "the image's working directory");
    root->cwd = strdup(path);
    if (!root->cwd)
        return no_memory(err);
    o->cwd = root->cwd;
    return 0;
}

static int merge_user(
        struct image_root *root, struct carrel_run_options *o, struct carrel_error *err)
{
    const char *user = root->image->settings.user;

    if (o->has_user || !user[0])
        return 0;
    int r = image_user_find(root->image, user, &o->uid, &o->gid, err);
    o->has_user = r == 0;
    return r;
}

int image_root_open(
        struct carrel_run_options *o, struct image_root **out, struct carrel_error *err)
{
    char state[PATH_MAX];

    *out = NULL;
    if (o->root)
        return err_set(err, -EINVAL, "--image and --root cannot be combined");
    AUTO(image_root_free) struct image_root *root = calloc(1, sizeof(*root));
    if (!root)
        return no_memory(err);
    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = image_open(state, o->image, &root->image, err);
    if (r == 0)
        r = merge_env(root, o, err);
    if (r == 0)
        r = merge_cwd(root, o, err);
    if (r == 0)
        r = merge_user(root, o, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&root);
    return 0;
}

int image_root_command(
        struct image_root *root, struct carrel_run_options *o, struct carrel_error *err)
{
    const struct image_settings *settings = &root->image->settings;
    bool has_words = o->argv && o->argv[0];
    const char *const *words = has_words ? o->argv : settings->cmd;
    size_t n = 0;

    if (has_words && o->has_no_entrypoint)
        return 0;
    if (!has_words && count(settings->entrypoint) + count(settings->cmd) == 0)
        return err_set(err, -EINVAL,
                "image '%s' has no entrypoint and no command; name a program",
                root->image->name);
    root->argv = calloc(count(settings->entrypoint) + count(words) + 1, sizeof(*root->argv));
    if (!root->argv)
        return no_memory(err);
    for (const char *const *word = settings->entrypoint; *word; word++)
        root->argv[n++] = *word;
    for (; *words; words++)
        root->argv[n++] = *words;
    o->argv = root->argv;
    return 0;
}
