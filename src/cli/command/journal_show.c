/* journal_show.c - carrel journal list, show. */
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/command/journal.h"
#include "cli/print/report.h"
#include "journal/file.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#define JSON_MAX (SIZE_MAX / 4)
#define VALUE_SHOWN 160 /* bytes of one value in the table; --json shows all */

/* ---- list ---- */

enum column { COL_RUN, COL_TASK, COL_BEGAN, COL_STATE, COL_REASON, COL_RECORDS, COLUMNS };

static void print_row(const char *const cells[COLUMNS], const int widths[COLUMNS])
{
    for (size_t i = 0; i < COLUMNS; i++)
        printf("%s%-*s", i ? "  " : "", i < COLUMNS - 1 ? widths[i] : 0, cells[i]);
    (void)putchar('\n');
}

/* "2026-01-31 23:59:59" of a record's time, which is UTC. */
static void seconds(const char *time, char out[static JOURNAL_TIME_MAX])
{
    (void)snprintf(out, JOURNAL_TIME_MAX, "%.10s %.8s", time, time + 11);
}

static void fill_widths(const struct journal_runs *runs, int widths[COLUMNS])
{
    for (size_t i = 0; i < runs->n; i++) {
        int run = (int)strlen(runs->items[i].run);
        int task = (int)strlen(runs->items[i].task);
        int reason = (int)strlen(runs->items[i].reason);
        widths[COL_RUN] = run > widths[COL_RUN] ? run : widths[COL_RUN];
        widths[COL_TASK] = task > widths[COL_TASK] ? task : widths[COL_TASK];
        widths[COL_REASON] = reason > widths[COL_REASON] ? reason : widths[COL_REASON];
    }
}

static void print_list(const struct journals *journals)
{
    static const char *const titles[COLUMNS] = { "RUN", "TASK", "BEGAN (UTC)", "STATE",
        "REASON", "RECORDS" };
    int widths[COLUMNS] = { 3, 4, 19, 11, 6, 7 };

    fill_widths(journals->runs, widths);
    print_row(titles, widths);
    for (size_t i = 0; i < journals->runs->n; i++) {
        const struct journal_run *run = &journals->runs->items[i];
        char began[JOURNAL_TIME_MAX] = "-";
        char records[24] = "-";
        if (run->began[0])
            seconds(run->began, began);
        if (run->seal[0])
            (void)snprintf(records, sizeof(records), "%" PRIu64, run->records);
        const char *const cells[COLUMNS] = { run->run, run->task[0] ? run->task : "-", began,
            journal_state_name(journal_run_state(journals->dir, run)),
            run->reason[0] ? run->reason : "-", records };
        print_row(cells, widths);
    }
}

static void write_text(struct json *json, const char *key, const char *text)
{
    json_str(json, key, text[0] ? text : NULL);
}

static int print_list_json(const struct journals *journals, int status)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_bool(&json, "ok", status == 0);
    json_array(&json, "runs");
    for (size_t i = 0; i < journals->runs->n; i++) {
        const struct journal_run *run = &journals->runs->items[i];
        json_object(&json, NULL);
        json_str(&json, "run", run->run);
        write_text(&json, "task", run->task);
        write_text(&json, "began", run->began);
        write_text(&json, "sealed", run->sealed);
        json_str(&json, "state", journal_state_name(journal_run_state(journals->dir, run)));
        write_text(&json, "reason", run->reason);
        json_u64(&json, "records", run->records);
        write_text(&json, "seal", run->seal);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    return report_print_json(&text, status);
}

int journal_verb_list(const struct subcommand_args *args)
{
    AUTO(journals_close) struct journals *journals = NULL;
    struct carrel_error err = { 0 };
    int status = 0;

    if (journals_open(&journals, &err) < 0)
        return report_fail(args->is_json, &err);
    const struct journal_verdict *index = &journals->runs->index;
    if (index->state == JOURNAL_BAD) {
        (void)err_set(&err, -EBADMSG,
                "record %" PRIu64 " of the index is bad: %s; only what is before it is listed",
                index->bad_record, index->why);
        status = report_error(STATUS_BAD, &err);
    }
    if (args->is_json)
        return print_list_json(journals, status);
    if (journals->runs->n > 0)
        print_list(journals);
    else if (status == 0)
        (void)fputs("no runs yet\n", stderr);
    return report_finish(status);
}

/* ---- show ---- */

/* Members of every record: they have their own columns, or are not shown. */
static bool is_common(struct json_value key)
{
    static const char *const keys[] = { "seq", "time", "run", "event", "head", "signature",
        "prev", "hash" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_read_equals(key, keys[i]))
            return true;
    return false;
}

