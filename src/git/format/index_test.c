#include "base/err.h"
#include "base/fd.h"
#include "base/sha1.h"
#include "git/format/index.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct carrel_error err;

/* An index file while it is put together. */
static unsigned char image[4096];
static size_t len;

static void add_bytes(const void *data, size_t n)
{
    CHECK(len + n <= sizeof(image));
    memcpy(image + len, data, n);
    len += n;
}

static void add_u32(uint32_t value)
{
    const unsigned char bytes[4] = { (unsigned char)(value >> 24), (unsigned char)(value >> 16),
        (unsigned char)(value >> 8), (unsigned char)value };
    add_bytes(bytes, sizeof(bytes));
}

static void start(uint32_t version, uint32_t n)
{
    len = 0;
    add_bytes("DIRC", 4);
    add_u32(version);
    add_u32(n);
}

/* `flags` beside the length of the name. */
static void add_entry(const char *path, unsigned flags)
{
    static const char zeros[32];
    size_t start_at = len;
    size_t path_len = strlen(path);

    add_u32(1000); /* ctime */
    add_u32(1);
    add_u32(2000); /* mtime */
    add_u32(2);
    add_u32(3); /* device, inode */
    add_u32(4);
    add_u32(0100644);
    add_u32(500); /* owner */
    add_u32(600);
    add_u32(77); /* size */
    add_bytes(zeros, 20);
    flags |= path_len < 0xfff ? (unsigned)path_len : 0xfff;
    const unsigned char two[2] = { (unsigned char)(flags >> 8), (unsigned char)flags };
    add_bytes(two, 2);
    add_bytes(path, path_len);
    add_bytes(zeros, 8 - (len - start_at) % 8);
}

static int read_it(struct index **out)
{
    unsigned char digest[SHA1_BYTES];
    struct sha1 sha;
    AUTO(fd_close) int fd = memfd_create("index", MFD_CLOEXEC);

    sha1_init(&sha);
    sha1_add(&sha, image, len);
    sha1_finish(&sha, digest);
    CHECK_EQ(fd_write_all(fd, image, len), 0);
    CHECK_EQ(fd_write_all(fd, digest, sizeof(digest)), 0);
    return index_read(fd, false, out, &err);
}

static int refused(void)
{
    AUTO(index_free) struct index *index = NULL;

    return read_it(&index);
}

TEST(entries_come_out_as_they_went_in)
{
    AUTO(index_free) struct index *index = NULL;

    start(2, 3);
    add_entry("a", 0);
    add_entry("a-b", 0);
    add_entry("a/b", 0);
    CHECK_EQ(read_it(&index), 0);
    CHECK_EQ(index->n, 3);
    CHECK_STR(index->entries[1].path, "a-b");
    CHECK_EQ(index->entries[1].path_len, 3);
    CHECK_EQ(index->entries[1].mode, 0100644);
    CHECK_EQ(index->entries[1].mtime_s, 2000);
    CHECK_EQ(index->entries[1].size, 77);
}

TEST(entries_and_directories_are_found)
{
    AUTO(index_free) struct index *index = NULL;

    start(2, 4);
    add_entry("a-b", 0);
    add_entry("a/b/c", 0);
    add_entry("a0", 0);
    add_entry("z", 0);
    CHECK_EQ(read_it(&index), 0);
    CHECK(index_find(index, "a-b") == &index->entries[0]);
    CHECK(index_find(index, "z") == &index->entries[3]);
    CHECK(!index_find(index, "a"));
    CHECK(!index_find(index, "zz"));
    CHECK(index_has_dir(index, "a", 1));
    CHECK(index_has_dir(index, "a/b/c", 3));
    CHECK(!index_has_dir(index, "a/b/c", 5));
    CHECK(!index_has_dir(index, "z", 1));
    CHECK(!index_has_dir(index, "a-", 2));
}

