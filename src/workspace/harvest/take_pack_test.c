/* Packs that a run may send: a few good ones, and those that must be refused. */
#include "workspace/hostile_fixture.h"

TEST(a_thin_pack_of_a_runs_commits_is_taken)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    char text[64];

    fixture_init(&fx, "");
    sh(NULL, 0,
            "cd %s/run && seq 1 5000 >a && git commit -qam 1 && seq 1 5001 >a && git"
            " commit -qam 2",
            fx.top);
    AUTO(fd_close) int pack = thin_pack(&fx, tip);
    CHECK_EQ(take(&fx, pack, tip), 0);
    ask(&fx, text, sizeof(text), "show %s:a | tail -1", tip);
    CHECK_STR(text, "5001");
    ask(&fx, text, sizeof(text), "fsck --connectivity-only --no-dangling %s", tip);
}

TEST(a_pack_may_come_through_a_pipe)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    int ends[2];

    fixture_init(&fx, "");
    sh(NULL, 0, "cd %s/run && echo x >a && git commit -qam 1", fx.top);
    AUTO(fd_close) int pack = thin_pack(&fx, tip);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    char bytes[4096];
    ssize_t n = read(pack, bytes, sizeof(bytes));
    CHECK(n > 0 && n < (ssize_t)sizeof(bytes));
    CHECK_EQ(write(ends[1], bytes, (size_t)n), n);
    CHECK_EQ(close(ends[1]), 0);
    CHECK_EQ(take(&fx, ends[0], tip), 0);
    CHECK_EQ(close(ends[0]), 0);
}

TEST(a_sha256_repository_works_the_same)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];

    fixture_init(&fx, "--object-format=sha256");
    CHECK(fx.repo.is_sha256);
    sh(NULL, 0, "cd %s/run && echo x >a && git commit -qam 1", fx.top);
    AUTO(fd_close) int pack = thin_pack(&fx, tip);
    CHECK_EQ(take(&fx, pack, tip), 0);
}

TEST(a_second_harvest_builds_on_the_first)
{
    AUTO(fixture_finish) struct fixture fx;
    char first[OID_MAX];
    char second[OID_MAX];
    char list[3 * OID_MAX];
    char oid[OID_MAX];

    fixture_init(&fx, "");
    sh(NULL, 0, "cd %s/run && echo x >a && git commit -qam 1", fx.top);
    AUTO(fd_close) int pack = thin_pack(&fx, first);
    CHECK_EQ(take(&fx, pack, first), 0);
    /* Only what is new; its parent and its tree are in the quarantine. */
    sh(oid, sizeof(oid), "git --git-dir=%s rev-parse %s:", fx.run_git, first);
    write_commit(&fx, oid, first, second);
    (void)snprintf(list, sizeof(list), "%s\n", second);
    AUTO(fd_close) int more = make_pack(&fx, list);
    CHECK_EQ(take(&fx, more, second), 0);
    CHECK_EQ(harvest_open(fx.quarantine, &fx.err), 0);
    CHECK_EQ(quarantined(&fx), 0);
}

TEST(names_that_mean_dot_git_are_refused)
{
    static const char *const names[] = { ".git", ".GIT", ".Git", "git~1", "GIT~1", ".git.",
        ".git ", ".git::$INDEX_ALLOCATION", ".g\xe2\x80\x8cit", ".git\xe2\x80\x8d",
        "\xef\xbb\xbf.git", "x\\.git", "x\\git~1\\y" };
    AUTO(fixture_finish) struct fixture fx;

    fixture_init(&fx, "");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_EQ(take_name(&fx, "100644", names[i]), -EBADMSG);
        CHECK(strstr(fx.err.message, "refused"));
    }
    CHECK_EQ(take_name(&fx, "100644", "fine"), 0);
}

TEST(names_that_lead_elsewhere_are_refused)
{
    static const char *const names[] = { ".", "..", "a/b", "/", "../x", "" };
    AUTO(fixture_finish) struct fixture fx;

    fixture_init(&fx, "");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CHECK_EQ(take_name(&fx, "100644", names[i]), -EBADMSG);
}

