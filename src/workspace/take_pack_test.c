/* Packs that a run may send: a few good ones, and what must never get in. */
#include "workspace/hostile_fixture.h"

/* Takes a commit with this one tree, and with a blob that says "blob". */
static int take_tree(struct fixture *fx, const struct bytes *tree, const char *more)
{
    char tree_oid[OID_MAX];
    char tip[OID_MAX];
    char blob[OID_MAX];
    char list[1024];

    write_object(fx, "blob", "blob", 4, blob);
    write_object(fx, "tree", tree->buf.data, tree->buf.len, tree_oid);
    write_commit(fx, tree_oid, fx->base, tip);
    (void)snprintf(list, sizeof(list), "%s\n%s\n%s\n%s", tip, tree_oid, blob, more);
    AUTO(fd_close) int pack = make_pack(fx, list);
    return take(fx, pack, tip);
}

static int take_name(struct fixture *fx, const char *mode, const char *name)
{
    AUTO(bytes_finish) struct bytes tree = BYTES_INIT;

    add_entry(&tree, mode, name, blob_of(fx));
    return take_tree(fx, &tree, "");
}

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
        case 3: /* cut in the middle of a name */
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

TEST(a_name_too_long_for_any_file_system_is_refused)
{
    AUTO(fixture_finish) struct fixture fx;
    char name[5001];

    fixture_init(&fx, "");
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK_EQ(take_name(&fx, "100644", name), -EBADMSG);
    CHECK(strstr(fx.err.message, "longer than"));
    name[255] = '\0';
    CHECK_EQ(take_name(&fx, "100644", name), 0);
}

TEST(a_path_too_deep_for_any_file_system_is_refused)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];

    fixture_init(&fx, "");
    sh(NULL, 0,
            "{ printf 'commit refs/heads/main\\ncommitter A <a@b> 1 +0000\\ndata 0\\nfrom %s\\n"
            "M 100644 inline '; head -c 6000 /dev/zero | tr '\\0' a | sed 's,a,&/,g';"
            " printf 'f\\ndata 1\\nx\\n'; } | git --git-dir=%s fast-import --quiet --force",
            fx.base, fx.run_git);
    AUTO(fd_close) int pack = thin_pack(&fx, tip);
    CHECK_EQ(take(&fx, pack, tip), -EBADMSG);
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

/* The run's git reads a loose object by its name alone. Ours does not. */
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

TEST(an_empty_pack_is_fine_when_the_commit_is_known)
{
    AUTO(fixture_finish) struct fixture fx;
    char unknown[OID_MAX];

    fixture_init(&fx, "");
    AUTO(fd_close) int pack = make_pack(&fx, "");
    CHECK_EQ(take(&fx, pack, fx.base), 0);
    CHECK_EQ(quarantined(&fx), 0);

    write_commit(&fx, fx.tree, fx.base, unknown);
    AUTO(fd_close) int again = make_pack(&fx, "");
    CHECK_EQ(take(&fx, again, unknown), -EBADMSG);
    CHECK(strstr(fx.err.message, "which is none"));
}

TEST(a_tip_that_is_no_commit_is_refused)
{
    AUTO(fixture_finish) struct fixture fx;
    char tag[OID_MAX];
    char text[256];

    fixture_init(&fx, "");
    AUTO(fd_close) int empty = make_pack(&fx, "");
    CHECK_EQ(take(&fx, empty, fx.tree), -EBADMSG);

    int n = snprintf(text, sizeof(text),
            "object %s\ntype commit\ntag v1\ntagger A <a@b> 1 +0000\n\nx\n", fx.base);
    write_object(&fx, "tag", text, (size_t)n, tag);
    AUTO(fd_close) int pack = make_pack(&fx, tag);
    CHECK_EQ(take(&fx, pack, tag), -EBADMSG);

    CHECK_EQ(take(&fx, -1, "HEAD"), -EBADMSG);
    CHECK_EQ(take(&fx, -1, "--all"), -EBADMSG);
    CHECK_EQ(take(&fx, -1, ""), -EBADMSG);
}

TEST(a_new_submodule_needs_permission)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(bytes_finish) struct bytes tree = BYTES_INIT;
    struct harvest_limits limits = HARVEST_LIMITS_INIT;
    char tree_oid[OID_MAX];
    char tip[OID_MAX];
    char list[3 * OID_MAX];

    fixture_init(&fx, "");
    add_entry(&tree, "160000", "sub", fx.base);
    write_object(&fx, "tree", tree.buf.data, tree.buf.len, tree_oid);
    write_commit(&fx, tree_oid, fx.base, tip);
    (void)snprintf(list, sizeof(list), "%s\n%s\n", tip, tree_oid);
    AUTO(fd_close) int pack = make_pack(&fx, list);
    CHECK_EQ(take(&fx, pack, tip), -EBADMSG);
    CHECK(strstr(fx.err.message, "'sub' is refused: it is a new submodule"));

    limits.allow_gitlinks = true;
    AUTO(fd_close) int again = make_pack(&fx, list);
    CHECK_EQ(take_with(&fx, again, tip, &limits), 0);
}
