#include "archive/tar_reader.h"
#include "base/err.h"
#include "base/fd.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct carrel_error err;

static int memory_file(void)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static void check_clean(const char *path, const char *expected)
{
    char out[TAR_PATH_MAX + 1];

    CHECK_EQ(tar_clean_path(path, 8, out, &err), 0);
    CHECK_STR(out, expected);
}

static void check_refused(const char *path, int code, const char *message)
{
    char out[TAR_PATH_MAX + 1];

    CHECK_EQ(tar_clean_path(path, 8, out, &err), code);
    CHECK_STR(err.message, message);
}

TEST(names_lose_what_means_nothing)
{
    check_clean("a", "a");
    check_clean("./a//b/", "a/b");
    check_clean("./", ".");
    check_clean(".", ".");
    check_clean("a/./b/.", "a/b");
    check_clean("..a/b..", "..a/b..");
    check_clean("a/...", "a/...");
}

TEST(names_that_lead_elsewhere_are_refused)
{
    check_refused("", -EINVAL, "an entry has no name");
    check_refused("/etc/passwd", -EINVAL, "the name '/etc/passwd' is absolute");
    check_refused("//", -EINVAL, "the name '//' is absolute");
    check_refused("..", -EINVAL, "the name '..' has a part '..'");
    check_refused("a/../b", -EINVAL, "the name 'a/../b' has a part '..'");
    check_refused("a/..", -EINVAL, "the name 'a/..' has a part '..'");
    check_refused("a\n/..", -EINVAL, "the name 'a\\x0a/..' has a part '..'");
    check_refused(
            "1/2/3/4/5/6/7/8/9", -ENAMETOOLONG, "the name '1/2/3/4/5/6/7/8/9' is too deep");
}

TEST(names_that_are_too_long_are_refused)
{
    char out[TAR_PATH_MAX + 1];
    char path[2 * TAR_PATH_MAX];

    memset(path, 'x', 256);
    path[256] = '\0';
    CHECK_EQ(tar_clean_path(path, 8, out, &err), -ENAMETOOLONG);
    CHECK(strstr(err.message, "has a part that is too long"));
    path[255] = '\0';
    CHECK_EQ(tar_clean_path(path, 8, out, &err), 0);
    for (size_t i = 0; i + 2 < sizeof(path); i += 2)
        memcpy(path + i, "a/", 3);
    CHECK_EQ(tar_clean_path(path, 1U << 20, out, &err), -ENAMETOOLONG);
    CHECK(strstr(err.message, "is too long"));
}

TEST(a_packing_is_known_by_its_first_bytes)
{
    CHECK_EQ(tar_packing_of("\x1f\x8b\x08", 3), TAR_GZIP);
    CHECK_EQ(tar_packing_of("\x28\xb5\x2f\xfd", 4), TAR_ZSTD);
    CHECK_EQ(tar_packing_of("\xfd"
                            "7zXZ\0",
                     6),
            TAR_XZ);
    CHECK_EQ(tar_packing_of("\xfd"
                            "7zX",
                     4),
            TAR_PLAIN);
    CHECK_EQ(tar_packing_of("", 0), TAR_PLAIN);
    CHECK_STR(tar_packing_name(TAR_ZSTD), "zstd");
}

/* Names of every length around the size of the header fields, and some that are not text. */
static const char *long_name(char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        name[i] = i % 50 == 49 && i + 1 < len ? '/' : 'n';
    name[len] = '\0';
    return name;
}

static void write_entry(
        struct tar_writer *writer, const struct tar_entry *entry, const char *data)
{
    CHECK_EQ(tar_writer_add(writer, entry, &err), 0);
    if (data)
        CHECK_EQ(tar_writer_data(writer, data, strlen(data), &err), 0);
}

static void check_entry(struct tar_reader *reader, enum tar_kind kind, const char *path,
        const char *target, uint64_t bytes)
{
    struct tar_entry entry;

    CHECK_EQ(tar_reader_next(reader, &entry, &err), 1);
    CHECK_STR(entry.path, path);
    CHECK_EQ(entry.kind, kind);
    CHECK_STR(entry.target, target);
    CHECK_EQ(entry.bytes, bytes);
}

