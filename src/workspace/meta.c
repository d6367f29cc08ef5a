/* meta.c - the table of what is recorded of a workspace, and both directions through it. */
#include "workspace/meta.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The first line tells the format, the last one that nothing is missing. */
#define FIRST "carrel-workspace 1"
#define LAST "end"

enum kind { TEXT, HEAP_TEXT, FLAG, PHASE, MODE, SECONDS, COUNT };

struct key {
    char name[16];
    enum kind kind;
    size_t at;   /* offset in struct workspace */
    size_t size; /* of the array, for TEXT */
};

#define FIELD(label, how, member)                                                              \
    {                                                                                          \
        label, how, offsetof(struct workspace, member),                                        \
                sizeof(((struct workspace *)NULL)->member)                                     \
    }

static const struct key keys[] = {
    FIELD("task", TEXT, task),
    FIELD("run", TEXT, run),
    FIELD("branch", TEXT, branch),
    FIELD("repo", HEAP_TEXT, repo),
    FIELD("top", HEAP_TEXT, top),
    FIELD("base", TEXT, base),
    FIELD("tip", TEXT, tip),
    FIELD("snapshot", TEXT, snapshot),
    FIELD("branch-at", TEXT, branch_at),
    FIELD("branch-to", TEXT, branch_to),
    FIELD("applied", TEXT, applied),
    FIELD("applied-tree", TEXT, applied_tree),
    FIELD("setup", TEXT, setup),
    FIELD("layers", HEAP_TEXT, layers),
    FIELD("phase", PHASE, phase),
    FIELD("mode", MODE, mode),
    FIELD("folder", FLAG, is_folder),
    FIELD("cut", FLAG, is_cut),
    FIELD("ahead", FLAG, is_ahead),
    FIELD("user-locked", FLAG, is_user_locked),
    FIELD("opened", FLAG, is_opened),
    FIELD("opened-at", HEAP_TEXT, opened_at),
    FIELD("worktree", TEXT, worktree),
    FIELD("published", FLAG, is_published),
    FIELD("branch-asked", FLAG, is_branch_asked),
    FIELD("branch-spare", FLAG, is_branch_spare),
    FIELD("aside", COUNT, n_other_commits),
    FIELD("created", SECONDS, created_s),
    FIELD("created-ns", COUNT, created_ns),
    FIELD("note", TEXT, note),
};

static const char *const phases[] = {
    [WORKSPACE_CREATING] = "creating",
    [WORKSPACE_READY] = "ready",
    [WORKSPACE_FINISHED] = "finished",
};

static const char *const modes[] = {
    [WORKSPACE_OVERLAY] = "overlay",
    [WORKSPACE_COPY] = "copy",
};

const char *workspace_mode_name(enum workspace_mode mode)
{
    return modes[mode];
}

static void add_escaped(struct buf *out, const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "\\\n");
        buf_add(out, text, plain);
        text += plain;
        if (!*text)
            break;
        buf_add_str(out, *text == '\n' ? "\\n" : "\\\\");
        text++;
    }
}

/* The text of one field; NULL: it has none and its line is left out. */
static const char *text_of(
        const struct workspace *ws, const struct key *key, char number[static 32])
{
    const char *field = (const char *)ws + key->at;

    switch (key->kind) {
    case TEXT:
        return *field ? field : NULL;
    case HEAP_TEXT:
        return *(char *const *)(const void *)field;
    case FLAG:
        return *(const bool *)field ? "yes" : NULL;
    case PHASE:
        return phases[ws->phase];
    case MODE:
        return modes[ws->mode];
    case SECONDS:
        (void)snprintf(number, 32, "%jd", (intmax_t)ws->created_s);
        return number;
    case COUNT:
        (void)snprintf(number, 32, "%ju", (uintmax_t) * (const uint64_t *)(const void *)field);
        return strcmp(number, "0") == 0 ? NULL : number;
    }
    return NULL;
}

