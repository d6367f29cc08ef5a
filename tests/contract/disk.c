/*
 * disk.c - private directories that outlive a sandbox, and writable roots. A root may have
 * hostile content.
 */
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "layer/layer.h"
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANY 70

struct disk {
    char top[PATH_MAX - 64];
    char space[PATH_MAX];
    char layer[MANY][PATH_MAX];
    const char *lower[MANY + 1];
    struct sandbox_overlay overlay;
    struct sandbox_mount usr;
    struct sandbox_spec spec;
};

static void path_in(const char *dir, const char *name, char path[static PATH_MAX])
{
    CHECK(snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX);
}

static void make_dir(const char *dir, const char *name)
{
    char path[PATH_MAX];

    path_in(dir, name, path);
    CHECK_EQ(mkdir(path, 0755), 0);
}

static void make_link(const char *to, const char *dir, const char *name)
{
    char path[PATH_MAX];

    path_in(dir, name, path);
    CHECK_EQ(symlink(to, path), 0);
}

static void make_file(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX];

    path_in(dir, name, path);
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

static bool holds(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX];
    char got[64];

    path_in(dir, name, path);
    return fd_read_file(AT_FDCWD, path, got, sizeof(got)) >= 0 && strcmp(got, text) == 0;
}

/* A writable directory, and `n` layers below it. */
static void disk_begin(struct disk *disk, size_t n)
{
    (void)snprintf(disk->top, sizeof(disk->top), "%s/disk", getenv("TMPDIR"));
    CHECK_EQ(mkdir(disk->top, 0755), 0);
    path_in(disk->top, "space", disk->space);
    make_dir(disk->top, "space");
    make_dir(disk->space, "upper");
    make_dir(disk->space, "work");
    for (size_t i = 0; i < n; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "layer%zu", i);
        make_dir(disk->top, name);
        path_in(disk->top, name, disk->layer[i]);
        disk->lower[i] = disk->layer[i];
    }
    disk->lower[n] = NULL;
    disk->overlay = (struct sandbox_overlay){
        .lower = disk->lower, .space = disk->space, .upper = "upper", .work = "work"
    };
    disk->spec = plain_spec();
}

/* A root of links into the host's /usr, which is mounted: enough for a shell. */
static void root_begin(struct disk *disk, size_t n)
{
    static const char *const links[] = { "bin", "sbin", "lib", "lib32", "lib64" };
    const char *bottom;
    char to[32];

    disk_begin(disk, n);
    bottom = disk->lower[n - 1];
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        (void)snprintf(to, sizeof(to), "usr/%s", links[i]);
        make_link(to, bottom, links[i]);
    }
    disk->usr = (struct sandbox_mount){ .source = "/usr", .target = "/usr" };
    disk->spec.root_overlay = &disk->overlay;
    disk->spec.mounts = &disk->usr;
    disk->spec.n_mounts = 1;
}