TEST(an_empty_index_is_an_index)
{
    AUTO(index_free) struct index *index = NULL;

    start(2, 0);
    CHECK_EQ(read_it(&index), 0);
    CHECK_EQ(index->n, 0);
    CHECK(!index_find(index, "a"));
    CHECK(!index_has_dir(index, "a", 1));
}

TEST(what_is_not_a_plain_index_is_refused)
{
    start(4, 0);
    CHECK_EQ(refused(), -EBADMSG);
    start(2, 2);
    add_entry("a", 0);
    CHECK_EQ(refused(), -EBADMSG); /* claims more than it has */
    start(2, UINT32_MAX);
    CHECK_EQ(refused(), -EBADMSG);
    start(2, 2);
    add_entry("b", 0);
    add_entry("a", 0);
    CHECK_EQ(refused(), -EBADMSG); /* not sorted */
    start(2, 2);
    add_entry("a", 0);
    add_entry("a", 0);
    CHECK_EQ(refused(), -EBADMSG); /* twice */
    start(2, 1);
    add_entry("a", 0x8000);
    CHECK_EQ(refused(), -EBADMSG); /* git is told not to look */
    start(2, 1);
    add_entry("a", 0x1000);
    CHECK_EQ(refused(), -EBADMSG); /* a conflict */
    start(2, 1);
    add_entry("", 0);
    CHECK_EQ(refused(), -EBADMSG);
    start(2, 0);
    add_bytes("link", 4);
    add_u32(0);
    CHECK_EQ(refused(), -EBADMSG); /* a split index leads to another file */
    start(2, 0);
    add_bytes("TREE", 4);
    add_u32(1);
    CHECK_EQ(refused(), -EBADMSG); /* an extension longer than the file */
}

TEST(a_wrong_checksum_is_refused)
{
    AUTO(index_free) struct index *index = NULL;
    AUTO(fd_close) int fd = memfd_create("index", MFD_CLOEXEC);

    start(2, 0);
    CHECK_EQ(fd_write_all(fd, image, sizeof(image)), 0);
    CHECK_EQ(index_read(fd, false, &index, &err), -EBADMSG);
    CHECK_STR(err.message, "an index with a wrong checksum");
}

static void run(const char *line)
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        (void)execl("/bin/sh", "sh", "-euc", line, (char *)NULL);
        _exit(126);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

/* git itself reads what we write, in both object formats. */
static void change_owner(const char *format)
{
    char dir[] = "/tmp/index-test-XXXXXX";
    AUTO(index_free) struct index *index = NULL;

    CHECK(test_mkdtemp(dir));
    CHECK_EQ(chdir(dir), 0);
    CHECK_EQ(setenv("HOME", dir, 1), 0);
    CHECK_EQ(setenv("GIT_CONFIG_NOSYSTEM", "1", 1), 0);
    CHECK_EQ(setenv("FORMAT", format, 1), 0);
    run("unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE; git init -q --object-format=$FORMAT .; "
        "mkdir d; for i in 1 2 3 4 5 6 7 8 9; do echo $i >d/file$i; done; git add -A; git "
        "write-tree "
        ">/dev/null; git ls-files -s >before");
    AUTO(fd_close) int git = open(".git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int fd = openat(git, "index", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(index_read(fd, strcmp(format, "sha256") == 0, &index, &err), 0);
    CHECK_EQ(index->n, 9);
    index_set_owner(index, 4294967294U, 1000);
    CHECK_EQ(index_write(index, git, "index", &err), 0);
    run("git ls-files -s >after; cmp before after; "
        "test $(git ls-files --debug | grep -c 'uid: 4294967294.gid: 1000') -eq 9; "
        "test -z \"$(ls .git | grep new)\"; git fsck 2>&1; rm -rf \"$HOME\"");
}

TEST(git_reads_an_index_with_another_owner)
{
    change_owner("sha1");
}

TEST(git_reads_an_index_of_sha256_with_another_owner)
{
    change_owner("sha256");
}