void meta_write(const struct workspace *ws, struct buf *out)
{
    char number[32];

    buf_add_str(out, FIRST "\n");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *text = text_of(ws, &keys[i], number);
        if (!text)
            continue;
        buf_addf(out, "%s ", keys[i].name);
        add_escaped(out, text);
        buf_add_str(out, "\n");
    }
    buf_add_str(out, LAST "\n");
}

/* Takes the escapes out in place. */
static int unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        from++;
        if (*from != 'n' && *from != '\\')
            return -EBADMSG;
        *to++ = *from == 'n' ? '\n' : '\\';
    }
    *to = '\0';
    return 0;
}

static int index_of(const char *const *words, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(words[i], text) == 0)
            return (int)i;
    }
    return -EBADMSG;
}

static int set_heap_text(char **field, const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        return -ENOMEM;
    free(*field);
    *field = copy;
    return 0;
}

static int set(struct workspace *ws, const struct key *key, const char *text)
{
    char *field = (char *)ws + key->at;
    uint64_t seconds;
    int r = 0;

    switch (key->kind) {
    case TEXT:
        if (strlen(text) >= key->size)
            return -EBADMSG;
        memcpy(field, text, strlen(text) + 1);
        return 0;
    case HEAP_TEXT:
        return strlen(text) < PATH_MAX ? set_heap_text((char **)(void *)field, text) : -EBADMSG;
    case FLAG:
        *(bool *)field = strcmp(text, "yes") == 0;
        return 0;
    case PHASE:
        r = index_of(phases, ARRAY_LEN(phases), text);
        if (r >= 0)
            ws->phase = (enum workspace_phase)r;
        return r < 0 ? r : 0;
    case MODE:
        r = index_of(modes, ARRAY_LEN(modes), text);
        if (r >= 0)
            ws->mode = (enum workspace_mode)r;
        return r < 0 ? r : 0;
    case SECONDS:
        if (str_parse_u64(text, &seconds) < 0 || seconds > INT64_MAX)
            return -EBADMSG;
        ws->created_s = (int64_t)seconds;
        return 0;
    case COUNT:
        return str_parse_u64(text, (uint64_t *)(void *)field) < 0 ? -EBADMSG : 0;
    }
    return -EBADMSG;
}

static int read_line(struct workspace *ws, char *line, struct carrel_error *err)
{
    char *space = strchr(line, ' ');

    if (!space)
        return err_set(err, -EBADMSG, "a line of its record has no value");
    *space = '\0';
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (strcmp(keys[i].name, line) != 0)
            continue;
        int r = unescape(space + 1);
        if (r == 0)
            r = set(ws, &keys[i], space + 1);
        if (r < 0)
            return err_set_errno(err, r, "'%s' in its record", keys[i].name);
    }
    return 0;
}

/* What is a flag or may be empty has no line then: it must not keep an older value. */
static void forget(struct workspace *ws)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char *field = (char *)ws + keys[i].at;
        if (keys[i].kind == HEAP_TEXT) {
            free(*(char **)(void *)field);
            *(char **)(void *)field = NULL;
        } else {
            memset(field, 0, keys[i].size);
        }
    }
}

int meta_read(struct workspace *ws, const char *text, size_t len, struct carrel_error *err)
{
    AUTO(free) char *copy = malloc(len + 1);
    char *rest = copy;
    char *line;
    int r = 0;

    if (!copy)
        return err_set_errno(err, -ENOMEM, "read its record");
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (strlen(copy) != len)
        return err_set(err, -EBADMSG, "its record holds a zero byte");
    line = strsep(&rest, "\n");
    if (strcmp(line, FIRST) != 0)
        return err_set(err, -EBADMSG, "its record is empty or of another version");
    forget(ws);
    while (r == 0 && (line = strsep(&rest, "\n")) != NULL && strcmp(line, LAST) != 0)
        r = read_line(ws, line, err);
    if (r == 0 && (!line || !ws->task[0] || !ws->run[0] || !ws->repo))
        r = err_set(err, -EBADMSG, "its record is cut short");
    return r;
}
