/*
 * node.h - the text of a policy file as a small tree with positions.
 *
 * The file may come with an untrusted repository. So only plain YAML is accepted: scalars,
 * lists and mappings of one document. Aliases, anchors, tags, merge keys and duplicate keys are
 * refused, and so is a file that is too large, too deep or not UTF-8.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct carrel_error;

#define NODE_BYTES_MAX (256U << 10)
#define NODE_DEPTH_MAX 32
#define NODE_COUNT_MAX 10000

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
    enum node_kind kind;
    bool is_null;      /* an empty scalar, or ~ or null */
    unsigned line;     /* from 1 */
    unsigned column;   /* from 1, in characters */
    const char *text;  /* of a scalar */
    struct node *item; /* first of a list or mapping */
    struct node *next; /* in the list or mapping that this one is in */
    const char *key;   /* in a mapping: its name, and the position of that */
    unsigned key_line;
    unsigned key_column;
};

/*
 * Reads one document; *out is NULL if there is only space and comments. Everything is allocated
 * in `arena`. -EINVAL with FILE:LINE:COLUMN, where `name` is the file.
 */
int node_read(struct arena *arena, const char *text, size_t len, const char *name,
        struct node **out, struct carrel_error *err);
