/*
 * checkout.c - finding entries of the cache.
 *
 * It is on the way of every start, so it costs microseconds: a few opens, a shared lock and a
 * small file for each layer.
 */
#include "workspace/cache/checkout.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "base/str.h"
#include "git/name.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

void checkout_free(struct checkout *checkout)
{
    if (!checkout)
        return;
    free_list(checkout->lower);
    free_list(checkout->gitlinks);
    free_list(checkout->module_objects);
    for (size_t i = 0; i < checkout->n_held; i++)
        fd_close(checkout->held[i]);
    free(checkout->path);
    free(checkout->git);
    free(checkout->tree);
    free(checkout);
}

/* Empty, with room for the deepest stack. */
static struct checkout *checkout_new(void)
{
    AUTO(checkout_free) struct checkout *checkout = calloc(1, sizeof(*checkout));

    if (!checkout)
        return NULL;
    checkout->lower = calloc(CHECKOUT_MAX_DEPTH + 2, sizeof(checkout->lower[0]));
    checkout->gitlinks = calloc(1, sizeof(checkout->gitlinks[0]));
    checkout->module_objects = calloc(1, sizeof(checkout->module_objects[0]));
    if (!checkout->lower || !checkout->gitlinks || !checkout->module_objects)
        return NULL;
    return ptr_steal(&checkout);
}

/* Adds to a list that ends in NULL. */
static int append(char ***list, const char *text, size_t len)
{
    size_t n = 0;

    while ((*list)[n])
        n++;
    char **more = reallocarray(*list, n + 2, sizeof(**list));
    if (!more)
        return -ENOMEM;
    *list = more;
    more[n] = strndup(text, len);
    more[n + 1] = NULL;
    return more[n] ? 0 : -ENOMEM;
}

/* A file of the entry, one item after the other; what is before a tab is left out. No such
 * file: no items. */
static int read_list(int dir, const char *name, char end, char ***list)
{
    struct stat st;
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    AUTO(free) char *text = malloc((size_t)st.st_size + 1);
    ssize_t len = text ? fd_read_all(fd, text, (size_t)st.st_size) : -ENOMEM;
    if (len < 0)
        return (int)len;
    text[len] = '\0';

    for (const char *at = text; at < text + len;) {
        const char *stop = memchr(at, end, (size_t)(text + len - at));
        if (!stop)
            return -EBADMSG;
        const char *tab = end == '\n' ? memchr(at, '\t', (size_t)(stop - at)) : NULL;
        const char *item = tab ? tab + 1 : at;
        int r = append(list, item, (size_t)(stop - item));
        if (r < 0)
            return r;
        at = stop + 1;
    }
    return 0;
}

/* The entry itself, on top of the stack. */
static int take_top(struct checkout *checkout, const struct store *store, const char *name,
        const struct checkout_facts *facts)
{
    int dir = checkout->held[0];

    checkout->path = checkout_format("%s/%s", store->path, name);
    checkout->git = checkout_format("%s/%s/git", store->path, name);
    checkout->tree = strdup(facts->tree);
    checkout->has_filters = facts->has_filters;
    checkout->has_line_ends = facts->has_line_ends;
    checkout->has_gitlinks = facts->has_gitlinks;
    checkout->has_monitor = facts->has_monitor;
    (void)futimens(
            dir, NULL); /* its last use, for the sweep; as its owner this does not fail */
    if (!checkout->path || !checkout->git || !checkout->tree)
        return -ENOMEM;
    if (!checkout->has_gitlinks)
        return 0;
    int r = read_list(dir, "gitlinks", '\0', &checkout->gitlinks);
    return r < 0 ? r : read_list(dir, "modules", '\n', &checkout->module_objects);
}

/* The entry and all below it. -ENOENT when any of them is missing. */
static int hold_stack(struct checkout *checkout, const struct store *store,
        const struct repo *repo, const char *commit)
{
    struct checkout_facts facts = { 0 };

    for (size_t depth = 0; depth <= CHECKOUT_MAX_DEPTH; depth++) {
        AUTO(free) char *name = checkout_name(repo, depth == 0 ? commit : facts.below);
        int r = name ? checkout_hold(store, name, &facts) : -ENOMEM;
        if (r < 0)
            return r;
        checkout->held[checkout->n_held++] = r;
        checkout->n_below = depth;
        bool is_base = !facts.below[0];
        checkout->lower[depth] =
                checkout_format("%s/%s/%s", store->path, name, is_base ? "tree" : "layer");
        if (!checkout->lower[depth])
            return -ENOMEM;
        r = depth == 0 ? take_top(checkout, store, name, &facts) : 0;
        if (r < 0 || is_base)
            return r;
    }
    return -ENOENT; /* deeper than we make them: not ours */
}

