/* Packs that ask for too much: bytes, commits, paths, memory, time. */
#include "workspace/hostile_fixture.h"

TEST(bytes_commits_and_paths_are_limited)
{
    AUTO(fixture_finish) struct fixture fx;
    struct harvest_limits limits = HARVEST_LIMITS_INIT;
    char tip[OID_MAX];

    fixture_init(&fx, "");
    sh(NULL, 0,
            "cd %s/run && for i in 1 2 3; do head -c 9000 /dev/urandom >f$i; git add . && git"
            " commit -qm $i; done",
            fx.top);
    limits.max_pack_bytes = 20000;
    AUTO(fd_close) int big = thin_pack(&fx, tip);
    CHECK_EQ(take_with(&fx, big, tip, &limits), -EFBIG);

    limits = (struct harvest_limits)HARVEST_LIMITS_INIT;
    limits.max_commits = 2;
    AUTO(fd_close) int many = thin_pack(&fx, tip);
    CHECK_EQ(take_with(&fx, many, tip, &limits), -EFBIG);
    CHECK_STR(fx.err.message, "the run made more than 2 commits");

    limits = (struct harvest_limits)HARVEST_LIMITS_INIT;
    limits.max_paths = 2;
    AUTO(fd_close) int wide = thin_pack(&fx, tip);
    CHECK_EQ(take_with(&fx, wide, tip, &limits), -EFBIG);
    CHECK_STR(fx.err.message, "the run changed more than 2 paths");

    limits.max_commits = 3;
    limits.max_paths = 3;
    AUTO(fd_close) int fits = thin_pack(&fx, tip);
    CHECK_EQ(take_with(&fx, fits, tip, &limits), 0);
}

/* Ten levels of ten entries each: 600 bytes that stand for ten thousand million files. */
TEST(trees_that_multiply_meet_the_memory_limit)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(buf_finish) struct buf list = BUF_INIT(4096);
    struct harvest_limits limits = HARVEST_LIMITS_INIT;
    char oid[OID_MAX];
    char tip[OID_MAX];

    fixture_init(&fx, "");
    (void)snprintf(oid, sizeof(oid), "%s", blob_of(&fx));
    buf_addf(&list, "%s\n", oid);
    for (int level = 0; level < 10; level++) {
        AUTO(bytes_finish) struct bytes tree = BYTES_INIT;
        for (int i = 0; i < 10; i++)
            add_entry_len(&tree, level ? "40000" : "100644", &"0123456789"[i], 1, oid);
        write_object(&fx, "tree", tree.buf.data, tree.buf.len, oid);
        buf_addf(&list, "%s\n", oid);
    }
    write_commit(&fx, oid, fx.base, tip);
    buf_addf(&list, "%s\n", tip);
    /* git lists them all before it prints the first: it is the memory that ends. */
    limits.max_memory_bytes = 256 << 20;
    AUTO(fd_close) int pack = make_pack(&fx, list.data);
    CHECK_EQ(take_with(&fx, pack, tip, &limits), -EBADMSG);
    CHECK(strstr(fx.err.message, "memory"));
}

TEST(a_tree_with_a_million_entries_is_taken_or_refused_by_the_limit)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(bytes_finish) struct bytes tree = BYTES_INIT;
    struct harvest_limits limits = HARVEST_LIMITS_INIT;
    char tree_oid[OID_MAX];
    char tip[OID_MAX];
    char list[4 * OID_MAX];
    char name[16];

    fixture_init(&fx, "");
    const char *blob = blob_of(&fx);
    for (int i = 0; i < 1000000; i++) {
        (void)snprintf(name, sizeof(name), "f%07d", i);
        add_entry(&tree, "100644", name, blob);
    }
    write_object(&fx, "tree", tree.buf.data, tree.buf.len, tree_oid);
    write_commit(&fx, tree_oid, fx.base, tip);
    (void)snprintf(list, sizeof(list), "%s\n%s\n%s\n", tip, tree_oid, blob);
    AUTO(fd_close) int pack = make_pack(&fx, list);
    limits.timeout_ms = 60000;
    CHECK_EQ(take_with(&fx, pack, tip, &limits), -EFBIG); /* base had three more, now gone */
    limits.max_paths = 1000003;
    AUTO(fd_close) int again = make_pack(&fx, list);
    CHECK_EQ(take_with(&fx, again, tip, &limits), 0);
}

