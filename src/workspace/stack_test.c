#include "workspace/harvest/lower.h"
#include "workspace/place_fixture.h"
#include "workspace/stack.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TIP "1111111111111111111111111111111111111111"
#define LONG_TIP TIP "0"
#define OLDER "2222222222222222222222222222222222222222"

/* Two layers, "layer0" on top, and a place for the fork's own "git", below the fixture's. */
struct stack {
    struct fixture fx;
    char paths[2][256];
    char git[256];
};

static void begin(struct stack *s)
{
    fixture_init(&s->fx);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(s->paths[i], sizeof(s->paths[i]), "%s/layer%d", s->fx.top, i);
        CHECK_EQ(mkdir(s->paths[i], 0755), 0);
    }
    (void)snprintf(s->git, sizeof(s->git), "%s/git", s->fx.top);
    CHECK_EQ(mkdir(s->git, 0755), 0);
}

static const char *in(const struct stack *s, const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", s->fx.top, name);
    return path;
}

static void end(struct stack *s)
{
    fixture_finish(&s->fx);
}

static int make_layer(struct stack *s, const char *name)
{
    char path[128];

    CHECK_EQ(mkdir(in(s, name), 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/upper", name);
    CHECK_EQ(mkdir(in(s, path), 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/gitupper", name);
    CHECK_EQ(mkdir(in(s, path), 0755), 0);
    int dir = open(in(s, name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    return dir;
}

TEST(what_was_written_changes_places_with_an_empty_layer)
{
    struct stack s;
    char ids[STACK_MAX][STACK_ID_MAX];

    begin(&s);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&s.fx, "T", "R");
    CHECK(!stack_is_fresh(ws)); /* it has a HEAD of its own */
    CHECK_EQ(mkdirat(ws->dir, "upper/made", 0755), 0);
    AUTO(fd_close) int layer = make_layer(&s, "L-1");
    CHECK_EQ(stack_put(ws, layer, "L-1", &s.fx.err), 0);
    CHECK(stack_is_fresh(ws));
    CHECK(fixture_has(&s.fx, "L-1/upper/made"));
    CHECK(fixture_has(&s.fx, "L-1/gitupper/HEAD"));
    CHECK_EQ(stack_put(ws, layer, "L-1", &s.fx.err), -ENOTEMPTY);
    AUTO(fd_close) int second = make_layer(&s, "L-2");
    CHECK_EQ(mkdirat(ws->dir, "upper/later", 0755), 0);
    CHECK_EQ(stack_put(ws, second, "L-2", &s.fx.err), 0);
    CHECK_EQ(stack_list(ws, ids), 2);
    CHECK_STR(ids[0], "L-2");
    CHECK_STR(ids[1], "L-1");

    AUTO(workspace_free) struct workspace *found = NULL;
    CHECK_EQ(workspace_find(s.fx.state, "T/R", &found, &s.fx.err), 0);
    CHECK_STR(found->layers, "L-2 L-1");
    workspace_free(ptr_steal(&ws));
    end(&s);
}

TEST(a_list_of_layers_has_names_and_an_end)
{
    static const char *const bad[] = { " ", "a  b", "a/b", "..", "a ..",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
    char ids[STACK_MAX][STACK_ID_MAX];
    struct workspace ws = { .layers = NULL };
    char many[STACK_MAX * 2 + 4] = "";

    CHECK_EQ(stack_list(&ws, ids), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ws.layers = (char *)(uintptr_t)bad[i];
        CHECK_EQ(stack_list(&ws, ids), -EBADMSG);
    }
    for (size_t i = 0; i <= STACK_MAX; i++)
        (void)strcat(many, i ? " a" : "a");
    ws.layers = many;
    CHECK_EQ(stack_list(&ws, ids), -EBADMSG);
    many[2 * STACK_MAX - 1] = '\0';
    CHECK_EQ(stack_list(&ws, ids), STACK_MAX);
}