TEST(a_dot_git_in_a_subdirectory_or_as_a_link_is_refused)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(bytes_finish) struct bytes inner = BYTES_INIT;
    AUTO(bytes_finish) struct bytes tree = BYTES_INIT;
    char sub[OID_MAX];

    fixture_init(&fx, "");
    CHECK_EQ(take_name(&fx, "120000", ".git"), -EBADMSG);
    CHECK_EQ(take_name(&fx, "120000", ".gitmodules"), -EBADMSG);
    add_entry(&inner, "100755", ".git", blob_of(&fx));
    write_object(&fx, "tree", inner.buf.data, inner.buf.len, sub);
    add_entry(&tree, "40000", "sub", sub);
    CHECK_EQ(take_tree(&fx, &tree, sub), -EBADMSG);
}

TEST(malformed_trees_are_refused)
{
    AUTO(fixture_finish) struct fixture fx;
    char zeros[OID_MAX] = "";

    fixture_init(&fx, "");
    const char *blob = blob_of(&fx);
    memset(zeros, '0', strlen(fx.base));
    for (int i = 0; i < 6; i++) {
        AUTO(bytes_finish) struct bytes tree = BYTES_INIT;
        switch (i) {
        case 0: /* twice the same */
            add_entry(&tree, "100644", "a", blob);
            add_entry(&tree, "100644", "a", blob);
            break;
        case 1: /* not sorted */
            add_entry(&tree, "100644", "b", blob);
            add_entry(&tree, "100644", "a", blob);
            break;
        case 2: /* a file and, later, a directory of the same name */
            add_entry(&tree, "100644", "a", blob);
            add_entry(&tree, "100644", "a.b", blob);
            add_entry(&tree, "40000", "a", fx.tree);
            break;
        case 3: /* truncated in the middle of a name */
            buf_add_str(&tree.buf, "100644 abc");
            break;
        case 4: /* a mode with a zero before it */
            add_entry(&tree, "040000", "a", fx.tree);
            break;
        default:
            add_entry(&tree, "100644", "a", zeros);
            break;
        }
        CHECK_EQ(take_tree(&fx, &tree, ""), -EBADMSG);
    }
}

TEST(a_gitmodules_file_that_attacks_is_refused)
{
    static const char *const texts[] = {
        "[submodule \"a\"]\n\tpath = a\n\turl = \"https://h/x\\nhost=evil\"\n",
        "[submodule \"a\"]\n\tpath = a\n\turl = -u./payload\n",
        "[submodule \"a\"]\n\tpath = -a\n\turl = https://h/x\n",
        "[submodule \"a\"]\n\tpath = a\n\turl = https://h/x\n\tupdate = !touch /tmp/x\n",
        "[submodule \"../../hooks\"]\n\tpath = a\n\turl = https://h/x\n",
    };
    AUTO(fixture_finish) struct fixture fx;

    fixture_init(&fx, "");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(bytes_finish) struct bytes tree = BYTES_INIT;
        char modules[OID_MAX];
        write_object(&fx, "blob", texts[i], strlen(texts[i]), modules);
        add_entry(&tree, "100644", ".gitmodules", modules);
        CHECK_EQ(take_tree(&fx, &tree, modules), -EBADMSG);
    }
}

TEST(malformed_commits_are_refused)
{
    static const char *const formats[] = {
        "tree %s\nauthor A <a@b> 1 +0000\n\nno committer\n",
        "tree %s\nauthor A <a@b 1 +0000\ncommitter A <a@b> 1 +0000\n\nbad name\n",
        "author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nno tree %s\n",
        "tree %s\nauthor A <a@b> 99999999999999999999 +0000\ncommitter A <a@b> 1 +0000\n\nx\n",
    };
    AUTO(fixture_finish) struct fixture fx;

    fixture_init(&fx, "");
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        char text[512];
        char tip[OID_MAX];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        int n = snprintf(text, sizeof(text), formats[i], fx.tree);
#pragma GCC diagnostic pop
        write_object(&fx, "commit", text, (size_t)n, tip);
        AUTO(fd_close) int pack = make_pack(&fx, tip);
        CHECK_EQ(take(&fx, pack, tip), -EBADMSG);
    }
}

