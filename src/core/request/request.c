/* request.c - tables of members, read and written by the same rows. */
#include "core/request/request.h"
#include "base/err.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/str.h"
#include "base/utf8.h"
#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    KIND_FLAG,
    KIND_U16,
    KIND_U32,
    KIND_U64,
    KIND_WORD, /* an enum, by its words */
    KIND_TEXT,
    KIND_LIST,   /* of texts, NULL-terminated */
    KIND_MOUNTS, /* of the run */
    KIND_WORKSPACE,
};

struct member {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *const *words; /* NULL-terminated, in the order of the enum */
};

#define ROW(type, kind, member)                                                                \
    {                                                                                          \
#member, kind, offsetof(struct type, member), NULL                                     \
    }
#define WORDS(type, member, ...)                                                               \
    {                                                                                          \
#member, KIND_WORD, offsetof(struct type, member), (const char *const[])               \
        {                                                                                      \
            __VA_ARGS__, NULL                                                                  \
        }                                                                                      \
    }
#define RUN(kind, member) ROW(carrel_run_options, kind, member)
#define WORKSPACE(kind, member) ROW(carrel_workspace_options, kind, member)
#define SANDBOX(kind, member) ROW(carrel_sandbox_options, kind, member)
#define LAYERS(kind, member) ROW(request_layers, kind, member)
#define ACTIONS "default", "keep", "commit", "apply", "discard"

static const struct member run_members[] = {
    RUN(KIND_LIST, argv),
    RUN(KIND_LIST, env),
    RUN(KIND_TEXT, cwd),
    RUN(KIND_TEXT, policy),
    RUN(KIND_TEXT, profile),
    RUN(KIND_TEXT, runtime),
    RUN(KIND_TEXT, root),
    RUN(KIND_TEXT, image),
    RUN(KIND_FLAG, has_no_entrypoint),
    RUN(KIND_MOUNTS, mounts),
    RUN(KIND_FLAG, is_git_writable),
    RUN(KIND_WORKSPACE, workspace),
    WORDS(carrel_run_options, network, "default", "none", "host"),
    RUN(KIND_TEXT, hostname),
    WORDS(carrel_run_options, ids, "default", "own", "sub"),
    RUN(KIND_FLAG, has_user),
    RUN(KIND_U32, uid),
    RUN(KIND_U32, gid),
    RUN(KIND_U64, timeout_ms),
    RUN(KIND_U64, memory_bytes),
    RUN(KIND_U64, disk_bytes),
    RUN(KIND_U64, pids),
    RUN(KIND_U64, cpu_milli),
    RUN(KIND_U64, files),
    RUN(KIND_U64, io_read_bytes),
    RUN(KIND_U64, io_write_bytes),
    RUN(KIND_TEXT, require),
    RUN(KIND_TEXT, best_effort),
    WORDS(carrel_run_options, journal, "default", "on", "off"),
    WORDS(carrel_run_options, store_code, "default", "never", "on_error", "always"),
    RUN(KIND_U64, output_bytes),
    RUN(KIND_FLAG, has_tty),
    RUN(KIND_U16, rows),
    RUN(KIND_U16, cols),
};

static const struct member workspace_members[] = {
    WORKSPACE(KIND_TEXT, repo),
    WORKSPACE(KIND_TEXT, base),
    WORKSPACE(KIND_TEXT, task),
    WORKSPACE(KIND_TEXT, run),
    WORKSPACE(KIND_TEXT, resume),
    WORKSPACE(KIND_TEXT, fork),
    WORKSPACE(KIND_FLAG, is_folder),
    WORKSPACE(KIND_FLAG, is_dirty),
    WORKSPACE(KIND_LIST, include),
    WORDS(carrel_workspace_options, history, "default", "full", "cut"),
    WORKSPACE(KIND_TEXT, setup),
    WORKSPACE(KIND_LIST, setup_keys),
    WORDS(carrel_workspace_options, tree, "auto", "overlay", "copy"),
    WORDS(carrel_workspace_options, on_success, ACTIONS),
    WORDS(carrel_workspace_options, on_failure, ACTIONS),
    WORKSPACE(KIND_TEXT, program),
};