int checkout_find(const char *state, const struct repo *repo, const char *commit,
        struct checkout **out, struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    AUTO(free) char *path = checkout_format("%s/checkouts", state);
    AUTO(checkout_free) struct checkout *checkout = checkout_new();
    if (!path || !checkout)
        return err_set_errno(err, -ENOMEM, "find a checkout");
    if (!name_is_oid(commit))
        return err_set(err, -EINVAL, "find a checkout: this is not the id of a commit");

    int r = store_open(path, &store, NULL);
    if (r == 0)
        r = hold_stack(checkout, &store, repo, commit);
    if (r == -ENOENT)
        return err_set(err, r, "commit %s is not in the cache", commit);
    if (r < 0)
        return err_set_errno(err, r, "find the checkout of %s", commit);
    *out = ptr_steal(&checkout);
    return 0;
}

#define FACTS_MAX 2048
#define LAST "end" /* a record without it was cut short */

struct key {
    char name[16];
    size_t at;   /* offset in struct checkout_facts */
    size_t size; /* of the text; 0: a number */
};
#define TEXT(label, member)                                                                    \
    {                                                                                          \
        label, offsetof(struct checkout_facts, member),                                        \
                sizeof(((struct checkout_facts *)NULL)->member)                                \
    }
#define NUMBER(label, member)                                                                  \
    {                                                                                          \
        label, offsetof(struct checkout_facts, member), 0                                      \
    }

static const struct key keys[] = {
    TEXT("tree", tree),
    TEXT("below", below),
    TEXT("conversion", conversion),
    TEXT("boot", boot),
    NUMBER("depth", depth),
    NUMBER("files", files),
    NUMBER("bytes", bytes),
    NUMBER("uid", uid),
    NUMBER("gid", gid),
    NUMBER("filters", has_filters),
    NUMBER("line-ends", has_line_ends),
    NUMBER("gitlinks", has_gitlinks),
    NUMBER("monitor", has_monitor),
};

static void set_fact(struct checkout_facts *facts, const char *name, const char *value)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char *at = (char *)facts + keys[i].at;
        if (strcmp(keys[i].name, name) != 0)
            continue;
        if (keys[i].size > 0)
            (void)snprintf(at, keys[i].size, "%s", value);
        else
            (void)str_parse_u64(value, (uint64_t *)(void *)at); /* ours: it is a number */
        return;
    }
}

int checkout_facts_read(int entry, struct checkout_facts *out)
{
    char text[FACTS_MAX];
    struct checkout_facts facts = { 0 };
    char *rest = text;
    char *line;
    ssize_t len = fd_read_file(entry, "facts", text, sizeof(text));
    if (len < 0)
        return (int)len;

    while ((line = strsep(&rest, "\n"))) {
        char *value = line;
        const char *name = strsep(&value, " ");
        if (!value && strcmp(name, LAST) == 0) {
            *out = facts;
            return facts.tree[0] ? 0 : -EBADMSG;
        }
        if (value)
            set_fact(&facts, name, value);
    }
    return -EBADMSG;
}

int checkout_facts_write(
        int entry, const struct checkout_facts *facts, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(FACTS_MAX - 1);

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *at = (const char *)facts + keys[i].at;
        uint64_t number;
        if (keys[i].size == 0) {
            memcpy(&number, at, sizeof(number));
            buf_addf(&text, "%s %" PRIu64 "\n", keys[i].name, number);
        } else if (at[0]) {
            buf_addf(&text, "%s %s\n", keys[i].name, at);
        }
    }
    buf_addf(&text, "%s\n", LAST);
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "record a checkout");

    AUTO(fd_close)
    int fd = openat(entry, "facts", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
    return r < 0 ? err_set_errno(err, r, "record a checkout") : 0;
}

bool checkout_is_whole(int entry, const struct checkout_facts *facts)
{
    char boot[KERNEL_BOOT_ID_MAX];

    if (faccessat(entry, "synced", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    return kernel_boot_id(boot, NULL) == 0 && strcmp(boot, facts->boot) == 0;
}

char *checkout_format(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    int len = vasprintf(&text, fmt, ap);
    va_end(ap);
    return len < 0 ? NULL : text;
}

char *checkout_group(const struct repo *repo)
{
    char hex[SHA256_HEX];
    struct sha256 sha;

    if (!repo->settings)
        return strdup(repo->key);
    sha256_init(&sha);
    for (size_t i = 0; repo->settings[i]; i++)
        sha256_add(&sha, repo->settings[i], strlen(repo->settings[i]) + 1);
    sha256_finish_hex(&sha, hex);
    return checkout_format("%s-%.16s", repo->key, hex);
}

char *checkout_name(const struct repo *repo, const char *commit)
{
    AUTO(free) char *group = checkout_group(repo);

    return group ? checkout_format("%s/%s", group, commit) : NULL;
}

int checkout_hold(const struct store *store, const char *name, struct checkout_facts *facts)
{
    AUTO(fd_close) int dir = store_hold(store, name);
    if (dir < 0)
        return dir;
    int r = checkout_facts_read(dir, facts);
    if (r == -EBADMSG || (r == 0 && !checkout_is_whole(dir, facts)))
        return -ENOENT;
    return r < 0 ? r : fd_steal(&dir);
}
