#include "base/fd.h"
#include "core/worktree/layers.h"
#include "harness.h"
#include "workspace/place_fixture.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_there(const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return lstat(path, &st) == 0;
}

static void write_in(const struct layers *layers, const char *name)
{
    const int dir = layers->ws ? layers->ws->dir : layers->top.dir;

    CHECK_EQ(mkdirat(dir, name, 0755), 0);
}

/* layers_make() finds the state directory by the environment. */
static void begin(struct fixture *fx)
{
    fixture_init(fx);
    CHECK_EQ(setenv("XDG_STATE_HOME", fx->top, 1), 0);
}

TEST(what_was_sealed_lies_below_an_empty_layer)
{
    static const char *const base[] = { "/base", NULL };
    struct fixture fx;
    AUTO(layers_free) struct layers *layers = NULL;
    struct layer_list list;

    begin(&fx);
    CHECK_EQ(layers_make(NULL, base, &layers, &fx.err), 0);
    CHECK_EQ(layers->n_parts, 1);
    CHECK_STR(layers->lower[LAYERS_TREE][0], "/base");
    write_in(layers, "upper/made");
    CHECK_EQ(layers_seal(layers, &fx.err), 0);
    CHECK_EQ(layers->n_sealed, 1);
    CHECK(layers->sealed[0].is_sealed);
    CHECK(is_there(layers->overlay[LAYERS_TREE].lower[0], "made"));
    CHECK_STR(layers->overlay[LAYERS_TREE].lower[1], "/base");
    CHECK(!is_there(layers->top.upper, "made"));
    CHECK(is_there(layers->top.path, "work"));

    /* Another one on the same layer, which stays when the first is gone. */
    AUTO(layers_free) struct layers *other = NULL;
    CHECK_EQ(layers_list(layers, NULL, &list, &fx.err), 0);
    CHECK_EQ(layers_make(&list, NULL, &other, &fx.err), 0);
    layers_free(ptr_steal(&layers));
    CHECK(is_there(other->lower[LAYERS_TREE][0], "made"));
    layers_free(ptr_steal(&other));
    fixture_finish(&fx);
}

TEST(layers_stay_below_the_highest_number)
{
    struct fixture fx;
    AUTO(layers_free) struct layers *layers = NULL;

    begin(&fx);
    CHECK_EQ(layers_make(NULL, NULL, &layers, &fx.err), 0);
    for (size_t i = 0; i < LAYER_MAX_CHAIN + 2; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "upper/%zu", i);
        write_in(layers, name);
        CHECK_EQ(layers_seal(layers, &fx.err), 0);
        CHECK(layers->n_sealed < LAYER_MAX_CHAIN);
    }
    CHECK(is_there(layers->lower[LAYERS_TREE][layers->n_sealed - 1], "0"));
    CHECK(is_there(layers->lower[LAYERS_TREE][0], "41"));
    layers_free(ptr_steal(&layers));
    fixture_finish(&fx);
}

TEST(both_parts_of_a_workspace_are_sealed_and_its_record_names_the_layers)
{
    static const char *const base[] = { NULL };
    struct fixture fx;
    AUTO(layers_free) struct layers *layers = NULL;
    AUTO(workspace_free) struct workspace *found = NULL;
    struct layer_list list;
    char text[LAYER_LIST_SIZE];

    begin(&fx);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&fx, "T", "R");
    CHECK_EQ(layers_open(fx.state, NULL, base, base, &layers, &fx.err), 0);
    layers_use_workspace(layers, ws);
    CHECK_STR(layers->overlay[LAYERS_GIT].space, ws->path);
    write_in(layers, "upper/made");
    CHECK_EQ(layers_seal(layers, &fx.err), 0);
    CHECK(is_there(layers->lower[LAYERS_TREE][0], "made"));
    CHECK(is_there(layers->lower[LAYERS_GIT][0], "HEAD"));
    CHECK(!is_there(ws->path, "upper/made"));
    CHECK(!is_there(ws->path, "gitupper/HEAD"));

    CHECK_EQ(layers_seal(layers, &fx.err), 0); /* nothing was written: no further layer */
    CHECK_EQ(layers->n_sealed, 1);
    write_in(layers, "gitupper/later");
    CHECK_EQ(layers_seal(layers, &fx.err), 0);
    CHECK_EQ(layers_list(layers, NULL, &list, &fx.err), 0);
    CHECK_EQ(list.n, 2);
    layer_list_write(&list, text);
    CHECK_EQ(workspace_find(fx.state, "T/R", &found, &fx.err), 0);
    CHECK_STR(found->layers, text);
    layers_free(ptr_steal(&layers));
    workspace_free(ptr_steal(&ws));
    fixture_finish(&fx);
}

TEST(a_layer_that_is_gone_is_an_error)
{
    static const struct layer_list list = { .ids = { "L-aaaaaaaaaaaaaaaa" }, .n = 1 };
    struct fixture fx;
    AUTO(layers_free) struct layers *layers = NULL;

    begin(&fx);
    CHECK_EQ(layers_make(&list, NULL, &layers, &fx.err), -ENOENT);
    fixture_finish(&fx);
}