static const struct member sandbox_members[] = {
    SANDBOX(KIND_TEXT, name),
    SANDBOX(KIND_LIST, labels),
    SANDBOX(KIND_TEXT, from),
    SANDBOX(KIND_U64, lease_ms),
    SANDBOX(KIND_U64, idle_ms),
};

static const struct member layer_members[] = {
    LAYERS(KIND_TEXT, files),
    LAYERS(KIND_TEXT, workspace),
    LAYERS(KIND_TEXT, workspace_files),
    LAYERS(KIND_LIST, mounts),
    LAYERS(KIND_LIST, locks),
};

_Static_assert(sizeof(enum carrel_network) == sizeof(int), "enums are read and written as int");

/* --- writing --- */

struct writer {
    struct json json;
    bool is_short; /* out of memory */
};

static void write_text(struct writer *w, const char *name, const char *text)
{
    const size_t len = strlen(text);

    if (utf8_is_text(text, len)) {
        json_bytes(&w->json, name, text, len);
        return;
    }
    const size_t size = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);
    AUTO(free) char *coded = malloc(size);
    if (!coded) {
        w->is_short = true;
        return;
    }
    (void)sodium_bin2base64(
            coded, size, (const unsigned char *)text, len, sodium_base64_VARIANT_ORIGINAL);
    json_object(&w->json, name);
    json_str(&w->json, "base64", coded);
    json_end_object(&w->json);
}

static void write_list(struct writer *w, const char *name, const char *const *list)
{
    json_array(&w->json, name);
    for (; *list; list++)
        write_text(w, NULL, *list);
    json_end_array(&w->json);
}

static void write_mounts(struct writer *w, const char *name, const struct carrel_run_options *o)
{
    json_array(&w->json, name);
    for (size_t i = 0; i < o->n_mounts; i++) {
        json_object(&w->json, NULL);
        write_text(w, "source", o->mounts[i].source);
        write_text(w, "target", o->mounts[i].target);
        if (o->mounts[i].is_writable)
            json_bool(&w->json, "is_writable", true);
        json_end_object(&w->json);
    }
    json_end_array(&w->json);
}

static void write_members(
        struct writer *w, const struct member *members, size_t n, const void *base);

static void write_member(struct writer *w, const struct member *m, const void *base)
{
    const char *at = (const char *)base + m->offset;
    const char *text = NULL;
    const char *const *list = NULL;
    uint64_t number = 0;
    uint16_t small;
    uint32_t middle;
    int word;

    switch (m->kind) {
    case KIND_FLAG:
        if (*(const bool *)at)
            json_bool(&w->json, m->name, true);
        break;
    case KIND_U16:
        memcpy(&small, at, sizeof(small));
        number = small;
        break;
    case KIND_U32:
        memcpy(&middle, at, sizeof(middle));
        number = middle;
        break;
    case KIND_U64:
        memcpy(&number, at, sizeof(number));
        break;
    case KIND_WORD:
        memcpy(&word, at, sizeof(word));
        if (word != 0)
            json_str(&w->json, m->name, m->words[word]);
        break;
    case KIND_TEXT:
        memcpy(&text, at, sizeof(text));
        if (text)
            write_text(w, m->name, text);
        break;
    case KIND_LIST:
        memcpy(&list, at, sizeof(list));
        if (list)
            write_list(w, m->name, list);
        break;
    case KIND_MOUNTS:
        if (((const struct carrel_run_options *)base)->n_mounts > 0)
            write_mounts(w, m->name, base);
        break;
    case KIND_WORKSPACE:
        memcpy(&text, at, sizeof(text)); /* any pointer */
        if (!text)
            break;
        json_object(&w->json, m->name);
        write_members(w, workspace_members, ARRAY_LEN(workspace_members),
                ((const struct carrel_run_options *)base)->workspace);
        json_end_object(&w->json);
        break;
    }
    if (number != 0)
        json_u64(&w->json, m->name, number);
}