TEST(a_pack_with_an_object_missing_is_refused)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(bytes_finish) struct bytes tree = BYTES_INIT;
    char blob[OID_MAX];
    char tree_oid[OID_MAX];
    char tip[OID_MAX];
    char list[3 * OID_MAX];

    fixture_init(&fx, "");
    write_object(&fx, "blob", "absent", 6, blob);
    add_entry(&tree, "100644", "a", blob);
    write_object(&fx, "tree", tree.buf.data, tree.buf.len, tree_oid);
    write_commit(&fx, tree_oid, fx.base, tip);
    (void)snprintf(list, sizeof(list), "%s\n%s\n", tip, tree_oid);
    AUTO(fd_close) int no_blob = make_pack(&fx, list);
    CHECK_EQ(take(&fx, no_blob, tip), -EBADMSG);
    AUTO(fd_close) int no_tree = make_pack(&fx, tip);
    CHECK_EQ(take(&fx, no_tree, tip), -EBADMSG);
}

/* The run's git trusts the name of a loose object. Ours does not. */
TEST(content_under_another_objects_name_is_refused)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(bytes_finish) struct bytes tree = BYTES_INIT;
    char good[OID_MAX];
    char evil[OID_MAX];

    fixture_init(&fx, "");
    write_object(&fx, "blob", "good", 4, good);
    write_object(&fx, "blob", "evil", 4, evil);
    sh(NULL, 0, "cd %s/objects && cp -f %.2s/%s %.2s/%s", fx.run_git, evil, evil + 2, good,
            good + 2);
    add_entry(&tree, "100644", "a", good);
    CHECK_EQ(take_tree(&fx, &tree, good), -EBADMSG);
}

TEST(an_object_that_the_repository_has_keeps_its_content)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(bytes_finish) struct bytes tree = BYTES_INIT;
    char known[OID_MAX];
    char evil[OID_MAX];
    char text[64];

    fixture_init(&fx, "");
    sh(known, sizeof(known), "git -C %s/repo rev-parse HEAD:a", fx.top);
    write_object(&fx, "blob", "evil", 4, evil);
    sh(NULL, 0, "cd %s/objects && mkdir -p %.2s && cp -f %.2s/%s %.2s/%s", fx.run_git, known,
            evil, evil + 2, known, known + 2);
    add_entry(&tree, "100644", "a", known);
    CHECK_EQ(take_tree(&fx, &tree, known), 0);
    ask(&fx, text, sizeof(text), "cat-file blob %s", known);
    CHECK_STR(text, "a");
}

TEST(streams_that_are_no_pack_are_refused)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    char bytes[8192];
    static const char header[] = "PACK\0\0\0\2\xff\xff\xff\xff";

    fixture_init(&fx, "");
    sh(NULL, 0, "cd %s/run && echo x >a && git commit -qam 1", fx.top);
    AUTO(fd_close) int pack = thin_pack(&fx, tip);
    ssize_t len = read(pack, bytes, sizeof(bytes));
    CHECK(len > 100 && len < (ssize_t)sizeof(bytes));

    for (ssize_t cut = 0; cut < len; cut += 1 + len / 12) {
        AUTO(fd_close) int fd = open_new(&fx, "cut");
        CHECK_EQ(pwrite(fd, bytes, (size_t)cut, 0), cut);
        CHECK_EQ(take(&fx, fd, tip), -EBADMSG);
    }
    for (ssize_t at = 0; at < len; at += 1 + len / 25) {
        AUTO(fd_close) int fd = open_new(&fx, "flipped");
        CHECK_EQ(pwrite(fd, bytes, (size_t)len, 0), len);
        CHECK_EQ(pwrite(fd, &(char){ (char)(bytes[at] ^ 0x41) }, 1, at), 1);
        CHECK_EQ(take(&fx, fd, tip), -EBADMSG);
    }
    AUTO(fd_close) int wrong = open_new(&fx, "wrong-sum");
    CHECK_EQ(pwrite(wrong, bytes, (size_t)len, 0), len);
    CHECK_EQ(pwrite(wrong, &(char){ (char)(bytes[len - 1] ^ 1) }, 1, len - 1), 1);
    CHECK_EQ(take(&fx, wrong, tip), -EBADMSG);

    AUTO(fd_close) int claims = open_new(&fx, "claims-much");
    CHECK_EQ(pwrite(claims, header, 12, 0), 12);
    CHECK_EQ(take(&fx, claims, tip), -EBADMSG);

    AUTO(fd_close) int garbage = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(take(&fx, garbage, tip), -EBADMSG);
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
