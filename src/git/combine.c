/* combine.c - git merge-tree, and commit objects that we compose. */
#include "git/combine.h"
#include "base/err.h"
#include "git/name.h"
#include <errno.h>
#include <stdio.h>

#define COMBINE_MAX_BYTES ((size_t)256 << 20)

/* Author of commits that only pass trees to merge-tree. */
#define CARREL_IDENT "carrel <carrel@localhost> 0 +0000"

void combine_conflicts_finish(struct combine_conflicts *conflicts)
{
    for (size_t i = 0; i < conflicts->n; i++)
        free(conflicts->paths[i]);
    free(conflicts->paths);
    *conflicts = (struct combine_conflicts){ 0 };
}

int combine_ask_oid(const struct git *git, const char *const *args, char oid[static OID_MAX],
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);
    struct git_io io = GIT_IO_INIT;

    io.output = &text;
    int r = git_expect(git, args, &io, err);
    if (r < 0)
        return r;
    if (!text.data || !name_is_oid(text.data))
        return err_set(err, -EBADMSG, "git %s did not print the name of an object", args[0]);
    (void)snprintf(oid, OID_MAX, "%s", text.data);
    return 0;
}

/* "<tree>\0<path>\0<path>\0..." */
static int parse_merge(const struct buf *text, char tree[static OID_MAX],
        struct combine_conflicts *conflicts, struct carrel_error *err)
{
    if (!text->data || !name_is_oid(text->data))
        return err_set(err, -EBADMSG, "git merge-tree printed an unknown format");
    (void)snprintf(tree, OID_MAX, "%s", text->data);

    size_t at = strlen(text->data) + 1;
    size_t room = 0;
    while (at < text->len && text->data[at]) {
        if (conflicts->n == room) {
            room = room ? room * 2 : 16;
            char **paths = reallocarray(conflicts->paths, room, sizeof(*paths));
            if (!paths)
                return err_set_errno(err, -ENOMEM, "list conflicts");
            conflicts->paths = paths;
        }
        char *path = strdup(text->data + at);
        if (!path)
            return err_set_errno(err, -ENOMEM, "list conflicts");
        conflicts->paths[conflicts->n++] = path;
        at += strlen(path) + 1;
    }
    return 0;
}

int combine_commits(const struct git *git, const char *ours, const char *theirs,
        char tree[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(COMBINE_MAX_BYTES);
    struct git_io io = GIT_IO_INIT;

    io.output = &text;
    int r = git_run(git,
            GIT_ARGS("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours,
                    theirs),
            &io, err);
    if (r == 129)
        return err_set(
                err, -ENOTSUP, "this needs git 2.38 or later (git merge-tree --write-tree)");
    if (r > 1)
        r = -EIO;
    if (r < 0)
        return err_wrap(err, r, "merge");
    int status = r;
    r = parse_merge(&text, tree, conflicts, err);
    if (r == 0 && status == 1 && conflicts->n == 0)
        return err_set(err, -EBADMSG, "git merge-tree reported a conflict without a path");
    return r;
}

int combine_write(const struct git *git, const struct combine_commit *commit,
        char oid[static OID_MAX], struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(COMBINE_MAX_BYTES);
    AUTO(buf_finish) struct buf answer = BUF_INIT(4096);
    struct git_io io = GIT_IO_INIT;

    buf_addf(&text, "tree %s\n", commit->tree);
    for (size_t i = 0; i < ARRAY_LEN(commit->parents) && commit->parents[i]; i++)
        buf_addf(&text, "parent %s\n", commit->parents[i]);
    buf_addf(&text, "author %s\ncommitter %s\n", commit->author, commit->committer);
    if (commit->encoding)
        buf_addf(&text, "encoding %s\n", commit->encoding);
    buf_add_str(&text, "\n");
    buf_add(&text, commit->message, commit->message_len);
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "make a commit");

    io.input = text.data;
    io.input_len = text.len;
    io.output = &answer;
    int r = git_expect(git, GIT_ARGS("hash-object", "-t", "commit", "-w", "--stdin"), &io, err);
    if (r < 0)
        return err_wrap(err, r, "make a commit");
    if (!answer.data || !name_is_oid(answer.data))
        return err_set(err, -EBADMSG, "git hash-object did not name the commit");
    (void)snprintf(oid, OID_MAX, "%s", answer.data);
    return 0;
}

static int tree_of(const struct git *git, const char *rev, char tree[static OID_MAX],
        struct carrel_error *err)
{
    char peeled[OID_MAX + 8];

    (void)snprintf(peeled, sizeof(peeled), "%s^{tree}", rev);
    return combine_ask_oid(
            git, GIT_ARGS("rev-parse", "--verify", "--end-of-options", peeled), tree, err);
}