static void write_members(
        struct writer *w, const struct member *members, size_t n, const void *base)
{
    for (size_t i = 0; i < n; i++)
        write_member(w, &members[i], base);
}

static void write_part(struct writer *w, const char *name, const struct member *members,
        size_t n, const void *base)
{
    if (!base)
        return;
    json_object(&w->json, name);
    write_members(w, members, n, base);
    json_end_object(&w->json);
}

int request_write(const struct carrel_run_options *run,
        const struct carrel_sandbox_options *sandbox, const struct request_layers *layers,
        struct buf *out, struct carrel_error *err)
{
    struct writer w = { .json = { .out = out } };

    json_object(&w.json, NULL);
    json_u64(&w.json, "version", REQUEST_VERSION);
    write_part(&w, "run", run_members, ARRAY_LEN(run_members), run);
    write_part(&w, "sandbox", sandbox_members, ARRAY_LEN(sandbox_members), sandbox);
    write_part(&w, "layers", layer_members, ARRAY_LEN(layer_members), layers);
    json_end_object(&w.json);
    if (w.is_short)
        return err_set_errno(err, -ENOMEM, "request");
    if (out->is_short || out->len > REQUEST_MAX)
        return err_set(err, -E2BIG, "the request has more than %u MB", REQUEST_MAX >> 20);
    return 0;
}

/* --- reading --- */

struct reader {
    struct request *request;
    const char *part; /* for messages */
    struct carrel_error *err;
};

static int wrong(const struct reader *r, const char *name, const char *expected)
{
    return err_set(r->err, -EINVAL, "request: %s.%s: expected %s", r->part, name, expected);
}

