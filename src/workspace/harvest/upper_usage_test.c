#include "workspace/upper_fixture.h"
#include <signal.h>
#include <sys/wait.h>

TEST(usage_counts_every_inode_once)
{
    struct place place;
    uint64_t bytes = 0;
    uint64_t inodes = 0;
    AUTO(free) char *text = calloc(1, 100001);

    CHECK(text);
    make_place(&place);
    CHECK_EQ(upper_usage(place.upper, UINT64_MAX, &bytes, &inodes, &err), 0);
    CHECK_EQ(inodes, 0);
    memset(text, 'x', 100000);
    put(&place, "upper/file", text);
    put_dir(&place, "upper/d");
    CHECK_EQ(symlinkat("/", place.upper, "d/link"), 0);
    CHECK_EQ(linkat(place.upper, "file", place.upper, "d/again", 0), 0);
    CHECK_EQ(linkat(place.upper, "file", place.upper, "d/and again", 0), 0);
    CHECK_EQ(upper_usage(place.upper, UINT64_MAX, &bytes, &inodes, &err), 0);
    CHECK_EQ(inodes, 3);
    CHECK(bytes > 99000 && bytes < 150000);
    drop_place(&place);
}

/* Back and forth, until it is killed. */
static pid_t begin_to_move(int upper, const char *one, const char *other)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0)
        for (;;)
            if (renameat(upper, one, upper, other) < 0 ||
                    renameat(upper, other, upper, one) < 0)
                _exit(1);
    return pid;
}

/* Counts beside a process that moves a directory about below `below`. */
static void count_beside_moves(struct place *place, const char *below)
{
    char path[256];
    char one[160];
    char other[160];
    uint64_t bytes = 0;
    uint64_t inodes = 0;
    int status = 0;

    (void)snprintf(one, sizeof(one), "%sfrom/d", below);
    (void)snprintf(other, sizeof(other), "%sto/d", below);
    (void)snprintf(path, sizeof(path), "upper/%sfrom", below);
    put_dir(place, path);
    (void)snprintf(path, sizeof(path), "upper/%sto", below);
    put_dir(place, path);
    (void)snprintf(path, sizeof(path), "upper/%s", one);
    put_dir(place, path);
    for (int i = 0; i < 50; i++) {
        (void)snprintf(path, sizeof(path), "upper/%s/%d", one, i);
        put_dir(place, path);
    }
    pid_t pid = begin_to_move(place->upper, one, other);
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(upper_usage(place->upper, UINT64_MAX, &bytes, &inodes, &err), 0);
        CHECK(inodes >= 2); /* what is beside the moved one is counted every time */
    }
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status)); /* it did not fail */
}

TEST(directories_may_be_moved_while_they_are_counted)
{
    struct place place;

    make_place(&place);
    count_beside_moves(&place, "");
    drop_place(&place);
}

TEST(deep_directories_may_be_moved_while_they_are_counted)
{
    struct place place;
    char deep[128] = "";
    char path[256];

    make_place(&place);
    for (int i = 0; i < 40; i++) {
        strcat(deep, "x/");
        (void)snprintf(path, sizeof(path), "upper/%s", deep);
        put_dir(&place, path);
    }
    count_beside_moves(&place, deep);
    drop_place(&place);
}

static mode_t mode_of(const struct place *place, const char *path)
{
    struct stat st;

    CHECK_EQ(fstatat(place->fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

/* Asked by an ordinary user, who is the owner: root may enter everything. */
TEST(what_is_in_shut_directories_counts_and_they_stay_shut)
{
    static const mode_t modes[] = { 0, 0400, 0200, 0100, 01077 };
    AUTO(free) char *text = calloc(1, 100001);

    CHECK(text);
    memset(text, 'x', 100000);
    if (geteuid() == 0 && (setegid(65534) < 0 || seteuid(65534) < 0))
        SKIP("another user cannot be had here: %s", strerror(errno));
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct place place;
        uint64_t bytes = 0;
        uint64_t inodes = 0;
        make_place(&place);
        put_dir(&place, "upper/d");
        put_dir(&place, "upper/d/e");
        put(&place, "upper/d/e/hidden", text);
        put(&place, "upper/z", "");
        CHECK_EQ(fchmodat(place.fd, "upper/d/e", modes[i], 0), 0);
        CHECK_EQ(fchmodat(place.fd, "upper/d", modes[i], 0), 0);
        CHECK_EQ(upper_usage(place.upper, UINT64_MAX, &bytes, &inodes, &err), 0);
        CHECK_EQ(inodes, 4);
        CHECK(bytes > 99000);
        CHECK_EQ(mode_of(&place, "upper/d"), modes[i]);
        CHECK_EQ(fchmodat(place.fd, "upper/d", 0700, 0), 0);
        CHECK_EQ(mode_of(&place, "upper/d/e"), modes[i]);
        drop_place(&place);
    }
    /* Whoever looks for leaks at the end must be who began. */
    CHECK(geteuid() == getuid() || (seteuid(getuid()) == 0 && setegid(getgid()) == 0));
}
