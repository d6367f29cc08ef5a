#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "layer/layer.h"
#include "layer/snapshot.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct carrel_error err;
static char state[64];

static void begin(void)
{
    (void)snprintf(state, sizeof(state), "/tmp/layer-test-XXXXXX");
    CHECK(test_mkdtemp(state));
}

static void end(void)
{
    AUTO(fd_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQ(tree_remove(tmp, state + strlen("/tmp/"), &err), 0);
}

static bool is_there(const char *path, const char *name)
{
    char full[PATH_MAX];
    struct stat st;

    (void)snprintf(full, sizeof(full), "%s/%s", path, name);
    return lstat(full, &st) == 0;
}

/* Entries and drafts of the store. */
static int count_entries(void)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    AUTO(store_names_finish) struct store_names names = { 0 };
    AUTO(dir_close) DIR *drafts = NULL;

    CHECK_EQ(layer_store(state, &store, &err), 0);
    CHECK_EQ(store_list(&store, STORE_PLAIN, &names, &err), 0);
    drafts = dir_open(store.tmp, ".");
    CHECK(!dir_next(drafts));
    return (int)names.n;
}

static int sweep(void)
{
    return layer_sweep(state, NULL, NULL, &err);
}

/* A sealed one that no process holds; its name. */
static void leave_sealed(char id[static LAYER_ID_SIZE])
{
    AUTO(layer_close) struct layer layer = LAYER_INIT;

    CHECK_EQ(layer_new(state, &layer, &err), 0);
    CHECK_EQ(layer_seal(&layer, &err), 0);
    memcpy(id, layer.id, LAYER_ID_SIZE);
}