static int decode(const struct reader *r, struct json_value value, struct buf *out)
{
    AUTO(buf_finish) struct buf coded = BUF_INIT(REQUEST_MAX);
    struct json_value inner = json_read_member(value, "base64");

    if (json_read_kind(value) == JSON_STRING)
        return json_read_string(value, out);
    if (json_read_string(inner, &coded) < 0)
        return -EINVAL;
    const size_t room = coded.len / 4 * 3 + 3;
    unsigned char *bytes = arena_alloc(&r->request->arena, room);
    size_t len;
    if (!bytes || coded.is_short)
        return -ENOMEM;
    if (sodium_base642bin(bytes, room, coded.data ? coded.data : "", coded.len, NULL, &len,
                NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
        return -EINVAL;
    buf_add(out, bytes, len);
    return 0;
}

static int read_text(
        const struct reader *r, const char *name, struct json_value value, const char **out)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(REQUEST_MAX);

    int code = decode(r, value, &text);
    if (code == -EINVAL || (text.data && memchr(text.data, '\0', text.len)))
        return wrong(r, name, "a text without NUL bytes");
    *out = code < 0 || text.is_short
                   ? NULL
                   : arena_copy(&r->request->arena, text.data ? text.data : "", text.len);
    return *out ? 0 : err_set_errno(r->err, -ENOMEM, "request");
}

/* Room for the elements of an array, and for one more; zeroed. NULL with an error. */
static void *alloc_elements(const struct reader *r, const char *name, struct json_value value,
        size_t element, size_t *n)
{
    struct json_value one;

    *n = 0;
    if (json_read_kind(value) != JSON_ARRAY) {
        (void)wrong(r, name, "a list");
        return NULL;
    }
    for (size_t at = 0; json_read_next(value, &at, NULL, &one);)
        ++*n;
    void *list = arena_alloc(&r->request->arena, (*n + 1) * element);
    if (!list)
        (void)err_set_errno(r->err, -ENOMEM, "request");
    return list;
}

static int read_list(const struct reader *r, const char *name, struct json_value value,
        const char *const **out)
{
    struct json_value one;
    size_t n;
    size_t i = 0;
    int code = 0;

    const char **list = alloc_elements(r, name, value, sizeof(*list), &n);
    if (!list)
        return r->err->code;
    for (size_t at = 0; code == 0 && json_read_next(value, &at, NULL, &one);)
        code = read_text(r, name, one, &list[i++]);
    *out = list;
    return code;
}

static int read_mount(
        const struct reader *r, struct json_value value, struct carrel_mount *mount)
{
    struct json_value key;
    struct json_value member;
    int code = 0;

    if (json_read_kind(value) != JSON_OBJECT)
        return wrong(r, "mounts", "objects with source and target");
    for (size_t at = 0; code == 0 && json_read_next(value, &at, &key, &member);) {
        if (json_read_equals(key, "source"))
            code = read_text(r, "mounts", member, &mount->source);
        else if (json_read_equals(key, "target"))
            code = read_text(r, "mounts", member, &mount->target);
        else if (!json_read_equals(key, "is_writable") ||
                 json_read_bool(member, &mount->is_writable) < 0)
            code = wrong(r, "mounts", "source, target and is_writable");
    }
    if (code == 0 && (!mount->source || !mount->target))
        code = wrong(r, "mounts", "source and target");
    return code;
}

static int read_mounts(const struct reader *r, const char *name, struct json_value value,
        struct carrel_run_options *o)
{
    struct json_value one;
    size_t n;
    size_t i = 0;
    int code = 0;

    struct carrel_mount *mounts = alloc_elements(r, name, value, sizeof(*mounts), &n);
    if (!mounts)
        return r->err->code;
    for (size_t at = 0; code == 0 && json_read_next(value, &at, NULL, &one);)
        code = read_mount(r, one, &mounts[i++]);
    o->mounts = mounts;
    o->n_mounts = n;
    return code;
}

static int read_word(
        const struct reader *r, const struct member *m, struct json_value value, int *out)
{
    AUTO(buf_finish) struct buf expected = BUF_INIT(256);

    for (*out = 0; m->words[*out]; ++*out) {
        if (json_read_equals(value, m->words[*out]))
            return 0;
        buf_addf(&expected, "%s%s", *out ? ", " : "one of ", m->words[*out]);
    }
    return wrong(r, m->name, expected.data ? expected.data : "a word");
}

static int read_number(const struct reader *r, const struct member *m, struct json_value value,
        uint64_t most, uint64_t *out)
{
    if (json_read_u64(value, out) < 0 || *out > most)
        return wrong(r, m->name, "a whole number in its range");
    return 0;
}

static int read_members(const struct reader *r, const struct member *members, size_t n,
        struct json_value object, void *base);

static int read_workspace(
        const struct reader *r, struct json_value value, struct carrel_run_options *o)
{
    const struct reader inner = { r->request, "workspace", r->err };

    o->workspace = &r->request->workspace;
    return read_members(&inner, workspace_members, ARRAY_LEN(workspace_members), value,
            &r->request->workspace);
}

static int read_member(
        const struct reader *r, const struct member *m, struct json_value value, void *base)
{
    char *at = (char *)base + m->offset;
    const char *text = NULL;
    const char *const *list = NULL;
    uint64_t number = 0;
    int word = 0;
    int code = 0;

    switch (m->kind) {
    case KIND_FLAG:
        return json_read_bool(value, (bool *)at) < 0 ? wrong(r, m->name, "true or false") : 0;
    case KIND_U16:
        code = read_number(r, m, value, UINT16_MAX, &number);
        memcpy(at, &(uint16_t){ (uint16_t)number }, sizeof(uint16_t));
        break;
    case KIND_U32:
        code = read_number(r, m, value, UINT32_MAX, &number);
        memcpy(at, &(uint32_t){ (uint32_t)number }, sizeof(uint32_t));
        break;
    case KIND_U64:
        code = read_number(r, m, value, UINT64_MAX, &number);
        memcpy(at, &number, sizeof(number));
        break;
    case KIND_WORD:
        code = read_word(r, m, value, &word);
        if (code == 0)
            memcpy(at, &word, sizeof(word));
        break;
    case KIND_TEXT:
        code = read_text(r, m->name, value, &text);
        memcpy(at, &text, sizeof(text));
        break;
    case KIND_LIST:
        code = read_list(r, m->name, value, &list);
        memcpy(at, &list, sizeof(list));
        break;
    case KIND_MOUNTS:
        return read_mounts(r, m->name, value, base);
    case KIND_WORKSPACE:
        return read_workspace(r, value, base);
    }
    return code;
}

static int read_members(const struct reader *r, const struct member *members, size_t n,
        struct json_value object, void *base)
{
    struct json_value key;
    struct json_value value;
    bool is_seen[ARRAY_LEN(run_members)] = { 0 };
    int code = 0;

    assert(n <= ARRAY_LEN(is_seen));
    if (json_read_kind(object) != JSON_OBJECT)
        return err_set(r->err, -EINVAL, "request: %s: expected an object", r->part);
    for (size_t at = 0; code == 0 && json_read_next(object, &at, &key, &value);) {
        size_t i = 0;
        while (i < n && !json_read_equals(key, members[i].name))
            i++;
        if (i == n || is_seen[i])
            return err_set(r->err, -EINVAL, "request: %s has %s member %.*s", r->part,
                    i == n ? "an unknown" : "a second", key.len < 64 ? (int)key.len : 64,
                    key.text);
        is_seen[i] = true;
        code = read_member(r, &members[i], value, base);
    }
    return code;
}

static int read_part(struct request *request, struct json_value key, struct json_value value,
        struct carrel_error *err)
{
    const struct {
        const char *name;
        const struct member *members;
        size_t n;
        void *base;
    } parts[] = {
        { "run", run_members, ARRAY_LEN(run_members), &request->run },
        { "sandbox", sandbox_members, ARRAY_LEN(sandbox_members), &request->sandbox },
        { "layers", layer_members, ARRAY_LEN(layer_members), &request->layers },
    };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const struct reader r = { request, parts[i].name, err };
        if (json_read_equals(key, parts[i].name))
            return read_members(&r, parts[i].members, parts[i].n, value, parts[i].base);
    }
    if (json_read_equals(key, "version"))
        return 0;
    return err_set(err, -EINVAL, "request: expected version, run, sandbox and layers");
}