static void disk_end(const struct disk *disk)
{
    AUTO(fd_close) int dir = open(getenv("TMPDIR"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)disk;
    CHECK_EQ(tree_remove(dir, "disk", &err), 0);
}

static struct sandbox *disk_box(struct disk *disk)
{
    struct sandbox *box = NULL;
    int r = create(&disk->spec, &box);

    if (r == -ENOTSUP) {
        disk_end(disk);
        SKIP("%s", err.message);
    }
    CHECK_STR(r == 0 ? "" : err.message, "");
    return box;
}

/* As the owner must after an orderly end: see struct sandbox_overlay. */
static void disk_renew(const struct disk *disk)
{
    AUTO(fd_close) int space = open(disk->space, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQ(tree_remove(space, "work", &err), 0);
    CHECK_EQ(mkdirat(space, "work", 0755), 0);
}

static void stop(struct sandbox *box)
{
    CHECK_EQ(sandbox_stop(box, &(struct sandbox_usage){ 0 }, &err), 0);
}

/* The output of a shell line that prints nothing on stderr. */
static void expect(struct sandbox *box, const char *line, const char *output)
{
    AUTO(outcome_finish) struct outcome got = run_shell(box, line);

    CHECK_STR(got.err.data, "");
    CHECK_STR(got.out.data, output);
}

CONTRACT(places_on_disk_outlive_the_sandbox)
{
    struct disk disk;

    disk_begin(&disk, 0);
    disk.spec.space = &disk.overlay;
    struct sandbox *first = disk_box(&disk);
    expect(first,
            "cd /workspace && echo one >w && cd /home/agent && mkdir d && echo two >d/h &&"
            "echo three >/tmp/t && echo four >/run/r && echo five >/dev/shm/s &&"
            "stat -c '%n %a %u' /tmp /home/agent /workspace | sed \"s/ $(id -u)\\$/ mine/\"",
            "/tmp 1777 mine\n/home/agent 700 mine\n/workspace 755 mine\n");
    stop(first);
    sandbox_free(first);
    disk_renew(&disk);
    AUTO(sandbox_free) struct sandbox *box = disk_box(&disk);
    expect(box,
            "cat /workspace/w /home/agent/d/h /tmp/t; ls -A /run /dev/shm;"
            "touch /made 2>/dev/null || echo read-only",
            "one\ntwo\nthree\n/dev/shm:\n\n/run:\nread-only\n");
    stop(box);
    disk_end(&disk);
}

CONTRACT(places_on_disk_begin_with_what_lies_below_them)
{
    struct disk disk;
    struct stat st;
    char path[PATH_MAX];

    disk_begin(&disk, MANY);
    disk.spec.space = &disk.overlay;
    for (size_t i = 0; i < MANY; i++) {
        char name[32];
        make_dir(disk.lower[i], "workspace");
        (void)snprintf(name, sizeof(name), "workspace/f%zu", i);
        make_file(disk.lower[i], name, "x");
    }
    make_file(disk.lower[0], "workspace/both", "top\n");
    make_file(disk.lower[MANY - 1], "workspace/both", "bottom\n");
    AUTO(sandbox_free) struct sandbox *box = disk_box(&disk);
    expect(box, "ls | wc -l; cat both; rm both f3; ls | wc -l", "71\ntop\n69\n");
    stop(box);
    CHECK(holds(disk.lower[0], "workspace/both", "top\n"));
    path_in(disk.space, "upper/workspace/f3", path);
    CHECK_EQ(lstat(path, &st), 0);
    CHECK(S_ISCHR(st.st_mode) && st.st_rdev == 0);
    disk_end(&disk);
}

CONTRACT(a_mount_finds_its_place_on_disk)
{
    struct disk disk;
    char source[PATH_MAX];

    disk_begin(&disk, 0);
    make_dir(disk.top, "given");
    path_in(disk.top, "given", source);
    make_file(source, "f", "given\n");
    const struct sandbox_mount mount = { .source = source, .target = "/workspace/a/b" };
    disk.spec.space = &disk.overlay;
    disk.spec.mounts = &mount;
    disk.spec.n_mounts = 1;
    AUTO(sandbox_free) struct sandbox *box = disk_box(&disk);
    expect(box, "cat a/b/f; touch a/mine; touch a/b/g 2>/dev/null || echo read-only",
            "given\nread-only\n");
    stop(box);
    disk_end(&disk);
}

/* Created by a program that could write to the layers, or that made them. */
CONTRACT(a_place_on_disk_that_is_a_link_is_refused)
{
    struct disk disk;
    char outside[PATH_MAX];
    AUTO(sandbox_free) struct sandbox *box = NULL;

    disk_begin(&disk, 0);
    make_dir(disk.top, "outside");
    path_in(disk.top, "outside", outside);
    path_in(disk.space, "upper", disk.layer[0]);
    make_link(outside, disk.layer[0], "workspace");
    disk.spec.space = &disk.overlay;
    int r = create(&disk.spec, &box);
    if (r == -ENOTSUP) {
        disk_end(&disk);
        SKIP("%s", err.message);
    }
    CHECK(r < 0);
    CHECK_EQ(rmdir(outside), 0); /* nothing was created in it */
    disk_end(&disk);
}

CONTRACT(a_root_on_disk_can_be_written_to_everywhere)
{
    struct disk disk;

    root_begin(&disk, 2);
    make_dir(disk.lower[1], "etc");
    make_file(disk.lower[1], "etc/issue", "below\n");
    make_file(disk.lower[1], "etc/hostname", "not this\n");
    make_dir(disk.lower[0], "etc");
    make_file(disk.lower[0], "etc/motd", "above\n");
    make_dir(disk.lower[1], "run");
    make_file(disk.lower[1], "run/secret", "x");
    make_dir(disk.lower[1], "dev");
    make_file(disk.lower[1], "dev/null", "x");
    disk.spec.hostname = "desk";
    AUTO(sandbox_free) struct sandbox *box = disk_box(&disk);
    expect(box,
            "cat /etc/issue /etc/motd /etc/hostname; grep -c localhost /etc/hosts;"
            "echo made >/etc/made; rm /etc/issue; mkdir -p /opt/x; echo >/new; ls -A /run;"
            "echo gone >/dev/null; touch /dev/x 2>/dev/null || echo no; ls -d /proc/1;"
            "pwd; touch /tmp/t /home/agent/h; stat -c %a /tmp /home/agent;"
            "touch /usr/x 2>/dev/null || echo no",
            "below\nabove\ndesk\n2\nno\n/proc/1\n/workspace\n1777\n700\nno\n");
    stop(box);
    CHECK(holds(disk.lower[1], "etc/issue", "below\n"));
    CHECK(holds(disk.space, "upper/etc/made", "made\n"));
    CHECK(!holds(disk.lower[0], "etc/made", "made\n"));
    disk_end(&disk);
}

CONTRACT(a_root_on_disk_is_gone_on_with)
{
    struct disk disk;

    root_begin(&disk, 1);
    struct sandbox *first = disk_box(&disk);
    expect(first, "echo one >/kept; echo two >/tmp/t; rm /sbin", "");
    stop(first);
    sandbox_free(first);
    disk_renew(&disk);
    AUTO(sandbox_free) struct sandbox *box = disk_box(&disk);
    expect(box, "cat /kept /tmp/t; ls -d /sbin 2>/dev/null; echo -n", "one\ntwo\n");
    stop(box);
    disk_end(&disk);
}

/* A hostile root with a link where something must be mounted, and the expected result. */
static void try_hostile(const char *name, const char *link, bool is_refused)
{
    struct disk disk;
    char outside[PATH_MAX];
    AUTO(sandbox_free) struct sandbox *box = NULL;

    root_begin(&disk, 1);
    make_dir(disk.top, "outside");
    path_in(disk.top, "outside", outside);
    make_link(link ? link : outside, disk.lower[0], name);
    int r = create(&disk.spec, &box);
    if (r == -ENOTSUP) {
        disk_end(&disk);
        SKIP("%s", err.message);
    }
    if (is_refused) {
        CHECK(r < 0);
        CHECK(strstr(err.message, "of the root is"));
        CHECK(strstr(err.message, name));
    } else {
        CHECK_STR(r == 0 ? "" : err.message, "");
        expect(box, "ls -d /proc/1; touch /tmp/x /home/agent/x /workspace/x", "/proc/1\n");
        stop(box);
    }
    CHECK_EQ(rmdir(outside), 0);
    disk_end(&disk);
}

CONTRACT(a_link_where_something_is_mounted_in_a_root_is_refused)
{
    static const char *const points[] = { "proc", "dev", "run" };

    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        try_hostile(points[i], NULL, true);
        try_hostile(points[i], "/", true);
        try_hostile(points[i], "../../../etc", true);
        try_hostile(points[i], "usr", true);
    }
}

CONTRACT(a_link_in_a_root_leads_nowhere_but_into_it)
{
    static const char *const places[] = { "tmp", "home", "workspace" };

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        try_hostile(places[i], NULL, true); /* it does not exist in the root */
        try_hostile(places[i], "/var", true);
        try_hostile(places[i], places[i], true); /* itself */
    }
    try_hostile("etc", "/", false);
    try_hostile("tmp", "..", false);
    try_hostile("home", "/", false);
    try_hostile("workspace", "../../..", false);
}