TEST(a_new_layer_is_empty_and_writable)
{
    begin();
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    CHECK_EQ(layer_new(state, &layer, &err), 0);
    CHECK(layer_is_id(layer.id));
    CHECK(!layer.is_sealed);
    CHECK(is_there(layer.path, "upper") && is_there(layer.path, "work"));
    struct stat st;
    CHECK_EQ(stat(layer.upper, &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0755);
    CHECK_EQ(st.st_uid, geteuid());
    end();
}

TEST(a_sealed_layer_is_never_written_to_again)
{
    begin();
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    AUTO(layer_close) struct layer again = LAYER_INIT;
    CHECK_EQ(layer_new(state, &layer, &err), 0);
    CHECK_EQ(layer_renew(&layer, &err), 0);
    CHECK_EQ(layer_seal(&layer, &err), 0);
    CHECK(layer.is_sealed);
    CHECK(!is_there(layer.path, "work"));
    CHECK_EQ(layer_renew(&layer, &err), -EROFS);
    CHECK_EQ(layer_seal(&layer, &err), 0);
    CHECK_EQ(layer_open(state, layer.id, &again, &err), 0);
    CHECK(again.is_sealed);
    CHECK_EQ(layer_renew(&again, &err), -EROFS);
    end();
}

TEST(a_layer_made_anew_keeps_what_was_written)
{
    begin();
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    CHECK_EQ(layer_new(state, &layer, &err), 0);
    CHECK_EQ(mkdirat(layer.dir, "upper/kept", 0755), 0);
    CHECK_EQ(mkdirat(layer.dir, "work/work", 0), 0);
    CHECK_EQ(layer_renew(&layer, &err), 0);
    CHECK(is_there(layer.upper, "kept"));
    CHECK(!is_there(layer.path, "work/work"));
    end();
}

TEST(names_that_are_no_layers_are_refused)
{
    static const char *const names[] = { "", ".", "..", "L-", "../layers", "L-0123456789abcde/",
        "R-0123456789abcdef", "L-0123456789ABCDEF" };
    struct layer layer = LAYER_INIT;

    begin();
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CHECK_EQ(layer_open(state, names[i], &layer, &err), -EINVAL);
    CHECK_EQ(layer_open(state, "L-0123456789abcdef", &layer, &err), -ENOENT);
    end();
}

TEST(a_layer_that_is_held_stays)
{
    begin();
    AUTO(layer_close) struct layer first = LAYER_INIT;
    AUTO(layer_close) struct layer second = LAYER_INIT;
    CHECK_EQ(layer_new(state, &first, &err), 0);
    CHECK_EQ(layer_open(state, first.id, &second, &err), 0);
    CHECK_EQ(layer_remove(&first, &err), -EBUSY);
    CHECK_EQ(sweep(), 0);
    layer_close(first);
    first = LAYER_INIT;
    CHECK_EQ(sweep(), 0);
    CHECK(is_there(second.path, "upper"));
    CHECK_EQ(layer_remove(&second, &err), 0);
    CHECK_EQ(count_entries(), 0);
    end();
}

TEST(a_layer_without_a_holder_is_swept)
{
    char id[LAYER_ID_SIZE];

    begin();
    leave_sealed(id);
    leave_sealed(id);
    CHECK_EQ(sweep(), 2);
    CHECK_EQ(count_entries(), 0);
    CHECK_EQ(sweep(), 0);
    end();
}

TEST(what_a_snapshot_names_is_kept)
{
    struct snapshot snapshot = { .name = "one", .layers.n = 1 };
    char other[LAYER_ID_SIZE];

    begin();
    leave_sealed(snapshot.layers.ids[0]);
    leave_sealed(other);
    CHECK_EQ(snapshot_write(state, &snapshot, &err), 0);
    CHECK_EQ(sweep(), 1);
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    CHECK_EQ(layer_open(state, snapshot.layers.ids[0], &layer, &err), 0);
    layer_close(layer);
    layer = LAYER_INIT;
    CHECK_EQ(snapshot_remove(state, "one", &err), 0);
    CHECK_EQ(sweep(), 1);
    CHECK_EQ(count_entries(), 0);
    end();
}

static int name_one(struct store_names *names, void *context, struct carrel_error *e)
{
    struct layer_list list;

    (void)e;
    CHECK_EQ(layer_list_parse(context, &list), 0);
    return layer_names_add(names, &list);
}

static int name_none(struct store_names *names, void *context, struct carrel_error *e)
{
    (void)names;
    (void)context;
    return err_set_errno(e, -EIO, "names of layers");
}

TEST(what_others_name_is_kept_too)
{
    char id[LAYER_ID_SIZE];
    char other[LAYER_ID_SIZE];

    begin();
    leave_sealed(id);
    leave_sealed(other);
    CHECK_EQ(layer_sweep(state, name_none, NULL, &err), -EIO); /* fails: nothing is removed */
    CHECK_EQ(count_entries(), 2);
    CHECK_EQ(layer_sweep(state, name_one, id, &err), 1);
    CHECK_EQ(count_entries(), 1);
    CHECK_EQ(sweep(), 1);
    end();
}

TEST(a_damaged_snapshot_keeps_every_layer)
{
    static const char *const texts[] = { "", "{", "{}", "{\"layers\":[\"../x\"]}",
        "{\"layers\":[],\"created_s\":-1}", "{\"layers\":[1],\"created_s\":1}" };
    char id[LAYER_ID_SIZE];
    char path[PATH_MAX];

    begin();
    leave_sealed(id);
    (void)snprintf(path, sizeof(path), "%s/snapshots", state);
    CHECK_EQ(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/snapshots/bad.json", state);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK_EQ(fd_write_all(fd, texts[i], strlen(texts[i])), 0);
        CHECK_EQ(sweep(), -EINVAL);
        CHECK_EQ(count_entries(), 1);
    }
    end();
}

TEST(drafts_that_a_crash_left_are_swept)
{
    AUTO(store_finish) struct store store = STORE_INIT;

    begin();
    CHECK_EQ(layer_store(state, &store, &err), 0);
    CHECK_EQ(mkdirat(store.tmp, "D-0123456789abcdef", 0700), 0);
    CHECK_EQ(mkdirat(store.tmp, "D-0123456789abcdef/upper", 0700), 0);
    CHECK_EQ(sweep(), 0);
    CHECK_EQ(count_entries(), 0);
    end();
}

TEST(a_snapshot_says_what_it_was_told)
{
    static char image[] = "debian \"12\"";
    struct layer held = LAYER_INIT;
    struct snapshot snapshot = { .name = "v1.2_b-3", .layers.n = 2, .image = image };

    begin();
    leave_sealed(snapshot.layers.ids[0]);
    leave_sealed(snapshot.layers.ids[1]);
    CHECK_EQ(snapshot_write(state, &snapshot, &err), 0);
    CHECK_EQ(snapshot_write(state, &snapshot, &err), -EEXIST);
    AUTO(snapshot_finish) struct snapshot got = { .image = NULL };
    CHECK_EQ(snapshot_read(state, "v1.2_b-3", &got, &err), 0);
    CHECK_EQ(got.layers.n, 2);
    CHECK_STR(got.layers.ids[0], snapshot.layers.ids[0]);
    CHECK_STR(got.layers.ids[1], snapshot.layers.ids[1]);
    CHECK_STR(got.image, image);
    CHECK(!got.from);
    CHECK(got.created_s > 0);
    CHECK_EQ(sweep(), 0); /* the snapshot names them */
    CHECK_EQ(layer_open(state, got.layers.ids[0], &held, &err), 0);
    CHECK_EQ(snapshot_remove(state, "v1.2_b-3", &err), 0);
    CHECK_EQ(sweep(), 1); /* the other one is held */
    layer_close(held);
    CHECK_EQ(sweep(), 1);
    end();
}

TEST(a_snapshot_that_is_not_there_is_named_with_those_that_are)
{
    struct snapshot snapshot = { .name = "b" };
    struct snapshot got = { .image = NULL };

    begin();
    CHECK_EQ(snapshot_read(state, "x", &got, &err), -ENOENT);
    CHECK_STR(err.message, "there is no snapshot 'x'; there is none at all");
    CHECK_EQ(snapshot_write(state, &snapshot, &err), 0);
    (void)snprintf(snapshot.name, sizeof(snapshot.name), "a");
    CHECK_EQ(snapshot_write(state, &snapshot, &err), 0);
    CHECK_EQ(snapshot_remove(state, "x", &err), -ENOENT);
    CHECK_STR(err.message, "there is no snapshot 'x'; there are: a b");
    end();
}

TEST(a_snapshots_name_is_one_of_ours)
{
    static const char *const names[] = { "", ".", "..", ".x", "-x", "a/b", "a b", "a\n",
        "../../etc/passwd",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
    struct snapshot got = { .image = NULL };

    begin();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_EQ(snapshot_read(state, names[i], &got, &err), -EINVAL);
        CHECK_EQ(snapshot_remove(state, names[i], &err), -EINVAL);
    }
    end();
}

#define A "L-aaaaaaaaaaaaaaaa"
#define B "L-bbbbbbbbbbbbbbbb"

TEST(a_list_is_read_as_it_was_written)
{
    struct layer_list list = { .n = 7 };
    char text[LAYER_LIST_SIZE];

    CHECK_EQ(layer_list_parse(NULL, &list), 0);
    CHECK_EQ(list.n, 0);
    layer_list_write(&list, text);
    CHECK_STR(text, "");
    CHECK_EQ(layer_list_parse(A " " B, &list), 0);
    CHECK_EQ(list.n, 2);
    CHECK_STR(list.ids[0], A);
    CHECK_STR(list.ids[1], B);
    layer_list_write(&list, text);
    CHECK_STR(text, A " " B);
}

TEST(a_damaged_list_is_refused)
{
    static const char *const bad[] = { " ", A "  " B, " " A, "a/b", "..", A " ..", A "a",
        "L-aaaaaaaaaaaaaaa", A "\n" };
    struct layer_list list = { .n = 0 };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(layer_list_parse(bad[i], &list), -EBADMSG);
    CHECK_EQ(list.n, 0);
}

TEST(a_list_has_at_most_as_many_as_a_stack)
{
    struct layer_list list = { .n = 0 };
    char text[LAYER_LIST_SIZE + LAYER_ID_SIZE] = A;

    for (size_t i = 1; i < LAYER_MAX_CHAIN; i++)
        (void)strcat(text, " " B);
    CHECK_EQ(layer_list_parse(text, &list), 0);
    CHECK_EQ(list.n, LAYER_MAX_CHAIN);
    layer_list_write(&list, text);
    CHECK(strlen(text) < LAYER_LIST_SIZE);
    (void)strcat(text, " " B);
    CHECK_EQ(layer_list_parse(text, &list), -EBADMSG);
}
