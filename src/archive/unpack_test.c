#include "archive/unpack.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Each test makes one archive and unpacks it in a directory beside a file that must not change.
 */
static struct carrel_error err;
static char place[] = "/tmp/unpack-test-XXXXXX";
static int outer = -1;
static int top = -1;
static int archive = -1;
static struct tar_writer *writer;
static struct unpacked unpacked;

static void begin(void)
{
    CHECK(test_mkdtemp(place));
    outer = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(outer >= 0);
    AUTO(fd_close) int victim = openat(outer, "victim", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(victim >= 0);
    CHECK_EQ(fd_write_all(victim, "old", 3), 0);
    CHECK_EQ(mkdirat(outer, "tree", 0755), 0);
    top = openat(outer, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(top >= 0);
    archive = memfd_create("archive", MFD_CLOEXEC);
    CHECK(archive >= 0);
    CHECK_EQ(tar_writer_open(archive, &writer, &err), 0);
}

static void add(enum tar_kind kind, const char *path, const char *target, mode_t mode)
{
    const char *data = kind == TAR_FILE ? target : "";

    CHECK_EQ(tar_writer_add(writer,
                     &(struct tar_entry){ .kind = kind,
                             .path = path,
                             .target = target,
                             .bytes = strlen(data),
                             .mode = mode,
                             .mtime.tv_sec = 1000 },
                     &err),
            0);
    CHECK_EQ(tar_writer_data(writer, data, strlen(data), &err), 0);
}

static int finish_as(int (*unpack)(void))
{
    CHECK_EQ(tar_writer_finish(writer, &err), 0);
    CHECK_EQ(lseek(archive, 0, SEEK_SET), 0);
    int r = unpack();
    AUTO(fd_close) int victim = openat(outer, "victim", O_RDONLY | O_CLOEXEC);
    char text[8];
    CHECK_EQ(read(victim, text, sizeof(text)), 3);
    CHECK_MEM(text, 3, "old", 3);
    tar_writer_free(writer);
    return r;
}

static int here(void)
{
    return unpack_tree(archive, top, NULL, &unpacked, &err);
}

static int finish(void)
{
    return finish_as(here);
}

static void check_file(const char *path, const char *text)
{
    AUTO(fd_close) int fd = openat(top, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char data[64];

    CHECK(fd >= 0);
    ssize_t n = fd_read_all(fd, data, sizeof(data));
    CHECK_MEM(data, (size_t)n, text, strlen(text));
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    CHECK_EQ(fstatat(top, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode;
}

static int is_there(const char *path)
{
    return faccessat(top, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int is_whiteout(const char *path)
{
    struct stat st;

    return fstatat(top, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
           st.st_rdev == makedev(0, 0);
}

static int is_opaque(const char *path)
{
    AUTO(fd_close) int fd = openat(top, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char value[4];

    CHECK(fd >= 0);
    ssize_t n = fgetxattr(fd, "user.overlay.opaque", value, sizeof(value));
    return n == 1 && value[0] == 'y';
}

TEST(files_directories_and_links_are_made)
{
    begin();
    add(TAR_DIRECTORY, "./", NULL, 0755);
    add(TAR_DIRECTORY, "d", NULL, 0111);
    add(TAR_FILE, "d/f", "text", 04750);
    add(TAR_FILE, "deep/down/f", "x", 0);
    add(TAR_SYMLINK, "s", "/etc/passwd", 0777);
    add(TAR_HARDLINK, "d/h", "deep/down/f", 0);
    add(TAR_DIRECTORY, "t", NULL, 01777);
    CHECK_EQ(finish(), 0);
    CHECK_EQ(unpacked.entries, 6);
    CHECK_EQ(unpacked.bytes, 5);
    check_file("d/f", "text");
    CHECK_EQ(mode_of("d/f"), S_IFREG | 0750);
    CHECK_EQ(mode_of("d"), S_IFDIR | 0711);
    CHECK_EQ(mode_of("t"), S_IFDIR | 01777);
    CHECK_EQ(mode_of("deep/down/f"), S_IFREG | 0400);
    CHECK(S_ISLNK(mode_of("s")));
    struct stat a;
    struct stat b;
    CHECK_EQ(fstatat(top, "d/h", &a, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_EQ(fstatat(top, "deep/down/f", &b, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_EQ(a.st_ino, b.st_ino);
    CHECK_EQ(a.st_mtim.tv_sec, 1000);
}

TEST(nothing_is_written_through_a_link)
{
    static const char *const ways[] = { "..", "/", ".", "d" };

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        strcpy(strrchr(place, '-'), "-XXXXXX");
        begin();
        add(TAR_DIRECTORY, "d", NULL, 0755);
        add(TAR_SYMLINK, "l", ways[i], 0777);
        add(TAR_FILE, "l/victim", "new", 0644);
        CHECK_EQ(finish(), -ENOTDIR);
        CHECK_STR(err.message, "'l/victim': its path goes through a link");
        CHECK(!is_there("d/victim"));
    }
}

TEST(a_file_replaces_a_link_and_not_what_it_leads_to)
{
    begin();
    add(TAR_SYMLINK, "l", "../victim", 0777);
    add(TAR_FILE, "l", "new", 0644);
    CHECK_EQ(finish(), 0);
    check_file("l", "new");
}

TEST(a_hard_link_stays_in_the_layer)
{
    begin();
    add(TAR_SYMLINK, "l", "..", 0777);
    add(TAR_HARDLINK, "h", "l/victim", 0);
    CHECK_EQ(finish(), -ENOTDIR);
    CHECK_STR(err.message, "'h': a hard link to 'l/victim': its path goes through a link");
}

TEST(a_hard_link_to_a_link_is_that_link)
{
    begin();
    add(TAR_SYMLINK, "l", "../victim", 0777);
    add(TAR_HARDLINK, "h", "l", 0);
    add(TAR_FILE, "h", "new", 0644);
    CHECK_EQ(finish(), 0);
    CHECK(S_ISLNK(mode_of("l")));
    check_file("h", "new");
}

TEST(a_hard_link_to_nothing_or_to_itself_is_refused)
{
    begin();
    add(TAR_HARDLINK, "h", "missing", 0);
    CHECK_EQ(finish(), -ENOENT);
    strcpy(strrchr(place, '-'), "-XXXXXX");
    begin();
    add(TAR_FILE, "h", "x", 0);
    add(TAR_HARDLINK, "h", "./h", 0);
    CHECK_EQ(finish(), -EINVAL);
    CHECK_STR(err.message, "'h': a hard link to itself");
}

TEST(the_last_of_several_counts)
{
    begin();
    add(TAR_FILE, "a", "one", 0644);
    add(TAR_HARDLINK, "b", "a", 0);
    add(TAR_FILE, "a", "two", 0644);
    add(TAR_DIRECTORY, "d/e", NULL, 0755);
    add(TAR_FILE, "d/e/f", "x", 0644);
    add(TAR_SYMLINK, "d", "a", 0777);
    CHECK_EQ(finish(), 0);
    check_file("a", "two");
    check_file("b", "one");
    CHECK(S_ISLNK(mode_of("d")));
}

/* The directory that was used last no longer has this name. */
TEST(a_directory_that_was_replaced_is_not_written_to)
{
    begin();
    add(TAR_FILE, "d/a", "one", 0644);
    add(TAR_SYMLINK, "d", "..", 0777);
    add(TAR_FILE, "d/victim", "new", 0644);
    CHECK_EQ(finish(), -ENOTDIR);
}

TEST(whiteouts_become_those_of_an_overlay)
{
    begin();
    add(TAR_FILE, "d/.wh.gone", "", 0);
    add(TAR_FILE, "o/.wh..wh..opq", "", 0);
    add(TAR_FILE, ".wh..wh.plnk/1", "", 0);
    add(TAR_FILE, ".wh..wh.aufs", "", 0);
    CHECK_EQ(finish(), 0);
    CHECK(is_whiteout("d/gone"));
    CHECK(!is_there("d/.wh.gone"));
    CHECK(is_opaque("o"));
    CHECK(!is_there("o/.wh..wh..opq"));
    CHECK_EQ(unpacked.hidden, 2);
}

TEST(a_whiteout_hides_nothing_of_its_own_layer)
{
    begin();
    add(TAR_FILE, "f", "x", 0644);
    add(TAR_FILE, ".wh.f", "", 0);
    add(TAR_DIRECTORY, "d", NULL, 0755);
    add(TAR_FILE, ".wh.d", "", 0);
    add(TAR_FILE, ".wh.e", "", 0);
    add(TAR_DIRECTORY, "e", NULL, 0755);
    add(TAR_FILE, ".wh.g", "", 0);
    add(TAR_FILE, "g/h", "x", 0644);
    add(TAR_FILE, ".wh.i", "", 0);
    add(TAR_FILE, "i", "x", 0644);
    CHECK_EQ(finish(), 0);
    check_file("f", "x");
    check_file("g/h", "x");
    check_file("i", "x");
    CHECK(is_opaque("d"));
    CHECK(is_opaque("e"));
    CHECK(is_opaque("g"));
}

TEST(a_whiteout_of_no_name_is_refused)
{
    static const char *const names[] = { ".wh.", ".wh..", ".wh...", "d/.wh..." };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        strcpy(strrchr(place, '-'), "-XXXXXX");
        begin();
        add(TAR_FILE, names[i], "", 0);
        CHECK_EQ(finish(), -EINVAL);
        CHECK(strstr(err.message, "it hides no name"));
    }
}

/* Writes a tar with a header that our writer would refuse. */
static void write_raw(char type, const char *name, const char *size)
{
    unsigned char block[1536] = { 0 };
    char *header = (char *)block;
    unsigned sum = 0;

    begin();
    snprintf(header, 100, "%s", name);
    memcpy(header + 100, "0000644", 8);
    memcpy(header + 108, "0000000", 8);
    memcpy(header + 116, "0000000", 8);
    memcpy(header + 124, size, 11);
    memcpy(header + 136, "00000000000", 12);
    header[156] = type;
    snprintf(header + 257, 6, "ustar");
    header[263] = header[264] = '0';
    memcpy(header + 329, "0000001", 8);
    memcpy(header + 337, "0000003", 8);
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += block[i];
    snprintf(header + 148, 8, "%06o", sum);
    tar_writer_free(writer);
    writer = NULL;
    CHECK_EQ(fd_write_all(archive, block, sizeof(block)), 0);
    CHECK_EQ(lseek(archive, 0, SEEK_SET), 0);
}

TEST(devices_and_pipes_are_left_out)
{
    static const char types[] = { '3', '4', '6' };

    for (size_t i = 0; i < sizeof(types); i++) {
        strcpy(strrchr(place, '-'), "-XXXXXX");
        write_raw(types[i], "node", "00000000000");
        CHECK_EQ(here(), 0);
        CHECK(!is_there("node"));
        CHECK_EQ(unpacked.skipped, 1);
    }
}

TEST(names_that_lead_out_are_refused)
{
    static const char *const names[] = { "../victim", "/tmp/x", "a/../../victim", ".." };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        strcpy(strrchr(place, '-'), "-XXXXXX");
        write_raw('0', names[i], "00000000000");
        CHECK_EQ(here(), -EINVAL);
    }
}

TEST(a_file_that_is_cut_off_is_no_file)
{
    write_raw('0', "f", "77777777777");
    CHECK(here() < 0);
    strcpy(strrchr(place, '-'), "-XXXXXX");
    write_raw('0', "f", "00000004000");
    CHECK_EQ(here(), -EBADMSG);
}

static char diff_id[65];

static int apart(void)
{
    return unpack_apart(archive, TAR_ANY, top, NULL, &unpacked, diff_id, &err);
}

TEST(other_processes_make_the_same_tree)
{
    char data[16384];
    char expected[65];

    begin();
    add(TAR_FILE, "d/f\xc5\x91", "text", 0644);
    add(TAR_FILE, "d/.wh.gone", "", 0);
    add(TAR_FILE, "o/.wh..wh..opq", "", 0);
    add(TAR_DIRECTORY, "r/d", NULL, 0);
    add(TAR_FILE, "r/d/f", "x", 0);
    add(TAR_HARDLINK, "other/f", "d/f\xc5\x91", 0);
    add(TAR_SYMLINK, "r", "d", 0);
    CHECK_EQ(finish_as(apart), 0);
    check_file("other/f", "text");
    check_file("d/f\xc5\x91", "text");
    CHECK(is_whiteout("d/gone"));
    CHECK(is_opaque("o"));
    CHECK(S_ISLNK(mode_of("r")));
    ssize_t n = pread(archive, data, sizeof(data), 0);
    CHECK(n > 0 && n < (ssize_t)sizeof(data));
    sha256_hex(data, (size_t)n, expected);
    CHECK_STR(diff_id, expected);
}

TEST(what_another_process_refuses_is_told_here)
{
    begin();
    add(TAR_SYMLINK, "l", "..", 0777);
    add(TAR_FILE, "l/victim", "new", 0644);
    for (int i = 0; i < 4000;
            i++) /* more than a socket holds: the child stops reading before we stop writing */
        add(TAR_FILE, "more", "of this", 0644);
    CHECK_EQ(finish_as(apart), -ENOTDIR);
    CHECK_STR(err.message, "'l/victim': its path goes through a link");
}

TEST(packed_bytes_that_are_broken_are_told)
{
    begin();
    CHECK_EQ(fd_write_all(archive, "\x1f\x8b\x08\0\0\0\0\0\0\3nonsense", 18), 0);
    tar_writer_free(writer);
    CHECK_EQ(lseek(archive, 0, SEEK_SET), 0);
    CHECK_EQ(apart(), -EBADMSG);
}
