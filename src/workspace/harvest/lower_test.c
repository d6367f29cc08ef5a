#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "workspace/harvest/lower.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct carrel_error err;

/* Two layers, "layer" over "tree". */
struct place {
    char dir[40];
    int fd;
    struct lower lower;
};

static void make_place(struct place *place)
{
    char layer[80];
    char tree[80];

    *place = (struct place){ .dir = "/tmp/lower-test-XXXXXX" };
    CHECK(test_mkdtemp(place->dir));
    place->fd = open(place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(place->fd >= 0);
    (void)snprintf(layer, sizeof(layer), "%s/layer", place->dir);
    (void)snprintf(tree, sizeof(tree), "%s/tree", place->dir);
    CHECK_EQ(mkdir(layer, 0755), 0);
    CHECK_EQ(mkdir(tree, 0755), 0);
    CHECK_EQ(lower_open(&place->lower, (const char *const[]){ layer, tree, NULL }, &err), 0);
}

static void drop_place(struct place *place)
{
    AUTO(fd_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    lower_close(&place->lower);
    fd_close(place->fd);
    CHECK_EQ(tree_remove(tmp, place->dir + sizeof("/tmp"), &err), 0);
}

static void put(const struct place *place, const char *path)
{
    AUTO(fd_close) int fd = openat(place->fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
}

static void put_dir(const struct place *place, const char *path)
{
    CHECK_EQ(mkdirat(place->fd, path, 0755), 0);
}

static void put_whiteout(const struct place *place, const char *path)
{
    if (mknodat(place->fd, path, S_IFCHR | 0600, makedev(0, 0)) < 0)
        SKIP("no whiteout can be made here: %s", strerror(errno));
}

static int has(const struct place *place, const char *path)
{
    int r = lower_has(&place->lower, path, &err);

    if (r < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return r;
}

TEST(files_links_and_directories_of_every_layer_are_there)
{
    struct place place;

    make_place(&place);
    put_dir(&place, "tree/d");
    put_dir(&place, "tree/d/e");
    put(&place, "tree/d/e/below");
    put_dir(&place, "layer/d");
    put(&place, "layer/d/above");
    CHECK_EQ(symlinkat("nowhere", place.fd, "tree/dangling"), 0);
    CHECK_EQ(has(&place, "d"), LOWER_DIR);
    CHECK_EQ(has(&place, "d/e"), LOWER_DIR);
    CHECK_EQ(has(&place, "d/e/below"), LOWER_FILE);
    CHECK_EQ(has(&place, "d/above"), LOWER_FILE);
    CHECK_EQ(has(&place, "dangling"), LOWER_FILE);
    CHECK_EQ(has(&place, "d/e/above"), LOWER_NONE);
    CHECK_EQ(has(&place, "d/e/f/g"), LOWER_NONE);
    CHECK_EQ(has(&place, "e"), LOWER_NONE);
    drop_place(&place);
}

/* A commit may have a link to any path; its target is not part of the base. */
TEST(a_link_on_the_way_is_not_followed)
{
    struct place place;

    make_place(&place);
    put_dir(&place, "tree/real");
    put(&place, "tree/real/file");
    CHECK_EQ(symlinkat("real", place.fd, "tree/link"), 0);
    CHECK_EQ(symlinkat("/", place.fd, "tree/root"), 0);
    CHECK_EQ(has(&place, "link"), LOWER_FILE);
    CHECK_EQ(has(&place, "link/file"), LOWER_NONE);
    CHECK_EQ(has(&place, "root/tmp"), LOWER_NONE);
    CHECK_EQ(has(&place, "real/file"), LOWER_FILE);
    CHECK_EQ(has(&place, "real/file/x"), LOWER_NONE);
    /* in the layer above a link, below it a directory */
    CHECK_EQ(symlinkat("/", place.fd, "layer/real"), 0);
    CHECK_EQ(has(&place, "real"), LOWER_FILE);
    CHECK_EQ(has(&place, "real/file"), LOWER_NONE);
    drop_place(&place);
}

TEST(what_a_layer_hides_is_not_there)
{
    struct place place;

    make_place(&place);
    put(&place, "tree/file");
    put_dir(&place, "tree/d");
    put(&place, "tree/d/x");
    put_dir(&place, "tree/kept");
    put(&place, "tree/kept/x");
    put_whiteout(&place, "layer/file");
    put_whiteout(&place, "layer/d");
    put_whiteout(&place, "layer/never");
    put_dir(&place, "layer/kept");
    put_whiteout(&place, "layer/kept/x");
    CHECK_EQ(has(&place, "file"), LOWER_NONE);
    CHECK_EQ(has(&place, "never"), LOWER_NONE);
    CHECK_EQ(has(&place, "d"), LOWER_NONE);
    CHECK_EQ(has(&place, "d/x"), LOWER_NONE);
    CHECK_EQ(has(&place, "kept"), LOWER_DIR);
    CHECK_EQ(has(&place, "kept/x"), LOWER_NONE);
    drop_place(&place);
}

TEST(an_opaque_directory_hides_the_one_below)
{
    struct place place;

    make_place(&place);
    put_dir(&place, "tree/d");
    put(&place, "tree/d/below");
    put_dir(&place, "layer/d");
    put(&place, "layer/d/above");
    CHECK_EQ(has(&place, "d/below"), LOWER_FILE);
    AUTO(fd_close) int dir = openat(place.fd, "layer/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fsetxattr(dir, "user.overlay.opaque", "y", 1, 0) < 0)
        SKIP("the attribute cannot be set here: %s", strerror(errno));
    CHECK_EQ(has(&place, "d/below"), LOWER_NONE);
    CHECK_EQ(has(&place, "d/above"), LOWER_FILE);
    drop_place(&place);
}

TEST(a_path_that_is_too_long_is_an_error)
{
    struct place place;
    char path[PATH_MAX + 8];

    make_place(&place);
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 ? '/' : 'a';
    path[sizeof(path) - 1] = '\0';
    CHECK_EQ(lower_has(&place.lower, path, &err), -ENAMETOOLONG);
    drop_place(&place);
}

TEST(the_root_is_a_directory_and_more_layers_than_there_are_bits_are_refused)
{
    struct place place;
    const char *paths[LOWER_MAX_LAYERS + 2] = { NULL };
    struct lower many;

    make_place(&place);
    CHECK_EQ(has(&place, ""), LOWER_DIR);
    for (size_t i = 0; i <= LOWER_MAX_LAYERS; i++)
        paths[i] = place.dir;
    CHECK_EQ(lower_open(&many, paths, &err), -E2BIG);
    CHECK_EQ(many.n, 0);
    paths[LOWER_MAX_LAYERS] = NULL;
    CHECK_EQ(lower_open(&many, paths, &err), 0);
    CHECK_EQ(lower_has(&many, "tree", &err), LOWER_DIR);
    CHECK_EQ(lower_has(&many, "tree/x", &err), LOWER_NONE);
    lower_close(&many);
    drop_place(&place);
}
