#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "layer/layer.h"
#include "layer/merge.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define N 4

static struct carrel_error err;
static char state[64];
static struct layer layers[N];

static void begin(void)
{
    (void)snprintf(state, sizeof(state), "/tmp/merge-test-XXXXXX");
    CHECK(test_mkdtemp(state));
    for (size_t i = 0; i < N; i++) {
        layers[i] = LAYER_INIT;
        CHECK_EQ(layer_new(state, &layers[i], &err), 0);
    }
    if (setxattr(layers[0].upper, "user.test", "x", 1, 0) < 0)
        SKIP("no attributes of users on the file system of /tmp");
    CHECK_EQ(removexattr(layers[0].upper, "user.test"), 0);
}

static void end(void)
{
    AUTO(fd_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < N; i++)
        layer_close(layers[i]);
    CHECK_EQ(tree_remove(tmp, state + strlen("/tmp/"), &err), 0);
}

static const char *in(const struct layer *layer, const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", layer->upper, name);
    return path;
}

static void put(size_t i, const char *name, const char *text)
{
    AUTO(fd_close)
    int fd = open(in(&layers[i], name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

static void put_dir(size_t i, const char *name, bool is_opaque)
{
    CHECK_EQ(mkdir(in(&layers[i], name), 0755), 0);
    if (is_opaque)
        CHECK_EQ(setxattr(in(&layers[i], name), "user.overlay.opaque", "y", 1, 0), 0);
}

static void put_whiteout(size_t i, const char *name)
{
    CHECK_EQ(mknod(in(&layers[i], name), S_IFCHR, 0), 0);
}

/* What an overlay of these would show, in the words of its definition: first the topmost. */
static void view(const struct layer **stack, size_t n, const char *dir, struct buf *out)
{
    char names[64][256];
    size_t n_names = 0;

    for (size_t i = 0; i < n; i++) {
        DIR *list = opendir(in(stack[i], dir));
        const struct dirent *entry;
        while (list && (entry = readdir(list))) {
            size_t k = 0;
            while (k < n_names && strcmp(names[k], entry->d_name) != 0)
                k++;
            if (k == n_names && entry->d_name[0] != '.')
                (void)snprintf(names[n_names++], 256, "%s", entry->d_name);
        }
        if (list)
            (void)closedir(list);
    }
    qsort(names, n_names, sizeof(names[0]), (int (*)(const void *, const void *))strcmp);
    for (size_t k = 0; k < n_names; k++) {
        const struct layer *below[N + 1];
        size_t n_below = 0;
        char path[1024];
        char text[64] = "";
        char mark;
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[k]);
        for (size_t i = 0; i < n; i++) {
            if (lstat(in(stack[i], path), &st) < 0)
                continue;
            if (!S_ISDIR(st.st_mode)) {
                if (n_below == 0 && S_ISREG(st.st_mode)) {
                    (void)fd_read_file(AT_FDCWD, in(stack[i], path), text, sizeof(text));
                    buf_addf(out, "%s=%s ", path + 2, text);
                }
                break;
            }
            below[n_below++] = stack[i];
            if (getxattr(in(stack[i], path), "user.overlay.opaque", &mark, 1) == 1)
                break;
        }
        if (n_below > 0) {
            buf_addf(out, "%s/ ", path + 2);
            view(below, n_below, path, out);
        }
    }
}

/* Merges layers 0 to 2; before and after, above layer 3, the same must be seen. */
static void check_merge(const char *expected)
{
    const struct layer *before[N] = { &layers[0], &layers[1], &layers[2], &layers[3] };
    AUTO(buf_finish) struct buf was = BUF_INIT(1U << 16);
    AUTO(buf_finish) struct buf is = BUF_INIT(1U << 16);
    AUTO(layer_close) struct layer merged = LAYER_INIT;

    buf_add_str(&was, "");
    buf_add_str(&is, "");
    view(before, N, ".", &was);
    for (size_t i = 0; i < N; i++)
        CHECK_EQ(layer_seal(&layers[i], &err), 0);
    const char *const below[] = { layers[3].upper, NULL };
    if (layer_merge(state, layers, N - 1, below, NULL, &merged, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    const struct layer *after[] = { &merged, &layers[3] };
    view(after, 2, ".", &is);
    CHECK_STR(is.data, was.data);
    if (expected)
        CHECK_STR(is.data, expected);
    CHECK(merged.is_sealed);
}

TEST(the_topmost_counts)
{
    begin();
    put(0, "a", "0");
    put(1, "a", "1");
    put(1, "b", "1");
    put(3, "c", "3");
    put_dir(0, "d", false);
    put_dir(2, "d", false);
    put(0, "d/x", "0");
    put(2, "d/x", "2");
    put(2, "d/y", "2");
    check_merge("a=0 b=1 c=3 d/ d/x=0 d/y=2 ");
    end();
}

TEST(what_was_removed_stays_so_below_the_merged_ones)
{
    begin();
    put_whiteout(0, "a");
    put(2, "a", "2");
    put(3, "a", "3");
    put_whiteout(1, "b");
    put(3, "b", "3");
    put(0, "c", "0");
    put_whiteout(1, "c");
    check_merge("c=0 ");
    end();
}

TEST(a_directory_that_was_made_anew_hides_the_old_one)
{
    begin();
    put_dir(0, "d", true);
    put(0, "d/new", "0");
    put_dir(1, "d", false);
    put(1, "d/old", "1");
    put_dir(3, "d", false);
    put(3, "d/older", "3");
    put_dir(0, "e", false);
    put_whiteout(1, "e");
    put_dir(3, "e", false);
    put(3, "e/older", "3");
    put_dir(0, "f", false);
    put(2, "f", "file");
    put_dir(3, "f", false);
    put(3, "f/older", "3");
    check_merge("d/ d/new=0 e/ f/ ");
    end();
}

TEST(a_whiteout_that_hides_nothing_would_be_seen_and_is_left_out)
{
    struct stat st;
    AUTO(layer_close) struct layer merged = LAYER_INIT;

    begin();
    put_whiteout(0, "a"); /* hides that of the merged ones only */
    put(1, "a", "1");
    put_dir(0, "d", true);
    put_whiteout(0, "d/x"); /* what it hid is hidden by the directory */
    put_dir(3, "d", false);
    put(3, "d/x", "3");
    put_whiteout(0, "b");
    put_whiteout(2, "b"); /* hidden there already */
    put(3, "b", "3");
    put_whiteout(0, "c");
    put(3, "c", "3");
    for (size_t i = 0; i < N; i++)
        CHECK_EQ(layer_seal(&layers[i], &err), 0);
    const char *const below[] = { layers[2].upper, layers[3].upper, NULL };
    CHECK_EQ(layer_merge(state, layers, 2, below, NULL, &merged, &err), 0);
    CHECK_EQ(lstat(in(&merged, "a"), &st), -1);
    CHECK_EQ(lstat(in(&merged, "d/x"), &st), -1);
    CHECK_EQ(lstat(in(&merged, "b"), &st), -1);
    CHECK_EQ(lstat(in(&merged, "c"), &st), 0);
    CHECK(S_ISCHR(st.st_mode));
    end();
}

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245U + 12345U;
    return *seed >> 16;
}

static void fill_at_random(size_t i, const char *dir, unsigned depth, unsigned *seed)
{
    for (int name = 'a'; name <= 'd'; name++) {
        char path[256];
        char text[16];
        (void)snprintf(path, sizeof(path), "%s%s%c", dir, dir[0] ? "/" : "", name);
        unsigned what = next_random(seed) % 6;
        if (what == 0) {
            (void)snprintf(text, sizeof(text), "%zu", i);
            put(i, path, text);
        } else if (what == 1) {
            put_whiteout(i, path);
        } else if (what < 5 && depth > 0) {
            put_dir(i, path, what == 4);
            fill_at_random(i, path, depth - 1, seed);
        }
    }
}

TEST(any_stack_looks_the_same_when_merged)
{
    for (unsigned seed = 1; seed <= 40; seed++) {
        unsigned state_of_it = seed;
        begin();
        for (size_t i = 0; i < N; i++)
            fill_at_random(i, "", 3, &state_of_it);
        check_merge(NULL);
        end();
    }
}

TEST(a_merged_layer_holds_no_data_of_its_own)
{
    struct stat was;
    struct stat is;
    AUTO(layer_close) struct layer merged = LAYER_INIT;

    begin();
    put(2, "big", "data");
    CHECK_EQ(symlink("/etc/passwd", in(&layers[1], "link")), 0);
    for (size_t i = 0; i < N; i++)
        CHECK_EQ(layer_seal(&layers[i], &err), 0);
    CHECK_EQ(layer_merge(state, layers, N, NULL, NULL, &merged, &err), 0);
    CHECK_EQ(lstat(in(&layers[2], "big"), &was), 0);
    CHECK_EQ(lstat(in(&merged, "big"), &is), 0);
    CHECK_EQ(is.st_ino, was.st_ino);
    CHECK_EQ(lstat(in(&merged, "link"), &is), 0);
    CHECK(S_ISLNK(is.st_mode));
    end();
}

TEST(a_stack_that_is_too_high_becomes_one)
{
    struct layer stack[LAYER_MAX_CHAIN];
    size_t n = 0;
    struct stat st;

    begin();
    put(0, "top", "");
    put(1, "bottom", "");
    for (size_t i = 0; i < LAYER_MAX_CHAIN; i++) {
        stack[i] = LAYER_INIT;
        size_t which = i == 0 ? 0 : i == LAYER_MAX_CHAIN - 1 ? 1 : 2;
        CHECK_EQ(layer_seal(&layers[which], &err), 0);
        CHECK_EQ(layer_open(state, layers[which].id, &stack[i], &err), 0);
    }
    n = LAYER_MAX_CHAIN - 2;
    CHECK_EQ(layer_shorten(state, stack, &n, NULL, NULL, &err), 0);
    CHECK_EQ(n, LAYER_MAX_CHAIN - 2);
    n = LAYER_MAX_CHAIN;
    CHECK_EQ(layer_shorten(state, stack, &n, NULL, NULL, &err), 0);
    CHECK_EQ(n, 1);
    CHECK_EQ(lstat(in(&stack[0], "top"), &st), 0);
    CHECK_EQ(lstat(in(&stack[0], "bottom"), &st), 0);
    layer_close(stack[0]);
    end();
}

TEST(only_sealed_layers_are_merged)
{
    AUTO(layer_close) struct layer merged = LAYER_INIT;

    begin();
    CHECK_EQ(layer_merge(state, layers, N, NULL, NULL, &merged, &err), -EINVAL);
    end();
}

/* A copy of layer 0. */
static void copy(struct layer *out)
{
    if (layer_copy(state, &layers[0], out, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    CHECK(out->is_sealed);
    CHECK(faccessat(out->dir, "links", F_OK, 0) < 0);
    CHECK(faccessat(out->dir, "work", F_OK, 0) < 0);
}

TEST(a_copy_has_all_that_an_overlay_reads)
{
    const struct timespec times[] = { { 1000000000, 7 }, { 1234567890, 123456789 } };
    char value[8];
    struct stat st;
    AUTO(layer_close) struct layer made = LAYER_INIT;

    begin();
    put(0, "file", "text");
    CHECK_EQ(chmod(in(&layers[0], "file"), 04751), 0);
    CHECK_EQ(setxattr(in(&layers[0], "file"), "user.mine", "v", 1, 0), 0);
    CHECK_EQ(setxattr(in(&layers[0], "file"), "user.overlay.overlay.x", "v", 1, 0), 0);
    CHECK_EQ(setxattr(in(&layers[0], "file"), "user.overlay.origin", "v", 1, 0), 0);
    CHECK_EQ(utimensat(AT_FDCWD, in(&layers[0], "file"), times, 0), 0);
    put_whiteout(0, "gone");
    put_dir(0, "opaque", true);
    CHECK_EQ(symlink("to", in(&layers[0], "link")), 0);
    CHECK_EQ(utimensat(AT_FDCWD, in(&layers[0], "link"), times, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_EQ(mkfifo(in(&layers[0], "pipe"), 0640), 0);
    put_dir(0, "dir", false);
    put(0, "dir/inner", "");
    CHECK_EQ(chmod(in(&layers[0], "dir"), 01555), 0);
    CHECK_EQ(utimensat(AT_FDCWD, in(&layers[0], "dir"), times, 0), 0);
    copy(&made);
    CHECK_EQ(lstat(in(&made, "file"), &st), 0);
    CHECK_EQ(st.st_mode & 07777, 04751);
    CHECK_EQ(st.st_mtim.tv_sec, times[1].tv_sec);
    CHECK_EQ(st.st_mtim.tv_nsec, times[1].tv_nsec);
    CHECK_EQ(getxattr(in(&made, "file"), "user.mine", value, 8), 1);
    CHECK_EQ(getxattr(in(&made, "file"), "user.overlay.overlay.x", value, 8), 1);
    CHECK_EQ(getxattr(in(&made, "file"), "user.overlay.origin", value, 8), -1);
    CHECK_EQ(lstat(in(&made, "gone"), &st), 0);
    CHECK(S_ISCHR(st.st_mode) && st.st_rdev == 0);
    CHECK_EQ(getxattr(in(&made, "opaque"), "user.overlay.opaque", value, 8), 1);
    CHECK_EQ(lstat(in(&made, "link"), &st), 0);
    CHECK(S_ISLNK(st.st_mode) && st.st_mtim.tv_sec == times[1].tv_sec);
    CHECK_EQ(lstat(in(&made, "pipe"), &st), 0);
    CHECK(S_ISFIFO(st.st_mode) && (st.st_mode & 07777) == 0640);
    CHECK_EQ(lstat(in(&made, "dir"), &st), 0);
    CHECK_EQ(st.st_mode & 07777, 01555);
    CHECK_EQ(st.st_mtim.tv_sec, times[1].tv_sec);
    end();
}

/* From a tmpfs, which holds 64 KB, mostly to an ext4, which holds 4. */
TEST(an_attribute_that_does_not_fit_is_left_out)
{
    static const char large[20000];
    char from[] = "/dev/shm/merge-test-XXXXXX";
    char value[8];

    begin();
    if (!mkdtemp(from))
        SKIP("no tmpfs at /dev/shm");
    AUTO(fd_close) int source = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int shm = open("/dev/shm", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(source, "upper", 0755) == 0 && mkdirat(source, "upper/dir", 0755) == 0);
    AUTO(fd_close) int dir = openat(source, "upper/dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fsetxattr(dir, "user.large", large, sizeof(large), 0) < 0) {
        CHECK_EQ(tree_remove(shm, from + strlen("/dev/shm/"), &err), 0);
        end();
        SKIP("no large attributes on the file system of /dev/shm");
    }
    CHECK_EQ(fsetxattr(dir, "user.filler", large, 3900, 0), 0);
    CHECK_EQ(fsetxattr(dir, "user.small", "v", 1, 0), 0);
    CHECK_EQ(fsetxattr(dir, "user.overlay.opaque", "y", 1, 0), 0);
    if (layer_copy_parts(source, layers[0].dir, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    CHECK_EQ(getxattr(in(&layers[0], "dir"), "user.small", value, 8), 1);
    CHECK_EQ(getxattr(in(&layers[0], "dir"), "user.overlay.opaque", value, 8), 1);
    CHECK_EQ(tree_remove(shm, from + strlen("/dev/shm/"), &err), 0);
    end();
}

TEST(files_with_several_names_have_them_in_a_copy)
{
    struct stat a;
    struct stat b;
    struct stat was;
    AUTO(layer_close) struct layer made = LAYER_INIT;
    char path[PATH_MAX];

    begin();
    put(0, "a", "text");
    put_dir(0, "d", false);
    (void)snprintf(path, sizeof(path), "%s", in(&layers[0], "a"));
    CHECK_EQ(link(path, in(&layers[0], "d/b")), 0);
    copy(&made);
    CHECK_EQ(lstat(in(&made, "a"), &a), 0);
    CHECK_EQ(lstat(in(&made, "d/b"), &b), 0);
    CHECK_EQ(lstat(path, &was), 0);
    CHECK_EQ(a.st_ino, b.st_ino);
    CHECK_EQ(a.st_nlink, 2);
    CHECK(a.st_ino != was.st_ino);
    end();
}

TEST(holes_stay_holes)
{
    struct stat st;
    char text[8] = "";
    AUTO(layer_close) struct layer made = LAYER_INIT;

    begin();
    {
        AUTO(fd_close)
        int fd = open(in(&layers[0], "sparse"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        CHECK_EQ(pwrite(fd, "begin", 5, 0), 5);
        CHECK_EQ(pwrite(fd, "end", 3, (off_t)1 << 34), 3);
        CHECK_EQ(ftruncate(fd, (off_t)1 << 36), 0);
    }
    copy(&made);
    AUTO(fd_close) int fd = open(in(&made, "sparse"), O_RDONLY | O_CLOEXEC);
    CHECK_EQ(fstat(fd, &st), 0);
    CHECK_EQ(st.st_size, (off_t)1 << 36);
    CHECK(st.st_blocks * 512 < 1 << 20);
    CHECK_EQ(pread(fd, text, 3, (off_t)1 << 34), 3);
    CHECK_STR(text, "end");
    CHECK_EQ(pread(fd, text, 5, 0), 5);
    CHECK_STR(text, "begin");
    end();
}

/* Modes that forbid reading also stop an ordinary user who owns the files. */
TEST(what_its_owner_may_not_read_is_copied_and_left_as_it_was)
{
    struct stat st;
    AUTO(layer_close) struct layer made = LAYER_INIT;

    begin();
    put_dir(0, "dir", false);
    put_dir(0, "dir/in", false);
    put(0, "dir/in/file", "text");
    CHECK_EQ(chmod(in(&layers[0], "dir/in/file"), 0), 0);
    CHECK_EQ(chmod(in(&layers[0], "dir/in"), 0), 0);
    CHECK_EQ(chmod(in(&layers[0], "dir"), 0200), 0);
    copy(&made);
    const struct layer *both[] = { &layers[0], &made };
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        CHECK_EQ(lstat(in(both[i], "dir"), &st), 0);
        CHECK_EQ(st.st_mode & 07777, 0200);
        CHECK_EQ(chmod(in(both[i], "dir"), 0700), 0);
        CHECK_EQ(lstat(in(both[i], "dir/in"), &st), 0);
        CHECK_EQ(st.st_mode & 07777, 0);
        CHECK_EQ(chmod(in(both[i], "dir/in"), 0700), 0);
        CHECK_EQ(lstat(in(both[i], "dir/in/file"), &st), 0);
        CHECK_EQ(st.st_mode & 07777, 0);
        CHECK_EQ(st.st_size, 4);
    }
    end();
}

/*
 * A program that should be paused moves directories and puts links in their place while they
 * are copied: the copy fails, or is incomplete; it never has files from outside.
 */
TEST(a_copy_is_not_led_out_of_its_tree)
{
    char outside[128];
    char path[192];
    struct stat st;

    begin();
    (void)snprintf(outside, sizeof(outside), "%s/outside", state);
    CHECK_EQ(mkdir(outside, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/secret", outside);
    CHECK_EQ(mknod(path, S_IFREG | 0644, 0), 0);
    CHECK_EQ(chmod(path, 0140), 0);
    put_dir(0, "a", false);
    put_dir(0, "a/b", false);
    put_dir(0, "a/b/c", false);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(path, sizeof(path), "a/b/c/f%d", i);
        put(0, path, "x");
    }
    for (size_t i = 1; i < N; i++) /* names that are outside, too, and have something there */
        put_dir(0, layers[i].id, false);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        AUTO(fd_close) int top = open(layers[0].upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (;;) {
            (void)renameat(top, "a/b/c", top, "c");
            (void)symlinkat(outside, top, "a/b/c");
            (void)unlinkat(top, "a/b/c", 0);
            (void)renameat(top, "c", top, "a/b/c");
        }
    }
    for (int i = 0; i < 60; i++) {
        AUTO(layer_close) struct layer made = LAYER_INIT;
        if (layer_copy(state, &layers[0], &made, &err) < 0)
            continue;
        if (lstat(in(&made, "a/b/c"), &st) == 0 && S_ISDIR(st.st_mode))
            CHECK_EQ(lstat(in(&made, "a/b/c/secret"), &st), -1);
        for (size_t k = 1; k < N; k++) {
            (void)snprintf(path, sizeof(path), "%s/upper", layers[k].id);
            CHECK_EQ(lstat(in(&made, path), &st), -1);
        }
        CHECK_EQ(layer_remove(&made, &err), 0);
    }
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    (void)snprintf(path, sizeof(path), "%s/secret", outside);
    CHECK_EQ(lstat(path, &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0140);
    end();
}

/* Deeper than a path can be, and than there are descriptors. */
TEST(depth_does_not_matter)
{
    enum { DEPTH = 5000 };
    AUTO(layer_close) struct layer made = LAYER_INIT;
    int depth = 0;

    begin();
    int at = open(layers[0].upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        CHECK_EQ(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        (void)close(at);
        at = next;
    }
    (void)close(at);
    copy(&made);
    at = open(made.upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (;; depth++) {
        int next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        if (next < 0)
            break;
        at = next;
    }
    CHECK_EQ(depth, DEPTH);
    end();
}
