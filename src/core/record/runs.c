/* runs.c - finds runs and reads their outcome. */
#include "core/record/runs.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json_read.h"
#include "base/str.h"
#include "core/state/run_dir.h"
#include "journal/file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TAIL_BYTES (64U << 10) /* holds the last records of a journal */

void run_entry_finish(struct run_entry entry)
{
    free(entry.argv);
}

void run_list_finish(struct run_list list)
{
    for (size_t i = 0; i < list.n; i++)
        run_entry_finish(list.items[i]);
    free(list.items);
}

static void take_text(struct json_value value, char *out, size_t size)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(size);

    if (json_read_string(value, &text) == 0 && !text.is_short && text.data)
        (void)snprintf(out, size, "%s", text.data);
}

static void take_began(struct json_value record, struct run_entry *entry)
{
    struct tm tm = { 0 };
    struct json_value argv = json_read_member(record, "argv");

    take_text(json_read_member(record, "time"), entry->began, sizeof(entry->began));
    if (strptime(entry->began, "%Y-%m-%dT%H:%M:%S", &tm))
        entry->began_s = (uint64_t)timegm(&tm);
    take_text(json_read_member(record, "task"), entry->task, sizeof(entry->task));
    if (argv.text && !entry->argv)
        entry->argv = strndup(argv.text, argv.len);
}

static void take_end(struct json_value record, struct run_entry *entry)
{
    uint64_t status;

    take_text(json_read_member(record, "reason"), entry->reason, sizeof(entry->reason));
    entry->has_status = json_read_u64(json_read_member(record, "status"), &status) == 0;
    if (entry->has_status)
        entry->status = (int64_t)status;
}

/* Takes what a record tells about the run as a whole. */
static void take_record(const char *line, size_t len, struct run_entry *entry)
{
    struct json_value record;
    char event[32] = "";

    if (json_read_check(line, len, &record, NULL) < 0)
        return; /* `carrel journal verify` reports what is wrong */
    take_text(json_read_member(record, "event"), event, sizeof(event));
    entry->state = strcmp(event, "sealed") == 0 ? CARREL_RECORD_SEALED : CARREL_RECORD_UNSEALED;
    if (strcmp(event, "run_started") == 0 || strcmp(event, "run_resumed") == 0)
        take_began(record, entry);
    else if (strcmp(event, "process_ended") == 0)
        entry->has_duration = json_read_u64(json_read_member(record, "duration_ms"),
                                      &entry->duration_ms) == 0;
    else if (strcmp(event, "run_ended") == 0)
        take_end(record, entry);
}

static void take_lines(const char *text, size_t len, struct run_entry *entry)
{
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        if (!end)
            return;
        take_record(text, (size_t)(end - text), entry);
        len -= (size_t)(end + 1 - text);
        text = end + 1;
    }
}

/* The first record and the last ones: a journal may be long. */
static int take_journal(int fd, struct run_entry *entry, struct carrel_error *err)
{
    struct stat st;
    AUTO(free) char *text = malloc(2U * TAIL_BYTES);

    if (!text)
        return err_set_errno(err, -ENOMEM, "journal");
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "journal");
    if (!S_ISREG(st.st_mode))
        return 0; /* `carrel journal verify` reports what is wrong */
    ssize_t head = pread(fd, text, 2U * TAIL_BYTES, 0);
    if (head < 0)
        return err_set_errno(err, -errno, "journal");
    take_lines(text, (size_t)head, entry);
    if (st.st_size > head) {
        ssize_t tail = pread(fd, text, TAIL_BYTES, st.st_size - (off_t)TAIL_BYTES);
        char *first = tail > 0 ? memchr(text, '\n', (size_t)tail) : NULL;
        if (first)
            take_lines(first + 1, (size_t)(text + tail - first - 1), entry);
    }
    if (journal_lock_is_held(fd))
        entry->state = CARREL_RECORD_IN_PROGRESS;
    return 0;
}

/* 0, or 1 if there is no such run. */
static int read_run(
        int runs, const char *key, struct run_entry *entry, struct carrel_error *err)
{
    struct stat st;

    *entry = (struct run_entry){ .state = CARREL_RECORD_NONE };
    AUTO(fd_close) int dir = openat(runs, key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return 1;
    (void)snprintf(entry->key, sizeof(entry->key), "%s", key);
    entry->began_s = (uint64_t)st.st_mtim.tv_sec;
    entry->bytes = run_dir_bytes(dir);
    AUTO(fd_close)
    int fd = openat(dir, "journal.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? 0 : take_journal(fd, entry, err);
}

static int newest_first(const void *a, const void *b)
{
    const struct run_entry *x = a;
    const struct run_entry *y = b;
    int order = strcmp(y->began, x->began);

    if (order != 0 && x->began[0] && y->began[0])
        return order;
    return x->began_s < y->began_s ? 1 : x->began_s > y->began_s ? -1 : 0;
}

int runs_list(struct run_list *out, struct carrel_error *err)
{
    AUTO(run_list_finish) struct run_list list = { 0 };
    AUTO(fd_close) int runs = -1;

    int r = run_dir_open_all(&runs, err);
    if (r < 0 || runs < 0) {
        *out = (struct run_list){ 0 };
        return r;
    }
    AUTO(dir_close) DIR *dir = dir_open(runs, ".");
    if (!dir)
        return err_set_errno(err, -errno, "list the runs");
    for (const char *name; (name = dir_next(dir));) {
        if (name[0] == '.' || strlen(name) >= STATE_KEY_MAX)
            continue;
        struct run_entry *items = reallocarray(list.items, list.n + 1, sizeof(*items));
        if (!items)
            return err_set_errno(err, -ENOMEM, "list of runs");
        list.items = items;
        r = read_run(runs, name, &items[list.n], err);
        if (r < 0)
            return r;
        list.n += r == 0;
    }
    if (list.n > 1)
        qsort(list.items, list.n, sizeof(*list.items), newest_first);
    *out = list;
    list = (struct run_list){ 0 };
    return 0;
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

void runs_view(const struct run_entry *entry, struct carrel_run_info *out)
{
    *out = (struct carrel_run_info){
        .size = sizeof(*out),
        .key = entry->key,
        .task = or_null(entry->task),
        .state = entry->state,
        .began = or_null(entry->began),
        .began_s = (int64_t)entry->began_s,
        .reason = or_null(entry->reason),
        .has_status = entry->has_status,
        .status = entry->status,
        .has_duration = entry->has_duration,
        .duration_ms = entry->duration_ms,
        .bytes = entry->bytes,
        .argv = entry->argv,
    };
}

int carrel_runs_each(int (*visit)(const struct carrel_run_info *info, void *context),
        void *context, struct carrel_error *err)
{
    AUTO(run_list_finish) struct run_list list = { 0 };

    int r = runs_list(&list, ERR_OR_IGNORED(err));
    for (size_t i = 0; r == 0 && i < list.n; i++) {
        struct carrel_run_info info;
        runs_view(&list.items[i], &info);
        r = visit(&info, context);
    }
    return r;
}