static int read_all(struct request *request, struct json_value top, struct carrel_error *err)
{
    struct json_value key;
    struct json_value value;
    uint64_t version;
    int code = 0;

    if (json_read_u64(json_read_member(top, "version"), &version) < 0)
        return err_set(err, -EINVAL, "request: expected an object with a version");
    if (version != REQUEST_VERSION)
        return err_set(err, -EPROTO, "request: version %ju; this carrel has version %d",
                (uintmax_t)version, REQUEST_VERSION);
    for (size_t at = 0; code == 0 && json_read_next(top, &at, &key, &value);)
        code = read_part(request, key, value, err);
    return code;
}

void request_free(struct request *request)
{
    if (!request)
        return;
    arena_finish(request->arena);
    free(request);
}

int request_parse(const char *text, size_t len, struct request **out, struct carrel_error *err)
{
    struct json_value top;

    if (len > REQUEST_MAX)
        return err_set(err, -E2BIG, "the request has more than %u MB", REQUEST_MAX >> 20);
    int code = json_read_check(text, len, &top, err);
    if (code < 0)
        return err_wrap(err, code, "request");
    AUTO(request_free) struct request *request = calloc(1, sizeof(*request));
    if (!request)
        return err_set_errno(err, -ENOMEM, "request");
    request->run = (struct carrel_run_options)CARREL_RUN_OPTIONS_INIT;
    request->workspace = (struct carrel_workspace_options)CARREL_WORKSPACE_OPTIONS_INIT;
    request->sandbox = (struct carrel_sandbox_options)CARREL_SANDBOX_OPTIONS_INIT;
    request->sandbox.run = &request->run;
    code = read_all(request, top, err);
    if (code < 0)
        return code;
    *out = ptr_steal(&request);
    return 0;
}