/* Creates a commit with the tree of `rev` and at most one parent. */
static int wrap_tree(const struct git *git, const char *rev, const char *parent,
        char oid[static OID_MAX], struct carrel_error *err)
{
    char tree[OID_MAX];
    int r = tree_of(git, rev, tree, err);
    if (r < 0)
        return r;

    const struct combine_commit commit = { .tree = tree,
        .parents = { parent },
        .author = CARREL_IDENT,
        .committer = CARREL_IDENT,
        .message = "" };
    return combine_write(git, &commit, oid, err);
}

/* merge-tree finds the base by history (its option --merge-base is too new), so we make one. */
int combine_trees(const struct git *git, const char *base, const char *ours, const char *theirs,
        char tree[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err)
{
    char root[OID_MAX];
    char left[OID_MAX];
    char right[OID_MAX];
    int r = wrap_tree(git, base, NULL, root, err);

    if (r == 0)
        r = wrap_tree(git, ours, root, left, err);
    if (r == 0)
        r = wrap_tree(git, theirs, root, right, err);
    if (r == 0)
        r = combine_commits(git, left, right, tree, conflicts, err);
    return r;
}

/* What a pick keeps of a commit; points into `text`, the whole object. */
struct picked {
    char *parent, *author, *encoding;
    char *message;
    size_t message_len;
};

static int cut(
        char *text, size_t len, const char *oid, struct picked *out, struct carrel_error *err)
{
    int n_parents = 0;
    char *line = text;

    while (line < text + len && *line != '\n') {
        char *end = memchr(line, '\n', (size_t)(text + len - line));
        if (!end)
            return err_set(err, -EBADMSG, "commit %s is truncated", oid);
        *end = '\0';
        if (strncmp(line, "parent ", 7) == 0 && ++n_parents == 1)
            out->parent = line + 7;
        else if (strncmp(line, "author ", 7) == 0)
            out->author = line + 7;
        else if (strncmp(line, "encoding ", 9) == 0)
            out->encoding = line + 9;
        line = end + 1;
    }
    if (n_parents > 1)
        return err_set(err, -ENOTSUP,
                "commit %.12s is a merge, which cannot be picked: use merge instead", oid);
    if (n_parents == 0 || !out->author || line >= text + len)
        return err_set(err, -EBADMSG, "commit %s has no parent or no author", oid);
    out->message = line + 1;
    out->message_len = (size_t)(text + len - out->message);
    return 0;
}

static int pick_one(const struct git *git, const char *oid, const char *committer,
        char commit[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(COMBINE_MAX_BYTES);
    struct git_io io = GIT_IO_INIT;
    struct picked picked = { 0 };
    char tree[OID_MAX];
    char before[OID_MAX];

    io.output = &text;
    int r = git_run(git, GIT_ARGS("cat-file", "commit", oid), &io, err);
    if (r != 0)
        return err_wrap(err, r < 0 ? r : -EIO, "read commit %.12s", oid);
    if (!text.data)
        return err_set(err, -EBADMSG, "commit %s is empty", oid);
    r = cut(text.data, text.len, oid, &picked, err);
    if (r == 0)
        r = combine_trees(git, picked.parent, commit, oid, tree, conflicts, err);
    if (r == 0)
        r = tree_of(git, commit, before, err);
    if (r < 0 || conflicts->n > 0 || strcmp(tree, before) == 0)
        return r;

    char parent[OID_MAX];
    memcpy(parent, commit, sizeof(parent));
    const struct combine_commit made = { .tree = tree,
        .parents = { parent },
        .author = picked.author,
        .committer = committer,
        .encoding = picked.encoding,
        .message = picked.message,
        .message_len = picked.message_len };
    return combine_write(git, &made, commit, err);
}

int combine_pick(const struct git *git, const char *base, const char *tip, const char *head,
        const char *committer, char commit[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf list = BUF_INIT(COMBINE_MAX_BYTES);
    struct git_io io = GIT_IO_INIT;
    char range[2 * OID_MAX + 2];
    char now[OID_MAX];

    io.output = &list;
    (void)snprintf(range, sizeof(range), "%s..%s", base, tip);
    int r = git_expect(
            git, GIT_ARGS("rev-list", "--topo-order", "--reverse", range, "--"), &io, err);
    if (r < 0)
        return err_wrap(err, r, "list the run's commits");
    (void)snprintf(now, sizeof(now), "%s", head);
    char *rest = list.data ? list.data : NULL;
    char *saved = NULL;
    for (char *oid = rest ? strtok_r(rest, "\n", &saved) : NULL;
            oid && r == 0 && conflicts->n == 0; oid = strtok_r(NULL, "\n", &saved))
        r = pick_one(git, oid, committer, now, conflicts, err);
    if (r == 0)
        memcpy(commit, now, OID_MAX);
    return r;
}
