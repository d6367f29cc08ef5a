/* Commits that are refused although every object is well-formed. */
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

    limits = (struct harvest_limits)HARVEST_LIMITS_INIT;
    limits.max_path_bytes = 8;
    AUTO(fd_close) int wordy = thin_pack(&fx, tip);
    CHECK_EQ(take_with(&fx, wordy, tip, &limits), -EFBIG);
    CHECK_STR(fx.err.message, "the paths that the run changed have more than 8 bytes");

    limits.max_path_bytes = 9;
    limits.max_commits = 3;
    limits.max_paths = 3;
    AUTO(fd_close) int fits = thin_pack(&fx, tip);
    CHECK_EQ(take_with(&fx, fits, tip, &limits), 0);
}

/* Ten levels of ten entries each: 600 bytes that expand to ten thousand million files. */
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
    /* git lists them all before it prints the first, so it reaches the memory limit. */
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
    CHECK_EQ(take_with(&fx, pack, tip, &limits), -EFBIG); /* base had three more, now removed */
    limits.max_paths = 1000003;
    AUTO(fd_close) int again = make_pack(&fx, list);
    CHECK_EQ(take_with(&fx, again, tip, &limits), 0);
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

    static const char *const names[] = { "HEAD", "--all", "" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_EQ(take(&fx, -1, names[i]), -EBADMSG);
        CHECK_STR(fx.err.message, "the name of a commit is 40 or 64 hex digits");
    }
}

/*
 * The repository may have incomplete commits, because unreferenced objects are collected piece
 * by piece. The run can name such a commit without sending anything, so checking the pack is
 * not enough.
 */
TEST(a_tip_that_leads_to_what_nobody_has_is_refused)
{
    static const char none[] = "1234567890123456789012345678901234567890";
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];

    fixture_init(&fx, "");
    sh(tip, sizeof(tip),
            "printf 'tree %s\\nparent %s\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000"
            "\\n\\nx\\n' | git --git-dir=%s hash-object -t commit -w --literally --stdin",
            none, fx.base, fx.git_dir);
    AUTO(fd_close) int no_tree = make_pack(&fx, "");
    CHECK_EQ(take(&fx, no_tree, tip), -EBADMSG);
    CHECK(strstr(fx.err.message, "the run's history is incomplete"));

    sh(tip, sizeof(tip),
            "printf 'tree %s\\nparent %s\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000"
            "\\n\\nx\\n' | git --git-dir=%s hash-object -t commit -w --literally --stdin",
            fx.tree, none, fx.git_dir);
    AUTO(fd_close) int no_parent = make_pack(&fx, "");
    CHECK_EQ(take(&fx, no_parent, tip), -EBADMSG);
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
    CHECK(strstr(fx.err.message, "which is not a commit"));
}
