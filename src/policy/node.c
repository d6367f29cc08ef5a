/* node.c - turns libyaml's events into nodes, with limits of our own. */
#include "policy/node.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <yaml.h>

/* For AUTO(): libyaml's destructors already take a pointer. */
static inline void yaml_event_deletep(yaml_event_t *event)
{
    yaml_event_delete(event);
}

static inline void yaml_parser_deletep(yaml_parser_t *parser)
{
    yaml_parser_delete(parser);
}

struct reader {
    yaml_parser_t *parser;
    struct arena *arena;
    const char *text;
    size_t len;
    const char *name;
    unsigned count; /* of nodes */
    unsigned depth;
    struct carrel_error *err;
};

static unsigned number_of(size_t from_zero)
{
    return from_zero < UINT_MAX ? (unsigned)from_zero + 1 : UINT_MAX;
}

static int refuse(struct reader *rd, yaml_mark_t mark, const char *why)
{
    return err_set(rd->err, -EINVAL, "%s:%u:%u: %s", rd->name, number_of(mark.line),
            number_of(mark.column), why);
}

/* An error at a byte offset, before there are any events. */
static int refuse_at(struct reader *rd, size_t offset, const char *why)
{
    yaml_mark_t mark = { 0 };

    for (size_t i = 0; i < offset && i < rd->len; i++) {
        if (rd->text[i] == '\n') {
            mark.line++;
            mark.column = 0;
        } else if ((rd->text[i] & 0xc0) != 0x80) {
            mark.column++;
        }
    }
    return refuse(rd, mark, why);
}

/* libyaml would guess other encodings, and accept bytes that no editor shows. */
static int check_bytes(struct reader *rd)
{
    const unsigned char *bytes = (const unsigned char *)rd->text;

    if (rd->len > NODE_BYTES_MAX)
        return err_set(rd->err, -EFBIG, "%s is larger than %u bytes", rd->name, NODE_BYTES_MAX);
    for (size_t i = 0; i < rd->len;) {
        if (bytes[i] >= 0x20 && bytes[i] < 0x7f) {
            i++;
            continue;
        }
        size_t n = utf8_valid(bytes + i, rd->len - i);
        if (n == 0)
            return refuse_at(rd, i, "the file is not UTF-8 text");
        if (n == 3 && memcmp(bytes + i, "\xef\xbb\xbf", 3) == 0)
            return refuse_at(rd, i, "byte order marks are not accepted");
        if (bytes[i] == 0)
            return refuse_at(rd, i, "the file holds a NUL byte");
        if (n == 1 && !strchr("\t\n\r", bytes[i]))
            return refuse_at(rd, i, "control characters are not accepted");
        i += n;
    }
    return 0;
}

/* libyaml's error. */
static int not_yaml(struct reader *rd)
{
    const yaml_parser_t *parser = rd->parser;
    char why[200];

    if (parser->error == YAML_MEMORY_ERROR)
        return err_set_errno(rd->err, -ENOMEM, "read '%s'", rd->name);
    (void)snprintf(why, sizeof(why), "this is not YAML: %s",
            parser->problem ? parser->problem : "it cannot be read");
    if (parser->error == YAML_READER_ERROR)
        return refuse_at(rd, parser->problem_offset, why);
    return refuse(rd, parser->problem_mark, why);
}

static int next_event(struct reader *rd, yaml_event_t *event)
{
    if (!yaml_parser_parse(rd->parser, event)) {
        memset(event, 0, sizeof(*event));
        return not_yaml(rd);
    }
    return 0;
}

static int new_node(struct reader *rd, enum node_kind kind, yaml_mark_t mark, struct node **out)
{
    if (++rd->count > NODE_COUNT_MAX)
        return refuse(rd, mark, "the file has too many parts");
    struct node *node = arena_alloc(rd->arena, sizeof(*node));
    if (!node)
        return err_set_errno(rd->err, -ENOMEM, "read '%s'", rd->name);
    node->kind = kind;
    node->line = number_of(mark.line);
    node->column = number_of(mark.column);
    *out = node;
    return 0;
}

static bool is_null_word(const char *text)
{
    return !text[0] || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

static int read_scalar(struct reader *rd, const yaml_event_t *event, struct node **out)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;

    if (memchr(text, '\0', len))
        return refuse(rd, event->start_mark, "a text holds a NUL byte");
    int r = new_node(rd, NODE_SCALAR, event->start_mark, out);
    if (r < 0)
        return r;
    (*out)->text = arena_copy(rd->arena, text, len);
    (*out)->is_null = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && (*out)->text &&
                      is_null_word(text);
    return (*out)->text ? 0 : err_set_errno(rd->err, -ENOMEM, "read '%s'", rd->name);
}

static int check_marks(struct reader *rd, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL;
    const yaml_char_t *tag = NULL;

    if (event->type == YAML_ALIAS_EVENT)
        return refuse(rd, event->start_mark, "aliases are not accepted");
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor)
        return refuse(rd, event->start_mark, "anchors are not accepted");
    if (tag)
        return refuse(rd, event->start_mark, "tags are not accepted");
    return 0;
}

