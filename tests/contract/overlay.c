/* overlay.c - copy-on-write trees: only the upper directory has a program's changes. */
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Two lower directories and a space, below the test's own directory. */
struct layers {
    char top[PATH_MAX - 16];
    char lower[2][PATH_MAX];
    char space[PATH_MAX];
    const char *list[3];
    struct sandbox_overlay overlay;
    struct sandbox_mount mount;
};

static void write_text(const char *dir, const char *name, const char *text)
{
    char path[2 * PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

static void make_layers(struct layers *layers)
{
    static const char *const names[] = { "l0", "l1", "space", "space/upper", "space/work" };
    char path[PATH_MAX];

    (void)snprintf(layers->top, sizeof(layers->top), "%s/layers", getenv("TMPDIR"));
    CHECK_EQ(mkdir(layers->top, 0755), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", layers->top, names[i]);
        CHECK_EQ(mkdir(path, 0755), 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)snprintf(layers->lower[i], PATH_MAX, "%s/l%d", layers->top, i);
        layers->list[i] = layers->lower[i];
    }
    layers->list[2] = NULL;
    (void)snprintf(layers->space, PATH_MAX, "%s/space", layers->top);
    layers->overlay = (struct sandbox_overlay){
        .lower = layers->list,
        .space = layers->space,
        .upper = "upper",
        .work = "work",
    };
    layers->mount = (struct sandbox_mount){
        .target = "/workspace",
        .access = ACCESS_READ_WRITE,
        .overlay = &layers->overlay,
    };
    write_text(layers->lower[0], "both", "top");
    write_text(layers->lower[1], "both", "bottom");
    write_text(layers->lower[1], "kept", "kept");
    write_text(layers->lower[1], "gone", "gone");
}

static void remove_layers(void)
{
    AUTO(fd_close) int dir = open(getenv("TMPDIR"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQ(tree_remove(dir, "layers", &err), 0);
}

static struct sandbox *make_box(struct layers *layers)
{
    struct sandbox *box = NULL;
    struct sandbox_spec spec = plain_spec();

    make_layers(layers);
    spec.mounts = &layers->mount;
    spec.n_mounts = 1;
    int r = create(&spec, &box);
    if (r == -ENOTSUP) {
        remove_layers();
        SKIP("%s", err.message);
    }
    CHECK_STR(r == 0 ? "" : err.message, "");
    return box;
}

static bool holds(const char *dir, const char *name, const char *text)
{
    char path[2 * PATH_MAX];
    char got[64];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return fd_read_file(AT_FDCWD, path, got, sizeof(got)) >= 0 && strcmp(got, text) == 0;
}

CONTRACT(what_a_program_changes_is_in_the_upper_directory_alone)
{
    struct layers layers;
    struct stat st;
    char path[2 * PATH_MAX];
    AUTO(sandbox_free) struct sandbox *box = make_box(&layers);

    AUTO(outcome_finish)
    struct outcome got = run_shell(box,
            "cat both kept; stat -c ' %u' kept | grep -qx \" $(id -u)\" && echo -n -mine;"
            "echo -n new >made; echo -n changed >kept; rm gone; mkdir d; ln -s /etc d/link");
    CHECK_STR(got.err.data ? got.err.data : "", "");
    CHECK_STR(got.out.data, "topkept-mine");
    CHECK_EQ(sandbox_stop(box, &(struct sandbox_usage){ 0 }, &err), 0);

    CHECK(holds(layers.lower[1], "kept", "kept"));
    CHECK(holds(layers.lower[1], "gone", "gone"));
    (void)snprintf(path, sizeof(path), "%s/upper", layers.space);
    CHECK(holds(path, "made", "new"));
    CHECK(holds(path, "kept", "changed"));
    (void)snprintf(path, sizeof(path), "%s/upper/gone", layers.space);
    CHECK_EQ(lstat(path, &st), 0);
    CHECK(S_ISCHR(st.st_mode) && st.st_rdev == 0);
    CHECK_EQ(st.st_uid, geteuid()); /* on disk everything belongs to the caller */
    (void)snprintf(path, sizeof(path), "%s/upper/d/link", layers.space);
    CHECK_EQ(lstat(path, &st), 0);
    CHECK_EQ(st.st_uid, geteuid());
    CHECK_EQ(st.st_gid, getegid());
    remove_layers();
}

CONTRACT(the_next_sandbox_goes_on_in_the_same_upper_directory)
{
    struct layers layers;
    struct sandbox_spec spec = plain_spec();
    struct sandbox *first = make_box(&layers);

    AUTO(outcome_finish)
    struct outcome made = run_shell(first, "echo -n one >made; rm kept");
    sandbox_free(first);
    AUTO(fd_close) int space = open(layers.space, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(tree_remove(space, "work", &err), 0); /* as the owner must after an orderly end */
    CHECK_EQ(mkdirat(space, "work", 0755), 0);
    AUTO(sandbox_free) struct sandbox *box = NULL;
    spec.mounts = &layers.mount;
    spec.n_mounts = 1;
    CHECK_EQ(create(&spec, &box), 0);
    AUTO(outcome_finish) struct outcome got = run_shell(box, "cat made; ls");
    CHECK_STR(got.out.data, "oneboth\ngone\nmade\n");
    CHECK_EQ(sandbox_stop(box, &(struct sandbox_usage){ 0 }, &err), 0);
    remove_layers();
}

CONTRACT(a_program_cannot_forge_what_an_upper_directory_means)
{
    struct layers layers;
    char path[2 * PATH_MAX];
    char value[8];
    AUTO(sandbox_free) struct sandbox *box = make_box(&layers);

    AUTO(outcome_finish)
    struct outcome got = run_shell(box,
            "mknod gone2 c 0 0 2>/dev/null && echo -n whiteout;"
            "mkdir d; setfattr -n user.overlay.opaque -v y d 2>/dev/null;"
            "setfattr -n trusted.overlay.opaque -v y d 2>/dev/null && echo -n trusted; :");
    CHECK_STR(got.out.data ? got.out.data : "", "");
    CHECK_EQ(sandbox_stop(box, &(struct sandbox_usage){ 0 }, &err), 0);
    (void)snprintf(path, sizeof(path), "%s/upper/d", layers.space);
    CHECK_EQ(lgetxattr(path, "user.overlay.opaque", value, sizeof(value)), -1);
    remove_layers();
}
