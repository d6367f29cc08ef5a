#include "base/fd.h"
#include "core/result/capture.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(struct capture *c, const char *text)
{
    capture_add(c, text, strlen(text));
}

static const char *text_of(const struct capture *c, struct buf *out)
{
    buf_clear(out);
    (void)capture_text(c, out);
    return out->data ? out->data : "";
}

TEST(what_fits_is_kept_whole)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct capture c;

    CHECK_EQ(capture_init(&c, 10, NULL, 0), 0);
    add(&c, "01234");
    add(&c, "");
    add(&c, "56789");
    CHECK(!capture_is_truncated(&c));
    CHECK_STR(text_of(&c, &out), "0123456789");
    capture_finish(&c);
}

TEST(what_was_cut_before_counts)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct capture c;

    CHECK_EQ(capture_init(&c, 200, NULL, 0), 0);
    add(&c, "head, tail");
    capture_skip(&c, 1000);
    CHECK_STR(text_of(&c, &out), "head, tail"); /* the sender has marked the cut itself */
    CHECK(capture_is_truncated(&c));
    CHECK_EQ(capture_bytes(&c), 1010);
    for (int i = 0; i < 200; i++)
        add(&c, "t");
    buf_clear(&out);
    CHECK(strstr(text_of(&c, &out), "1210 bytes in all"));
    capture_finish(&c);
}

TEST(one_byte_more_cuts_the_middle)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct capture c;

    CHECK_EQ(capture_init(&c, 200, NULL, 0), 0);
    for (int i = 0; i < 201; i++)
        add(&c, i < 100 ? "h" : "t");
    CHECK(capture_is_truncated(&c));
    CHECK_EQ(c.total, 201);
    const char *text = text_of(&c, &out);
    CHECK(out.len <= 200);
    CHECK_EQ(strspn(text, "h"), 100);
    CHECK(strstr(text, "\n[... 201 bytes in all; the middle is cut ...]\ntttt"));
    CHECK_EQ(text[out.len - 1], 't');
    capture_finish(&c);
}

TEST(a_marker_that_is_too_long_leaves_the_path_out)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct capture c;
    char dir[] = "/tmp/a-long-name-of-a-directory-for-the-output-of-a-run-XXXXXX";
    char path[96];

    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof(path), "%s/stdout", dir);
    CHECK_EQ(capture_init(&c, 200, path, 1000), 0);
    for (int i = 0; i < 201; i++)
        add(&c, "x");
    CHECK(strstr(text_of(&c, &out), "x\n[... 201 bytes in all; the middle is cut ...]\nx"));
    CHECK_EQ(access(path, F_OK), 0);
    capture_finish(&c);
    (void)unlink(path);
    (void)rmdir(dir);
}

/* Every budget, every way to cut the input into pieces: never more than the budget, head and
 * tail always the stream's own. */
TEST(head_and_tail_are_right_for_every_split)
{
    char stream[997];

    for (size_t i = 0; i < sizeof(stream); i++)
        stream[i] = (char)('a' + i % 26);
    for (size_t budget = 0; budget < 300; budget += 7) {
        for (size_t piece = 1; piece < 400; piece += 13) {
            AUTO(buf_finish) struct buf out = BUF_INIT(5000);
            struct capture c;
            CHECK_EQ(capture_init(&c, budget, NULL, 0), 0);
            for (size_t at = 0; at < sizeof(stream); at += piece) {
                size_t left = sizeof(stream) - at;
                capture_add(&c, stream + at, piece < left ? piece : left);
            }
            (void)text_of(&c, &out);
            CHECK(out.len <= budget);
            CHECK(memcmp(out.data ? out.data : "", stream, budget / 2) == 0);
            if (budget >= 150)
                CHECK(memcmp(out.data + out.len - 10, stream + sizeof(stream) - 10, 10) == 0);
            capture_finish(&c);
        }
    }
}

TEST(the_very_end_is_kept_whatever_the_budget)
{
    char stream[3000];
    struct capture c;

    for (size_t i = 0; i < sizeof(stream); i++)
        stream[i] = (char)('a' + i % 23);
    for (size_t step = 1; step <= sizeof(stream); step += 97) {
        CHECK_EQ(capture_init(&c, 7, NULL, 0), 0);
        for (size_t at = 0; at < sizeof(stream); at += step) {
            size_t len = sizeof(stream) - at < step ? sizeof(stream) - at : step;
            capture_add(&c, stream + at, len);
            size_t most = at + len < CAPTURE_END ? at + len : CAPTURE_END;
            CHECK_EQ(c.end_len, most);
            CHECK(memcmp(c.end, stream + at + len - most, most) == 0);
        }
        capture_finish(&c);
    }
}

TEST(a_cut_falls_between_characters)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct capture c;

    for (uint64_t budget = 160; budget < 170; budget++) {
        CHECK_EQ(capture_init(&c, budget, NULL, 0), 0);
        for (int i = 0; i < 100; i++)
            add(&c, "\xe2\x82\xac"); /* three bytes each */
        const char *text = text_of(&c, &out);
        const char *marker = strstr(text, "\n[...");
        CHECK(marker);
        CHECK_EQ((marker - text) % 3, 0);
        const char *tail = strstr(text, "...]\n") + 5;
        CHECK_EQ((unsigned char)tail[0], 0xe2);
        capture_finish(&c);
    }
}

TEST(the_whole_stream_goes_to_a_file_up_to_its_cap)
{
    char dir[] = "/tmp/capture-XXXXXX";
    char path[64];
    char text[64];
    struct capture c;

    CHECK(test_mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/a/b/stdout", dir);
    CHECK_EQ(capture_init(&c, 4, path, 0), 0);
    c.file_max = 10;
    add(&c, "0123");
    CHECK(access(path, F_OK) < 0); /* not before it is needed */
    add(&c, "4567");
    add(&c, "89ab");
    CHECK_EQ(c.file_error, 0);
    CHECK_EQ(fd_read_file(AT_FDCWD, path, text, sizeof(text)), 10);
    CHECK_STR(text, "0123456789");
    struct stat st;
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0600);
    capture_finish(&c);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/a/b", dir);
    (void)rmdir(path);
    (void)snprintf(path, sizeof(path), "%s/a", dir);
    (void)rmdir(path);
    (void)rmdir(dir);
}

TEST(a_file_that_cannot_be_made_is_said_and_not_named)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct capture c;

    CHECK_EQ(capture_init(&c, 200, "/proc/no/such/place", 0), 0);
    for (int i = 0; i < 300; i++)
        add(&c, "x");
    CHECK(c.file_error < 0);
    CHECK(!strstr(text_of(&c, &out), "see"));
    capture_finish(&c);
}