/* A value as JSON has it: on one line, and without an effect on a terminal. */
static void print_value(struct json_value value)
{
    size_t n = value.len;

    if (n > VALUE_SHOWN)
        for (n = VALUE_SHOWN; n > 0 && ((unsigned char)value.text[n] & 0xc0) == 0x80;)
            n--;
    printf("%.*s%s", (int)n, value.text, n < value.len ? "…" : "");
}

static void print_record(const struct journal_line *line)
{
    struct json_value key;
    struct json_value value;

    printf("%6" PRIu64 "  %.15s  %-20.*s", line->seq, line->time.text + 11,
            (int)line->event.len, line->event.text);
    for (size_t at = 0; json_read_next(line->whole, &at, &key, &value);) {
        if (is_common(key))
            continue;
        printf("  %.*s=", (int)key.len - 2, key.text + 1);
        print_value(value);
    }
    (void)putchar('\n');
}

/* Waits until the file may have grown or its writer may have exited. inotify reports a close
 * before the lock is released, so there is another look a moment later. */
static int wait_for_more(int watch, struct carrel_error *err)
{
    struct pollfd poll_fd = { .fd = watch, .events = POLLIN };
    char events[4096];

    if (fflush(stdout) != 0)
        return err_set_errno(err, -errno, "write the report");
    if (poll(&poll_fd, 1, 500) < 0 && errno != EINTR)
        return err_set_errno(err, -errno, "poll");
    if (poll_fd.revents & POLLIN)
        (void)!read(watch, events, sizeof(events)); /* only that there were events matters */
    return 0;
}

static int watch_file(int fd, struct carrel_error *err)
{
    char path[64];

    AUTO(fd_close) int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch < 0)
        return err_set_errno(err, -errno, "inotify");
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (inotify_add_watch(watch, path, IN_MODIFY | IN_CLOSE_WRITE) < 0)
        return err_set_errno(err, -errno, "watch the journal");
    return fd_steal(&watch);
}

struct show {
    const struct subcommand_args *args;
    bool is_first;
};

static void show_record(struct show *show, const struct journal_line *line)
{
    if (!show->args->is_json) {
        print_record(line);
        return;
    }
    if (!journal_args_of(show->args)->is_followed)
        (void)fputs(show->is_first ? "\n" : ",\n", stdout);
    show->is_first = false;
    (void)fwrite(line->whole.text, 1, line->whole.len, stdout); /* report_finish() looks */
    if (journal_args_of(show->args)->is_followed)
        (void)putchar('\n');
}

/* All records. With --follow until the run is over. */
static int show_records(
        struct show *show, struct journal_reader *reader, int watch, struct carrel_error *err)
{
    struct journal_verdict verdict;
    struct journal_line line;

    for (;;) {
        /* Before the last look: what comes after it would be missed. */
        reader->was_in_progress = journal_lock_is_held(reader->fd);
        int r;
        while ((r = journal_reader_next(reader, &line, err)) > 0)
            show_record(show, &line);
        if (r < 0)
            return r;
        journal_reader_judge(reader, &verdict);
        if (watch < 0 || verdict.state == JOURNAL_BAD || !reader->was_in_progress)
            return 0;
        r = wait_for_more(watch, err);
        if (r < 0)
            return r;
    }
}

static int show_end(const struct subcommand_args *args, const struct journal_verdict *verdict)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 10);
    struct json json = { .out = &text, .needs_comma = true };
    int status = verdict->state == JOURNAL_BAD ? STATUS_BAD : 0;

    if (!args->is_json) {
        journal_put_verdict(&text, verdict);
        (void)puts(text.data);
    } else if (!journal_args_of(args)->is_followed) {
        (void)fputs("\n]", stdout);
        journal_write_verdict(&json, verdict);
        json_bool(&json, "ok", status == 0);
        json_end_object(&json);
        (void)puts(text.data);
    }
    return report_finish(status);
}

int journal_verb_show(const struct subcommand_args *args)
{
    AUTO(journal_asked_finish) struct journal_asked asked = { .ref.fd = -1 };
    struct show show = { .args = args, .is_first = true };
    struct journal_verdict verdict;
    struct carrel_error err = { 0 };

    if (journal_ask(args, &asked, &err) < 0)
        return report_fail(args->is_json, &err);
    AUTO(fd_close)
    int watch = journal_args_of(args)->is_followed ? watch_file(asked.ref.fd, &err) : -1;
    if (journal_args_of(args)->is_followed && watch < 0)
        return report_fail(args->is_json, &err);
    AUTO(journal_reader_finish)
    struct journal_reader reader = journal_reader_of(asked.ref.fd, &asked.known);
    if (args->is_json && !journal_args_of(args)->is_followed)
        printf("{\"run\":\"%s\",\"journal\":[", asked.ref.run);
    if (show_records(&show, &reader, watch, &err) < 0 ||
            journal_asked_judge(&asked, &reader, &verdict, &err) < 0)
        return report_fail(args->is_json, &err);
    return show_end(args, &verdict);
}