CONTRACT(a_file_of_etc_that_is_a_link_is_left_alone)
{
    struct disk disk;

    root_begin(&disk, 1);
    make_dir(disk.lower[0], "etc");
    make_link("/etc/passwd", disk.lower[0], "etc/hosts");
    make_link("../../../../etc/passwd", disk.lower[0], "etc/resolv.conf");
    AUTO(sandbox_free) struct sandbox *box = disk_box(&disk);
    expect(box, "readlink /etc/hosts; cat /etc/hosts 2>/dev/null; cat /etc/hostname",
            "/etc/passwd\ncarrel\n");
    stop(box);
    disk_end(&disk);
}

CONTRACT(a_program_cannot_reach_the_layers_of_its_root)
{
    struct disk disk;

    root_begin(&disk, 1);
    AUTO(sandbox_free) struct sandbox *box = disk_box(&disk);
    expect(box, "cut -d' ' -f2,3 /proc/mounts | grep overlay", "/ overlay\n");
    expect(box, "ls -d /layers* /own /empty 2>/dev/null; cd /proc/1/cwd 2>/dev/null || echo no",
            "no\n");
    stop(box);
    disk_end(&disk);
}

CONTRACT(one_root_is_enough)
{
    struct disk disk;
    AUTO(sandbox_free) struct sandbox *box = NULL;

    root_begin(&disk, 1);
    disk.spec.space = &disk.overlay;
    CHECK_EQ(create(&disk.spec, &box), -EINVAL);
    disk.spec.space = NULL;
    disk.spec.root = "/";
    CHECK_EQ(create(&disk.spec, &box), -EINVAL);
    disk_end(&disk);
}