TEST(what_is_written_is_what_is_read)
{
    AUTO(fd_close) int fd = memory_file();
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    AUTO(tar_reader_free) struct tar_reader *reader = NULL;
    struct tar_entry entry;
    char name[600];
    char data[8];

    CHECK_EQ(tar_writer_open(fd, &writer, &err), 0);
    write_entry(writer,
            &(struct tar_entry){
                    .kind = TAR_DIRECTORY, .path = "d", .mode = 06755, .mtime.tv_sec = 7 },
            NULL);
    write_entry(writer,
            &(struct tar_entry){ .kind = TAR_FILE,
                    .path = "d/\xc5\x91\xff",
                    .bytes = 5,
                    .mode = 0640,
                    .mtime.tv_sec = -3 },
            "hello");
    write_entry(writer,
            &(struct tar_entry){ .kind = TAR_SYMLINK, .path = "l", .target = "/\xfe" }, NULL);
    write_entry(writer,
            &(struct tar_entry){
                    .kind = TAR_HARDLINK, .path = "h", .target = "d/\xc5\x91\xff" },
            NULL);
    for (size_t len = 95; len < 300; len++)
        write_entry(writer,
                &(struct tar_entry){
                        .kind = TAR_SYMLINK, .path = long_name(name, len), .target = name },
                NULL);
    CHECK_EQ(tar_writer_finish(writer, &err), 0);

    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(tar_reader_open(fd, TAR_PLAIN, NULL, &reader, &err), 0);
    CHECK_EQ(tar_reader_next(reader, &entry, &err), 1);
    CHECK_STR(entry.path, "d");
    CHECK_EQ(entry.mode, 0755); /* no set-id bits */
    CHECK_EQ(entry.mtime.tv_sec, 7);
    CHECK_EQ(tar_reader_next(reader, &entry, &err), 1);
    CHECK_STR(entry.path, "d/\xc5\x91\xff");
    CHECK_EQ(entry.mode, 0640);
    CHECK_EQ(entry.mtime.tv_sec, -3);
    CHECK_EQ(tar_reader_read(reader, data, 3, &err), 3);
    CHECK_EQ(tar_reader_read(reader, data + 3, 5, &err), 2);
    CHECK_EQ(tar_reader_read(reader, data, 1, &err), 0);
    CHECK_MEM(data, 5, "hello", 5);
    check_entry(reader, TAR_SYMLINK, "l", "/\xfe", 0);
    check_entry(reader, TAR_HARDLINK, "h", "d/\xc5\x91\xff", 0);
    for (size_t len = 95; len < 300; len++)
        check_entry(reader, TAR_SYMLINK, long_name(name, len), name, 0);
    CHECK_EQ(tar_reader_next(reader, &entry, &err), 0);
}

TEST(a_file_has_the_bytes_that_were_announced)
{
    AUTO(fd_close) int fd = memory_file();
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    struct tar_entry entry = { .kind = TAR_FILE, .path = "f", .bytes = 2 };

    CHECK_EQ(tar_writer_open(fd, &writer, &err), 0);
    CHECK_EQ(tar_writer_add(writer, &entry, &err), 0);
    CHECK_EQ(tar_writer_data(writer, "123", 3, &err), -EIO);
    CHECK_EQ(tar_writer_data(writer, "1", 1, &err), 0);
    CHECK_EQ(tar_writer_add(writer, &entry, &err), -EIO);
    CHECK_EQ(tar_writer_finish(writer, &err), -EIO);
    CHECK_STR(err.message, "a file in the archive is 1 bytes short");
}

TEST(an_archive_costs_no_more_than_allowed)
{
    AUTO(fd_close) int fd = memory_file();
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    struct tar_entry entry;

    CHECK_EQ(tar_writer_open(fd, &writer, &err), 0);
    for (int i = 0; i < 3; i++)
        write_entry(writer, &(struct tar_entry){ .kind = TAR_FILE, .path = "f", .bytes = 4 },
                "1234");
    CHECK_EQ(tar_writer_finish(writer, &err), 0);

    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    AUTO(tar_reader_free) struct tar_reader *few = NULL;
    CHECK_EQ(tar_reader_open(fd, TAR_PLAIN, &(struct tar_limits){ .entries = 2 }, &few, &err),
            0);
    CHECK_EQ(tar_reader_next(few, &entry, &err), 1);
    CHECK_EQ(tar_reader_next(few, &entry, &err), 1);
    CHECK_EQ(tar_reader_next(few, &entry, &err), -EFBIG);
    CHECK_STR(err.message, "the archive has more than 2 entries");

    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    AUTO(tar_reader_free) struct tar_reader *small = NULL;
    CHECK_EQ(tar_reader_open(fd, TAR_PLAIN, &(struct tar_limits){ .bytes = 7 }, &small, &err),
            0);
    CHECK_EQ(tar_reader_next(small, &entry, &err), 1);
    CHECK_EQ(tar_reader_next(small, &entry, &err), -EFBIG);
    CHECK_STR(err.message, "the files of the archive hold more than 7 bytes");
}

TEST(what_is_no_tar_is_refused)
{
    AUTO(fd_close) int fd = memory_file();
    AUTO(tar_reader_free) struct tar_reader *reader = NULL;

    for (int i = 0; i < 2000; i++)
        CHECK_EQ(fd_write_all(fd, "nonsense", 8), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(tar_reader_open(fd, TAR_ANY, NULL, &reader, &err), -EBADMSG);
}