static int read_node(struct reader *rd, const yaml_event_t *event, struct node **out);

static int read_items(struct reader *rd, struct node *list)
{
    assert(list);
    struct node **end = &list->item;

    for (;;) {
        AUTO(yaml_event_delete) yaml_event_t event = { 0 };
        int r = next_event(rd, &event);
        if (r < 0 || event.type == YAML_SEQUENCE_END_EVENT)
            return r;
        r = read_node(rd, &event, end);
        if (r < 0)
            return r;
        end = &(*end)->next;
    }
}

static int check_key(struct reader *rd, const struct node *map, const struct node *key)
{
    yaml_mark_t mark = { .line = key->line - 1, .column = key->column - 1 };
    char shown[64];
    char why[128];

    if (key->kind != NODE_SCALAR)
        return refuse(rd, mark, "a key must be a word");
    if (strcmp(key->text, "<<") == 0)
        return refuse(rd, mark, "merge keys are not accepted");
    for (const struct node *other = map->item; other; other = other->next) {
        if (strcmp(other->key, key->text) != 0)
            continue;
        (void)snprintf(why, sizeof(why), "the key '%s' is here twice; the first is in line %u",
                str_escape(key->text, strlen(key->text), shown, sizeof(shown)),
                other->key_line);
        return refuse(rd, mark, why);
    }
    return 0;
}

static int read_value(struct reader *rd, struct node **out)
{
    AUTO(yaml_event_delete) yaml_event_t event = { 0 };
    int r = next_event(rd, &event);

    return r < 0 ? r : read_node(rd, &event, out);
}

static int read_members(struct reader *rd, struct node *map)
{
    struct node **end = &map->item;

    for (;;) {
        AUTO(yaml_event_delete) yaml_event_t event = { 0 };
        struct node *key = NULL;
        struct node *value = NULL;
        int r = next_event(rd, &event);
        if (r < 0 || event.type == YAML_MAPPING_END_EVENT)
            return r;
        r = read_node(rd, &event, &key);
        if (r == 0)
            r = check_key(rd, map, key);
        if (r == 0)
            r = read_value(rd, &value);
        if (r < 0)
            return r;
        assert(key && value);
        value->key = key->text;
        value->key_line = key->line;
        value->key_column = key->column;
        *end = value;
        end = &value->next;
    }
}

static int read_node(struct reader *rd, const yaml_event_t *event, struct node **out)
{
    const bool is_map = event->type == YAML_MAPPING_START_EVENT;
    int r = check_marks(rd, event);

    if (r == 0 && event->type == YAML_SCALAR_EVENT)
        return read_scalar(rd, event, out);
    if (r == 0 && rd->depth == NODE_DEPTH_MAX)
        r = refuse(rd, event->start_mark, "the file is nested too deeply");
    if (r == 0)
        r = new_node(rd, is_map ? NODE_MAP : NODE_LIST, event->start_mark, out);
    if (r < 0)
        return r;
    rd->depth++;
    r = is_map ? read_members(rd, *out) : read_items(rd, *out);
    rd->depth--;
    return r;
}

static int read_document(struct reader *rd, struct node **out)
{
    AUTO(yaml_event_delete) yaml_event_t event = { 0 };
    AUTO(yaml_event_delete) yaml_event_t end = { 0 };

    int r = next_event(rd, &event);
    if (r == 0)
        r = read_node(rd, &event, out);
    return r < 0 ? r : next_event(rd, &end); /* only the document's end can follow */
}

static int read_stream(struct reader *rd, struct node **out)
{
    unsigned documents = 0;

    for (;;) {
        AUTO(yaml_event_delete) yaml_event_t event = { 0 };
        int r = next_event(rd, &event);
        if (r < 0 || event.type == YAML_STREAM_END_EVENT)
            return r;
        if (event.type != YAML_DOCUMENT_START_EVENT)
            continue; /* the stream's start */
        if (event.data.document_start.tag_directives.start !=
                event.data.document_start.tag_directives.end)
            return refuse(rd, event.start_mark, "tags are not accepted");
        if (documents++ > 0)
            return refuse(rd, event.start_mark, "a second document is not accepted");
        r = read_document(rd, out);
        if (r < 0)
            return r;
    }
}

int node_read(struct arena *arena, const char *text, size_t len, const char *name,
        struct node **out, struct carrel_error *err)
{
    struct reader rd = { .arena = arena, .text = text, .len = len, .name = name, .err = err };
    struct node *root = NULL;

    int r = check_bytes(&rd);
    if (r < 0)
        return r;
    AUTO(yaml_parser_delete) yaml_parser_t parser = { 0 };
    if (!yaml_parser_initialize(&parser))
        return err_set_errno(err, -ENOMEM, "read '%s'", name);
    rd.parser = &parser;
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    r = read_stream(&rd, &root);
    if (r < 0)
        return r;
    *out = root;
    return 0;
}
