#include "git/format/config.h"
#include "workspace/place_fixture.h"
#include <stdlib.h>

static const struct config_terms plain = { 0 };

static void add_setting(struct buf *list, const char *key, const char *value)
{
    buf_add_str(list, key);
    if (value) {
        buf_add_str(list, "\n");
        buf_add_str(list, value);
    }
    buf_add(list, "", 1);
}

/* What git reads from the configuration that config_write() creates from `list`. */
static void read_back(const struct buf *list, const struct config_terms *terms, struct buf *out)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    char path[] = "/tmp/config-test-XXXXXX";
    AUTO(fd_close) int fd = mkostemp(path, O_CLOEXEC);
    const struct git_program git = { .cwd = "/" };

    CHECK(fd >= 0);
    config_write(terms, list->data, list->len, &text);
    CHECK(!text.is_short);
    CHECK_EQ(fd_write_all(fd, text.data, text.len), 0);
    int r = git_program_run(
            &git, GIT_WORDS("config", "-f", path, "--no-includes", "--list", "-z"), "", 0, out);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(r, 0);
}

TEST(values_of_any_bytes_come_back_from_git_as_they_were)
{
    AUTO(buf_finish) struct buf list = BUF_INIT(1 << 20);
    AUTO(buf_finish) struct buf out = BUF_INIT(1 << 20);
    char every[256];

    for (int i = 1; i < 256; i++)
        every[i - 1] = (char)i;
    every[255] = '\0';
    const char *const values[] = { every, "", " ", "\t x \t", "#no;comment", "\"", "\\", "\\n",
        "a\nb\n", "\n", "\r", "a\r\nb\r", "trailing \\", "]\n[core]\n\thooksPath = /x",
        "\"; rm", "\xef\xbb\xbf", "ä\xff" };
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char key[64];
        (void)snprintf(key, sizeof(key), "filter.f%zu.clean", i);
        add_setting(&list, key, values[i]);
    }
    read_back(&list, &plain, &out);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char key[64];
        (void)snprintf(key, sizeof(key), "filter.f%zu.clean", i);
        CHECK_STR(config_find(out.data, out.len, key), values[i]);
    }
    CHECK_STR(config_find(out.data, out.len, "core.hookspath"), NULL);
}

TEST(random_values_come_back_from_git_as_they_were)
{
    static const char alphabet[] = "ab \t\n\r\"\\#;=[].'$`n";
    AUTO(buf_finish) struct buf list = BUF_INIT(1 << 20);
    AUTO(buf_finish) struct buf out = BUF_INIT(1 << 20);
    static char values[500][16];

    srand(7);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char key[64];
        size_t len = (size_t)rand() % (sizeof(values[i]) - 1);
        for (size_t j = 0; j < len; j++)
            values[i][j] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
        (void)snprintf(key, sizeof(key), "filter.f%zu.smudge", i);
        add_setting(&list, key, values[i]);
    }
    read_back(&list, &plain, &out);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char key[64];
        (void)snprintf(key, sizeof(key), "filter.f%zu.smudge", i);
        CHECK_STR(config_find(out.data, out.len, key), values[i]);
    }
}

TEST(names_of_filters_may_hold_quotes_dots_and_capitals)
{
    static const char *const keys[] = { "filter.a.b.clean", "filter.A\"q\\.clean",
        "filter.a b]c.clean", "filter. .clean", "filter..clean" };
    AUTO(buf_finish) struct buf list = BUF_INIT(65536);
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        add_setting(&list, keys[i], keys[i]);
    read_back(&list, &plain, &out);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        CHECK_STR(config_find(out.data, out.len, keys[i]), keys[i]);
}

TEST(what_is_not_on_the_table_is_left_out)
{
    static const char *const keys[] = { "remote.origin.url", "credential.helper",
        "include.path", "includeif.gitdir:/.path", "url.ssh://x.insteadof", "http.extraheader",
        "core.hookspath", "core.fsmonitor", "core.sshcommand", "core.editor", "core.pager",
        "alias.st", "user.signingkey", "gpg.program", "diff.x.textconv", "merge.x.driver",
        "lfs.url", "filter.x.url", "submodule.x.url", "submodule.x.update",
        "extensions.worktreeconfig", "core.worktree", "user", "filter.clean", "core.x.filemode",
        "", "." };
    AUTO(buf_finish) struct buf list = BUF_INIT(65536);
    AUTO(buf_finish) struct buf text = BUF_INIT(65536);
    AUTO(buf_finish) struct buf bare = BUF_INIT(65536);

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        add_setting(&list, keys[i], "secret");
    config_write(&plain, list.data, list.len, &text);
    config_write(&plain, NULL, 0, &bare);
    CHECK_MEM(text.data, text.len, bare.data, bare.len);
}

TEST(a_switch_without_a_value_is_true_and_anything_else_without_one_is_left_out)
{
    AUTO(buf_finish) struct buf list = BUF_INIT(65536);
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);

    add_setting(&list, "filter.x.required", NULL);
    add_setting(&list, "filter.x.clean", NULL);
    read_back(&list, &plain, &out);
    CHECK(memmem(out.data, out.len, "filter.x.required", 18)); /* and its NUL: no value */
    CHECK(!memmem(out.data, out.len, "clean", 5));
}

TEST(the_last_of_several_values_wins_as_it_does_for_the_user)
{
    AUTO(buf_finish) struct buf list = BUF_INIT(65536);
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);

    add_setting(&list, "core.autocrlf", "true");
    add_setting(&list, "user.name", "System");
    add_setting(&list, "core.autocrlf", "input");
    add_setting(&list, "user.name", "Own");
    read_back(&list, &plain, &out);
    CHECK_STR(config_find(out.data, out.len, "core.autocrlf"), "input");
    CHECK_STR(config_find(out.data, out.len, "user.name"), "Own");
}

TEST(our_own_settings_are_there_and_a_commit_has_a_name)
{
    const struct config_terms terms = { .is_sha256 = true, .attributes_file = "/x" };
    AUTO(buf_finish) struct buf list = BUF_INIT(65536);
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);

    add_setting(&list, "user.name", "");
    read_back(&list, &terms, &out);
    CHECK_STR(config_find(out.data, out.len, "core.repositoryformatversion"), "1");
    CHECK_STR(config_find(out.data, out.len, "extensions.objectformat"), "sha256");
    CHECK_STR(config_find(out.data, out.len, "core.bare"), "false");
    CHECK_STR(config_find(out.data, out.len, "gc.auto"), "0");
    CHECK_STR(config_find(out.data, out.len, "core.attributesfile"), "/x");
    CHECK_STR(config_find(out.data, out.len, "user.name"), "carrel");
    CHECK_STR(config_find(out.data, out.len, "user.email"), "carrel@localhost");
}

TEST(an_answer_that_was_cut_short_does_not_count)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(65536);

    config_write(&plain, "user.name\nWho", 13, &text);
    CHECK(!strstr(text.data, "Who"));
    CHECK_STR(config_find("a.b\nc", 5, "a.b"), NULL);
}
