/* run_record.c - one past run: what is known of it, its files, its result. */
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json_read.h"
#include "base/str.h"
#include "core/record/runs.h"
#include "core/state/run_dir.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define RESULT_MAX (SIZE_MAX / 4)

struct carrel_run_record {
    struct run_entry entry;
    struct carrel_run_info info; /* points into the entry */
    char directory[PATH_MAX];
};
DEFINE_AUTO(struct carrel_run_record *, carrel_runs_free)

void carrel_runs_free(struct carrel_run_record *run)
{
    if (!run)
        return;
    run_entry_finish(run->entry);
    free(run);
}

const struct carrel_run_info *carrel_runs_info(const struct carrel_run_record *run)
{
    return &run->info;
}

const char *carrel_runs_directory(const struct carrel_run_record *run)
{
    return run->directory;
}

/* "T/R" is T+R on disk. */
static bool is_meant(const char *key, const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (key[i] != (name[i] == '/' ? '+' : name[i]))
            return false;
    return true;
}

/* The only entry that `word` means: its whole key, or a prefix. */
static int choose(
        const struct run_list *list, const char *word, size_t *at, struct carrel_error *err)
{
    const size_t len = strlen(word);
    size_t found = 0;
    char shown[128];

    for (size_t i = 0; i < list->n; i++) {
        if (!is_meant(list->items[i].key, word, len))
            continue;
        bool is_whole = list->items[i].key[len] == '\0';
        found = is_whole ? 1 : found + 1;
        *at = i;
        if (is_whole)
            break;
    }
    (void)str_escape(word, len, shown, sizeof(shown));
    if (found == 0) {
        (void)err_set(err, -ENOENT, "no run '%s'; 'carrel runs' lists them", shown);
        return err_from(err, -ENOENT, CARREL_FROM_CALLER);
    }
    if (found > 1)
        return err_set(
                err, -EINVAL, "'%s' is a prefix of %zu runs; give more of it", shown, found);
    return 0;
}

int carrel_runs_find(const char *word, struct carrel_run_record **out, struct carrel_error *err)
{
    AUTO(run_list_finish) struct run_list list = { 0 };
    AUTO(carrel_runs_free) struct carrel_run_record *run = calloc(1, sizeof(*run));
    char state[PATH_MAX];
    size_t at = 0;

    err = ERR_OR_IGNORED(err);
    if (!run)
        return err_set_errno(err, -ENOMEM, "run");
    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = runs_list(&list, err);
    if (r == 0)
        r = choose(&list, word, &at, err);
    if (r < 0)
        return r;
    assert(at < list.n);
    run->entry = list.items[at];
    list.items[at].argv = NULL;
    runs_view(&run->entry, &run->info);
    int len = snprintf(
            run->directory, sizeof(run->directory), "%s/runs/%s", state, run->entry.key);
    if (len < 0 || (size_t)len >= sizeof(run->directory))
        return err_set_errno(err, -ENAMETOOLONG, "run '%s'", run->entry.key);
    *out = ptr_steal(&run);
    return 0;
}

struct newest {
    char name[NAME_MAX + 16];
};

static void offer_result(const char *name, uint64_t bytes, void *context)
{
    struct newest *newest = context;
    size_t len = strlen(name);

    (void)bytes;
    if (strncmp(name, "artifacts/", 10) == 0 && len > 12 &&
            strcmp(name + len - 12, "-result.json") == 0 && strcmp(name, newest->name) > 0)
        (void)snprintf(newest->name, sizeof(newest->name), "%s", name);
}

static int open_run(const char *key, struct carrel_error *err)
{
    AUTO(fd_close) int runs = -1;

    int r = run_dir_open_all(&runs, err);
    if (r < 0)
        return r;
    int dir = openat(runs, key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? err_set_errno(err, -errno, "run '%s'", key) : dir;
}

int carrel_runs_result(
        const struct carrel_run_record *run, char **out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(RESULT_MAX);
    struct newest newest = { 0 };
    struct json_value value = { 0 };

    err = ERR_OR_IGNORED(err);
    AUTO(fd_close) int dir = open_run(run->entry.key, err);
    if (dir < 0)
        return dir;
    run_dir_each(dir, offer_result, &newest);
    if (!newest.name[0])
        return 0;
    int r = fd_add_file(dir, newest.name, &text, err);
    if (r == 0 && text.len == 0)
        return 0; /* a sweep has removed it meanwhile */
    if (r == 0)
        r = json_read_check(text.data, text.len, &value, err);
    if (r < 0)
        return err_wrap(err, r, "'%s'", newest.name);
    text.len = (size_t)(value.text + value.len - text.data); /* without the newline */
    text.data[text.len] = '\0';
    r = buf_take(&text, out, err);
    return r < 0 ? r : 1;
}

/* A visit of the caller's, which may end the walk. */
struct file_visit {
    int (*visit)(const char *name, uint64_t bytes, void *context);
    void *context;
    int answer;
};

static void visit_file(const char *name, uint64_t bytes, void *context)
{
    struct file_visit *walk = context;

    if (walk->answer == 0)
        walk->answer = walk->visit(name, bytes, walk->context);
}

int carrel_runs_each_file(const struct carrel_run_record *run,
        int (*visit)(const char *name, uint64_t bytes, void *context), void *context,
        struct carrel_error *err)
{
    struct file_visit walk = { visit, context, 0 };

    AUTO(fd_close) int dir = open_run(run->entry.key, ERR_OR_IGNORED(err));
    if (dir < 0)
        return dir;
    run_dir_each(dir, visit_file, &walk);
    return walk.answer;
}