static unsigned adler32(const unsigned char *data, size_t len)
{
    unsigned a = 1;
    unsigned b = 0;

    for (size_t i = 0; i < len; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* zlib's format without compression. */
static void add_stored(struct buf *out, const void *data, size_t len)
{
    const unsigned char *at = data;
    unsigned sum = adler32(data, len);
    unsigned char end[] = { (unsigned char)(sum >> 24), (unsigned char)(sum >> 16),
        (unsigned char)(sum >> 8), (unsigned char)sum };

    buf_add(out, "\x78\x01", 2);
    for (;;) {
        size_t n = len < 65535 ? len : 65535;
        unsigned char head[] = { n == len, (unsigned char)n, (unsigned char)(n >> 8),
            (unsigned char)~n, (unsigned char)(~n >> 8) };
        buf_add(out, head, sizeof(head));
        buf_add(out, at, n);
        at += n;
        len -= n;
        if (n < 65535 || len == 0)
            break;
    }
    buf_add(out, end, sizeof(end));
}

static void add_varint(struct buf *out, uint64_t n)
{
    do {
        buf_add(out, &(unsigned char){ (unsigned char)((n & 0x7f) | (n > 0x7f ? 0x80 : 0)) },
                1);
        n >>= 7;
    } while (n > 0);
}

static void add_object_header(struct buf *out, unsigned type, size_t size)
{
    unsigned char first = (unsigned char)(type << 4 | (size & 15) | (size > 15 ? 0x80 : 0));

    buf_add(out, &first, 1);
    if (size > 15)
        add_varint(out, size >> 4);
}

#define SOURCE_BYTES 65536U
#define REF_DELTA 7
#define BLOB 3

/* A pack with one blob and `n` deltas over it, each of which repeats it `times` times. */
static int make_bomb(struct fixture *fx, unsigned n, uint64_t times)
{
    AUTO(buf_finish) struct buf pack = BUF_INIT(64 << 20);
    AUTO(buf_finish) struct buf delta = BUF_INIT(16 << 20);
    AUTO(free) char *source = calloc(1, SOURCE_BYTES);
    char oid[OID_MAX];
    unsigned char header[] = { 'P', 'A', 'C', 'K', 0, 0, 0, 2, 0, 0,
        (unsigned char)((n + 1) >> 8), (unsigned char)(n + 1) };

    CHECK(source);
    write_object(fx, "blob", source, SOURCE_BYTES, oid);
    buf_add(&pack, header, sizeof(header));
    add_object_header(&pack, BLOB, SOURCE_BYTES);
    add_stored(&pack, source, SOURCE_BYTES);
    for (unsigned i = 0; i < n; i++) {
        char unique[4] = { 3, (char)(i >> 8), (char)i, 1 };
        buf_clear(&delta);
        add_varint(&delta, SOURCE_BYTES);
        add_varint(&delta, times * SOURCE_BYTES + 3);
        for (uint64_t k = 0; k < times; k++)
            buf_add(&delta, "\x80", 1); /* copy 64 KiB from the start */
        buf_add(&delta, unique, sizeof(unique));
        add_object_header(&pack, REF_DELTA, delta.len);
        add_raw_oid(&pack, oid);
        add_stored(&pack, delta.data, delta.len);
    }
    CHECK(!pack.is_short && !delta.is_short);

    AUTO(fd_close) int fd = open_new(fx, "bomb");
    char sum[OID_MAX];
    CHECK_EQ(fd_write_all(fd, pack.data, pack.len), 0);
    sh(sum, sizeof(sum), "sha1sum <%s/bomb | cut -c1-40", fx->top);
    buf_clear(&pack);
    add_raw_oid(&pack, sum);
    CHECK_EQ(fd_write_all(fd, pack.data, pack.len), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd_steal(&fd);
}

TEST(deltas_that_expand_are_read_when_they_are_modest)
{
    AUTO(fixture_finish) struct fixture fx;

    fixture_init(&fx, "");
    AUTO(fd_close) int pack = make_bomb(&fx, 2, 4);
    CHECK_EQ(take(&fx, pack, fx.base), 0);
}

TEST(a_delta_that_expands_to_64_gigabytes_meets_the_memory_limit)
{
    AUTO(fixture_finish) struct fixture fx;
    struct harvest_limits limits = HARVEST_LIMITS_INIT;

    fixture_init(&fx, "");
    AUTO(fd_close) int pack = make_bomb(&fx, 1, 1 << 20);
    CHECK_EQ(take_with(&fx, pack, fx.base, &limits), -EBADMSG);
    limits.max_memory_bytes = 64 << 20;
    AUTO(fd_close) int small = make_bomb(&fx, 1, 4096);
    CHECK_EQ(take_with(&fx, small, fx.base, &limits), -EBADMSG);
}

TEST(deltas_that_take_hours_meet_the_time_limit)
{
    AUTO(fixture_finish) struct fixture fx;
    struct harvest_limits limits = HARVEST_LIMITS_INIT;

    fixture_init(&fx, "");
    limits.timeout_ms = 500;
    AUTO(fd_close) int pack = make_bomb(&fx, 100, 4096); /* 25 GiB to hash */
    CHECK_EQ(take_with(&fx, pack, fx.base, &limits), -ETIMEDOUT);
}

TEST(a_stream_that_stalls_meets_the_time_limit)
{
    AUTO(fixture_finish) struct fixture fx;
    struct harvest_limits limits = HARVEST_LIMITS_INIT;
    int ends[2];

    fixture_init(&fx, "");
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    limits.timeout_ms = 200;
    CHECK_EQ(take_with(&fx, ends[0], fx.base, &limits), -ETIMEDOUT);
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(close(ends[1]), 0);
}