/* What a program sees in all its private directories, one line for each file. */
static void look(struct sandbox *box, struct buf *out)
{
    AUTO(outcome_finish)
    struct outcome got = run_shell(box,
            /* the size of a directory depends on its file system */
            "cd / && find tmp home/agent workspace \\( -type d -printf '%p %y %m %T@\\n' \\) "
            "-o "
            "-printf '%p %y %m %s %l %T@\\n' | sort &&"
            "find tmp home/agent workspace -type f -size -9k | sort | xargs -d '\\n' md5sum");

    CHECK_STR(got.err.data, "");
    buf_add(out, got.out.data, got.out.len);
}

/* The stack as a `space`: `top` is writable. */
static void use_stack(
        struct disk *disk, const struct layer *stack, size_t n, const struct layer *top)
{
    for (size_t i = 0; i < n; i++)
        disk->lower[i] = stack[i].upper;
    disk->lower[n] = NULL;
    disk->overlay = (struct sandbox_overlay){
        .lower = disk->lower, .space = top->path, .upper = "upper", .work = "work"
    };
    disk->spec.space = &disk->overlay;
}

static void look_at_stack(
        struct disk *disk, const struct layer *stack, size_t n, struct buf *out)
{
    struct layer top = LAYER_INIT;

    CHECK_EQ(layer_new(disk->top, &top, &err), 0);
    use_stack(disk, stack, n, &top);
    AUTO(sandbox_free) struct sandbox *box = disk_box(disk);
    look(box, out);
    stop(box);
    CHECK_EQ(layer_remove(&top, &err), 0);
}

CONTRACT(a_stack_looks_the_same_when_it_is_copied_or_merged)
{
    static const char *const steps[] = {
        "mkdir -p a/b/c d e; for i in 1 2 3 4; do echo $i >a/b/f$i; echo $i >d/f$i; done;"
        "ln -s f1 a/l; ln a/b/f1 a/h; echo x >e/x; touch -d 2001-01-01 a/b/f2; chmod 600 d/f1",
        "rm -r d; mkdir d; echo new >d/new; rm a/b/f2; echo more >>a/b/f3; mv a/b/f4 a/g;"
        "rm -r e; echo file >e; mkdir -p /tmp/t && echo t >/tmp/t/t",
        "rm e; mkdir e; echo y >e/y; rm -r a/b/c; rm d/new; mkdir -m 500 a/locked; rm a/l;"
        "echo home >/home/agent/h; truncate -s 1G sparse",
    };
    struct disk disk;
    struct layer stack[4] = { LAYER_INIT, LAYER_INIT, LAYER_INIT, LAYER_INIT };
    AUTO(layer_close) struct layer other = LAYER_INIT;
    AUTO(buf_finish) struct buf was = BUF_INIT(1U << 20);
    AUTO(buf_finish) struct buf is = BUF_INIT(1U << 20);
    size_t n = 0;

    disk_begin(&disk, 0);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct layer top = LAYER_INIT;
        CHECK_EQ(layer_new(disk.top, &top, &err), 0);
        use_stack(&disk, stack, n, &top);
        AUTO(sandbox_free) struct sandbox *box = disk_box(&disk);
        expect(box, steps[i], "");
        stop(box);
        CHECK_EQ(layer_seal(&top, &err), 0);
        memmove(stack + 1, stack, n++ * sizeof(*stack));
        stack[0] = top;
    }
    look_at_stack(&disk, stack, n, &was);

    CHECK_EQ(layer_copy(disk.top, &stack[0], &other, &err), 0);
    struct layer first = stack[0];
    stack[0] = other;
    look_at_stack(&disk, stack, n, &is);
    CHECK_STR(is.data, was.data);
    stack[0] = first;
    layer_close(other);
    other = LAYER_INIT;

    const char *const below[] = { stack[n - 1].upper, NULL };
    CHECK_EQ(layer_merge(disk.top, stack, n - 1, below, NULL, &other, &err), 0);
    const struct layer fewer[] = { other, stack[n - 1] };
    buf_finish(is);
    is = BUF_INIT(1U << 20);
    look_at_stack(&disk, fewer, 2, &is);
    CHECK_STR(is.data, was.data);
    for (size_t i = 0; i < n; i++)
        layer_close(stack[i]);
    disk_end(&disk);
}
