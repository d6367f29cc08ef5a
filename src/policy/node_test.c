/* node_test.c - which YAML is accepted. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "harness.h"
#include "policy/node.h"
#include <errno.h>

static struct carrel_error err;

static int read_bytes(struct arena *arena, const char *text, size_t len, struct node **out)
{
    *out = NULL;
    return node_read(arena, text, len, "test", out, &err);
}

static void refused_bytes(int line, const char *text, size_t len, int code, const char *said)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    struct node *node;

    test_check_eq(__FILE__, line, "code", read_bytes(&arena, text, len, &node), code);
    if (strncmp(err.message, said, strlen(said)) != 0)
        test_check_str(__FILE__, line, "message", err.message, said);
}
#define REFUSED(text, said) refused_bytes(__LINE__, text, sizeof(text) - 1, -EINVAL, said)

TEST(scalars_lists_and_mappings_know_their_places)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    static const char text[] = "a: 1\nb:\n  - x\n  - 'y z'\nc: {d: \"\\u00e4\"}\n";
    struct node *root;

    CHECK_EQ(read_bytes(&arena, text, strlen(text), &root), 0);
    CHECK_EQ(root->kind, NODE_MAP);
    const struct node *a = root->item;
    CHECK_STR(a->key, "a");
    CHECK_STR(a->text, "1");
    CHECK_EQ(a->line, 1);
    CHECK_EQ(a->column, 4);
    const struct node *b = a->next;
    CHECK_EQ(b->kind, NODE_LIST);
    CHECK_EQ(b->key_line, 2);
    CHECK_STR(b->item->text, "x");
    CHECK_STR(b->item->next->text, "y z");
    CHECK_EQ(b->item->next->line, 4);
    CHECK_EQ(b->item->next->column, 5);
    const struct node *c = b->next;
    CHECK_EQ(c->kind, NODE_MAP);
    CHECK_STR(c->item->key, "d");
    CHECK_STR(c->item->text, "\xc3\xa4");
    CHECK(!c->next);
}

TEST(nothing_but_comments_is_nothing)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    struct node *root;

    CHECK_EQ(read_bytes(&arena, "", 0, &root), 0);
    CHECK(!root);
    CHECK_EQ(read_bytes(&arena, "# a\n\n", 5, &root), 0);
    CHECK(!root);
}

TEST(only_a_plain_nothing_is_null)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    static const char text[] = "[~, null, '', 'null', {a: }]";
    static const bool is_null[] = { true, true, false, false };
    struct node *root;

    CHECK_EQ(read_bytes(&arena, text, strlen(text), &root), 0);
    const struct node *node = root->item;
    for (size_t i = 0; i < ARRAY_LEN(is_null); i++, node = node->next)
        CHECK_EQ(node->is_null, is_null[i]);
    CHECK(node->item->is_null);
}

TEST(aliases_anchors_tags_and_merges_are_refused)
{
    REFUSED("a: &x 1\n", "test:1:4: anchors are not accepted");
    REFUSED("a: &x [1]\n", "test:1:4: anchors are not accepted");
    REFUSED("&x {a: 1}\n", "test:1:1: anchors are not accepted");
    REFUSED("b: *x\n", "test:1:4: aliases are not accepted");
    REFUSED("*x : 1\n", "test:1:1: aliases are not accepted");
    REFUSED("a: !!str 1\n", "test:1:4: tags are not accepted");
    REFUSED("a: !x [1]\n", "test:1:4: tags are not accepted");
    REFUSED("a: !x {b: 1}\n", "test:1:4: tags are not accepted");
    REFUSED("%TAG ! tag:x,2000:\n---\na: 1\n", "test:1:1: tags are not accepted");
    REFUSED("<<: {a: 1}\n", "test:1:1: merge keys are not accepted");
    REFUSED("a:\n  <<: {a: 1}\n", "test:2:3: merge keys are not accepted");
}

TEST(a_billion_laughs_are_none)
{
    REFUSED("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
            "test:1:4: anchors are not accepted");
}

TEST(a_key_comes_once_and_is_a_word)
{
    REFUSED("a: 1\nb: 2\na: 3\n",
            "test:3:1: the key 'a' is here twice; the first is in line 1");
    REFUSED("x: {a: 1, \"a\": 2}\n", "test:1:11: the key 'a' is here twice");
    REFUSED("[a]: 1\n", "test:1:1: a key must be a word");
    REFUSED("? {a: 1}\n: 1\n", "test:1:3: a key must be a word");
}

TEST(a_second_document_is_refused)
{
    REFUSED("a: 1\n---\nb: 2\n", "test:2:1: a second document is not accepted");
    AUTO(arena_finish) struct arena arena = { 0 };
    struct node *root;
    CHECK_EQ(read_bytes(&arena, "---\na: 1\n...\n", 13, &root), 0);
    CHECK_STR(root->item->key, "a");
}

TEST(what_is_not_yaml_is_refused_with_its_place)
{
    REFUSED("a: [1, 2\n", "test:2:1: this is not YAML: ");
    REFUSED("a: 1\n b: 2\n", "test:2:3: this is not YAML: ");
    REFUSED("a:\n\t- b\n", "test:2:1: this is not YAML: ");
    REFUSED("a: \"\\q\"\n", "test:1:5: this is not YAML: ");
}

TEST(other_bytes_than_utf8_text_are_refused)
{
    REFUSED("a: \xff\n", "test:1:4: the file is not UTF-8 text");
    REFUSED("\xc3\xa4: 1\nb: \xed\xa0\x80\n", "test:2:4: the file is not UTF-8 text");
    REFUSED("\xef\xbb\xbf"
            "a: 1\n",
            "test:1:1: byte order marks are not accepted");
    REFUSED("\xff\xfe"
            "a\0:\0",
            "test:1:1: the file is not UTF-8 text");
    REFUSED("a\0: 1\n", "test:1:2: the file holds a NUL byte");
    REFUSED("\xc3\xa4\xc3\xa4: \x1b[31m\n", "test:1:5: control characters are not accepted");
    REFUSED("a: \x7f\n", "test:1:4: control characters are not accepted");
    REFUSED("a: \"x\\0y\"\n", "test:1:4: a text holds a NUL byte");
}

TEST(what_is_too_large_is_refused)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);

    for (size_t i = 0; i <= NODE_BYTES_MAX; i++)
        buf_add_str(&text, "\n");
    refused_bytes(__LINE__, text.data, text.len, -EFBIG, "test is larger than 262144 bytes");
    refused_bytes(__LINE__, text.data, text.len - 1, 0, "");
}

TEST(what_is_too_deep_is_refused)
{
    char deep[200];

    memset(deep, '[', sizeof(deep));
    refused_bytes(
            __LINE__, deep, sizeof(deep), -EINVAL, "test:1:33: the file is nested too deeply");
    memset(deep + 32, ']', 32);
    refused_bytes(__LINE__, deep, 64, 0, "");
}

TEST(too_many_parts_are_refused)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);

    for (size_t i = 0; i < NODE_COUNT_MAX; i++)
        buf_add_str(&text, "- a\n");
    refused_bytes(__LINE__, text.data, text.len, -EINVAL,
            "test:10000:3: the file has too many parts");
    refused_bytes(__LINE__, text.data, text.len - 4, 0, "");
}
