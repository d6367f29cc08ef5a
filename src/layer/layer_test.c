#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "layer/layer.h"
#include "layer/snapshot.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    char path[PATH_MAX];
    const struct dirent *entry;
    int n = 0;

    (void)snprintf(path, sizeof(path), "%s/layers", state);
    DIR *dir = opendir(path);
    CHECK(dir);
    while ((entry = readdir(dir)))
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
             strcmp(entry->d_name, ".gate") != 0 && strcmp(entry->d_name, ".merge") != 0;
    (void)closedir(dir);
    return n;
}

static int sweep(void)
{
    return layer_sweep(state, NULL, NULL, &err);
}

/* A sealed one that nobody holds; its name. */
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

TEST(a_layer_that_nobody_has_is_swept)
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

TEST(the_kernel_lets_go_of_what_a_killed_process_held)
{
    int ready[2];
    char byte;

    begin();
    CHECK_EQ(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct layer layer = LAYER_INIT;
        if (layer_new(state, &layer, NULL) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    CHECK_EQ(sweep(), 0);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(sweep(), 1);
    CHECK_EQ(count_entries(), 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
    end();
}

TEST(what_a_snapshot_names_is_kept)
{
    struct snapshot snapshot = { .name = "one", .n_layers = 1 };
    char other[LAYER_ID_SIZE];

    begin();
    leave_sealed(snapshot.layers[0]);
    leave_sealed(other);
    CHECK_EQ(snapshot_write(state, &snapshot, &err), 0);
    CHECK_EQ(sweep(), 1);
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    CHECK_EQ(layer_open(state, snapshot.layers[0], &layer, &err), 0);
    layer_close(layer);
    layer = LAYER_INIT;
    CHECK_EQ(snapshot_remove(state, "one", &err), 0);
    CHECK_EQ(sweep(), 1);
    CHECK_EQ(count_entries(), 0);
    end();
}

static int name_one(struct layer_names *names, void *context, struct carrel_error *e)
{
    (void)e;
    return layer_names_add(names, context);
}

static int name_none(struct layer_names *names, void *context, struct carrel_error *e)
{
    (void)names;
    (void)context;
    return err_set_errno(e, -EIO, "who has what");
}

TEST(what_others_name_is_kept_too)
{
    char id[LAYER_ID_SIZE];
    char other[LAYER_ID_SIZE];

    begin();
    leave_sealed(id);
    leave_sealed(other);
    CHECK_EQ(
            layer_sweep(state, name_none, NULL, &err), -EIO); /* who cannot say loses nothing */
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

TEST(what_a_crash_left_half_made_or_half_removed_is_swept)
{
    static const char *const left[] = { "layers", "layers/L-0123456789abcdef",
        "layers/.old-L-0123456789abcdeg", "layers/.old-L-0123456789abcdeg/upper", "snapshots",
        "layers/0123" };
    char path[PATH_MAX];

    begin();
    for (size_t i = 0; i < ARRAY_LEN(left); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", state, left[i]);
        CHECK_EQ(mkdir(path, 0700), 0);
    }
    (void)snprintf(path, sizeof(path), "%s/snapshots/.D-0123456789abcdef", state);
    CHECK_EQ(mknod(path, S_IFREG | 0600, 0), 0);
    CHECK_EQ(sweep(), 1);
    CHECK_EQ(count_entries(), 1); /* a setup's layer is not ours */
    CHECK(!is_there(state, "snapshots/.D-0123456789abcdef"));
    end();
}

TEST(a_snapshot_says_what_it_was_told)
{
    static char image[] = "debian \"12\"";
    struct layer layers[LAYER_MAX_CHAIN];
    struct snapshot snapshot = { .name = "v1.2_b-3", .n_layers = 2, .image = image };

    begin();
    leave_sealed(snapshot.layers[0]);
    leave_sealed(snapshot.layers[1]);
    CHECK_EQ(snapshot_write(state, &snapshot, &err), 0);
    CHECK_EQ(snapshot_write(state, &snapshot, &err), -EEXIST);
    AUTO(snapshot_finish) struct snapshot got = { .n_layers = 0 };
    CHECK_EQ(snapshot_open(state, "v1.2_b-3", &got, layers, &err), 0);
    CHECK_EQ(got.n_layers, 2);
    CHECK_STR(got.layers[0], snapshot.layers[0]);
    CHECK_STR(layers[1].id, snapshot.layers[1]);
    CHECK_STR(got.image, image);
    CHECK(!got.from);
    CHECK(got.created_s > 0);
    CHECK_EQ(snapshot_remove(state, "v1.2_b-3", &err), 0);
    CHECK_EQ(sweep(), 0); /* they are held */
    layer_close(layers[0]);
    layer_close(layers[1]);
    CHECK_EQ(sweep(), 2);
    end();
}

TEST(a_snapshot_that_is_not_there_is_named_with_those_that_are)
{
    struct snapshot snapshot = { .name = "b" };
    struct snapshot got = { .n_layers = 0 };

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
    struct snapshot got = { .n_layers = 0 };

    begin();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_EQ(snapshot_read(state, names[i], &got, &err), -EINVAL);
        CHECK_EQ(snapshot_remove(state, names[i], &err), -EINVAL);
    }
    end();
}
