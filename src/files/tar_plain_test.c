/* What the writer writes is read back, and nothing else. */
#include "base/err.h"
#include "base/fd.h"
#include "files/tar_format.h"
#include "files/tar_plain.h"
#include "harness.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct carrel_error err;

static int make_fd(void)
{
    int fd = memfd_create("tar", MFD_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static struct tar_plain from_start(int fd)
{
    struct tar_plain tar;

    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    tar_plain_init(&tar, fd, 8);
    return tar;
}

TEST(what_was_written_is_read)
{
    char path[300];
    char target[300];
    const struct tar_entry entries[] = {
        { .kind = TAR_DIRECTORY, .path = ".", .mode = 0755 },
        { .kind = TAR_FILE, .path = "a", .bytes = 3, .mode = 0640, .mtime.tv_sec = 1000000000 },
        { .kind = TAR_FILE, .path = path, .mode = 0600, .mtime.tv_sec = -5 },
        { .kind = TAR_SYMLINK, .path = "d/l", .target = "../../x y" },
        { .kind = TAR_SYMLINK, .path = "d/m", .target = target },
        { .kind = TAR_HARDLINK, .path = "d/h", .target = "a" },
        { .kind = TAR_OTHER, .path = "fifo" },
    };
    AUTO(fd_close) int fd = make_fd();
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    struct tar_entry entry;
    char text[16];

    memset(path, 'p', sizeof(path) - 1);
    path[150] = '/';
    path[sizeof(path) - 1] = '\0';
    memset(target, 't', sizeof(target) - 1);
    target[sizeof(target) - 1] = '\0';
    CHECK_EQ(tar_writer_open(fd, &writer, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        CHECK_EQ(tar_writer_add(writer, &entries[i], &err), 0);
        if (entries[i].bytes)
            CHECK_EQ(tar_writer_data(writer, "abc", 3, &err), 0);
    }
    CHECK_EQ(tar_writer_finish(writer, &err), 0);
    for (int with_data = 0; with_data < 2; with_data++) {
        struct tar_plain tar = from_start(fd);
        for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
            CHECK_EQ(tar_plain_next(&tar, &entry, &err), 1);
            CHECK_EQ(entry.kind, entries[i].kind);
            CHECK_STR(entry.path, entries[i].path);
            CHECK_STR(entry.target ? entry.target : "-",
                    entries[i].target ? entries[i].target : "-");
            CHECK_EQ(entry.bytes, entries[i].bytes);
            CHECK_EQ(entry.mode, entries[i].mode);
            CHECK_EQ(entry.mtime.tv_sec, entries[i].mtime.tv_sec);
            if (with_data && entry.bytes) {
                CHECK_EQ(tar_plain_read(&tar, text, 2, &err), 2);
                CHECK_EQ(tar_plain_read(&tar, text + 2, 9, &err), 1);
                CHECK_EQ(tar_plain_read(&tar, text + 3, 9, &err), 0);
                CHECK(memcmp(text, "abc", 3) == 0);
            }
        }
        CHECK_EQ(tar_plain_next(&tar, &entry, &err), 0);
    }
}

TEST(a_failure_takes_the_place_of_the_rest)
{
    const struct tar_entry file = { .kind = TAR_FILE, .path = "f", .bytes = 1000 };
    AUTO(fd_close) int fd = make_fd();
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    struct tar_entry entry;

    CHECK_EQ(tar_writer_open(fd, &writer, &err), 0);
    CHECK_EQ(tar_writer_add(writer, &file, &err), 0);
    CHECK_EQ(tar_writer_data(writer, "abc", 3, &err), 0);
    CHECK_EQ(tar_writer_fail(writer, -EBUSY, "'f': it changed", &err), 0);
    struct tar_plain tar = from_start(fd);
    CHECK_EQ(tar_plain_next(&tar, &entry, &err), 1);
    CHECK_EQ(tar_plain_next(&tar, &entry, &err), 1);
    CHECK_EQ(entry.kind, TAR_FAILED);
    CHECK_EQ(entry.mode, EBUSY);
    CHECK_STR(entry.target, "'f': it changed");
    CHECK_EQ(tar_plain_next(&tar, &entry, &err), 0);
}

/* Writes a header with a right sum, whatever is in it. */
static void put(int fd, struct tar_header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned sum = 0;

    memset(header->sum, ' ', sizeof(header->sum));
    for (size_t i = 0; i < sizeof(*header); i++)
        sum += bytes[i];
    (void)snprintf(header->sum, sizeof(header->sum), "%06o", sum);
    CHECK_EQ(fd_write_all(fd, header, sizeof(*header)), 0);
}

static struct tar_header plain_header(const char *name, char type)
{
    struct tar_header header = { .type = type };

    (void)snprintf(header.name, sizeof(header.name), "%s", name);
    memcpy(header.mode, "0000644", 8);
    memcpy(header.size, "00000000000", 12);
    memcpy(header.mtime, "00000000000", 12);
    memcpy(header.magic, TAR_MAGIC, 8);
    return header;
}

static int read_one(struct tar_header header)
{
    AUTO(fd_close) int fd = make_fd();
    struct tar_entry entry;

    put(fd, &header);
    struct tar_plain tar = from_start(fd);
    return tar_plain_next(&tar, &entry, &err);
}

TEST(what_the_writer_does_not_write_is_refused)
{
    struct tar_header header = plain_header("fine", '0');

    CHECK_EQ(read_one(header), 1);
    CHECK_EQ(read_one(plain_header("../x", '0')), -EINVAL);
    CHECK_EQ(read_one(plain_header("/x", '0')), -EINVAL);
    CHECK_EQ(read_one(plain_header("", '0')), -EINVAL);
    CHECK_EQ(read_one(plain_header("1/2/3/4/5/6/7/8/9", '0')), -ENAMETOOLONG);
    CHECK_EQ(read_one(plain_header("x", 'L')), -EBADMSG);
    CHECK_EQ(read_one(plain_header("x", '3')), -EBADMSG);
    CHECK_EQ(read_one(plain_header("x", '2')), -EBADMSG); /* no target */
    memcpy(header.mode, "0004755", 8);
    CHECK_EQ(read_one(header), -EBADMSG);
    header = plain_header("x", '5');
    header.size[10] = '1';
    CHECK_EQ(read_one(header), -EBADMSG);
    header = plain_header("x", '0');
    header.size[0] = (char)0x80; /* of GNU, in base 256 */
    CHECK_EQ(read_one(header), -EBADMSG);
    header = plain_header("x", '0');
    header.magic[0] = 'U';
    CHECK_EQ(read_one(header), -EBADMSG);
}

static int read_pax(const char *text, size_t len)
{
    AUTO(fd_close) int fd = make_fd();
    struct tar_header header = plain_header("pax", 'x');
    char block[TAR_BLOCK] = { 0 };
    struct tar_entry entry;

    (void)snprintf(header.size, sizeof(header.size), "%011zo", len);
    put(fd, &header);
    memcpy(block, text, len);
    CHECK_EQ(fd_write_all(fd, block, sizeof(block)), 0);
    header = plain_header("short", '0');
    put(fd, &header);
    struct tar_plain tar = from_start(fd);
    return tar_plain_next(&tar, &entry, &err);
}

TEST(damaged_records_are_refused)
{
#define READ_PAX(text) read_pax(text, sizeof(text) - 1)
    CHECK_EQ(READ_PAX("10 path=x\n"), 1);
    CHECK_EQ(READ_PAX("10 path=x\n10 path=y\n"), -EBADMSG);
    CHECK_EQ(READ_PAX("11 path=..\n"), -EINVAL);
    CHECK_EQ(READ_PAX("8 path=x\n"), -EBADMSG);
    CHECK_EQ(READ_PAX("99 path=x\n"), -EBADMSG);
    CHECK_EQ(READ_PAX("10 path=x "), -EBADMSG);
    CHECK_EQ(READ_PAX("10 path:x\n"), -EBADMSG);
    CHECK_EQ(READ_PAX("11 path=\0x\n"), -EBADMSG);
    CHECK_EQ(READ_PAX("9 uid=00\n"), -EBADMSG);
    CHECK_EQ(READ_PAX("3 \n"), -EBADMSG);
    CHECK_EQ(READ_PAX("99999999999999999999 path=x\n"), -EBADMSG);
    CHECK_EQ(READ_PAX("28 size=9223372036854775808\n"), -EBADMSG);
    CHECK_EQ(READ_PAX(" "), -EBADMSG);
}

TEST(a_tar_that_ends_early_is_refused)
{
    const struct tar_entry file = { .kind = TAR_FILE, .path = "f", .bytes = 1000 };
    AUTO(fd_close) int fd = make_fd();
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    struct tar_entry entry;
    char data[1000] = { 0 };

    CHECK_EQ(tar_writer_open(fd, &writer, &err), 0);
    CHECK_EQ(tar_writer_add(writer, &file, &err), 0);
    CHECK_EQ(tar_writer_data(writer, data, 1000, &err), 0);
    CHECK_EQ(tar_writer_finish(writer, &err), 0);
    const off_t end = lseek(fd, 0, SEEK_END);
    for (off_t at = end - 1; at >= 0; at -= 61) {
        struct tar_plain tar = from_start(fd);
        CHECK_EQ(ftruncate(fd, at), 0);
        int r;
        while ((r = tar_plain_next(&tar, &entry, &err)) == 1)
            ;
        CHECK_EQ(r, -EBADMSG);
    }
}
