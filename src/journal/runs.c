/* runs.c - reads the index. */
#include "journal/runs.h"
#include "base/err.h"
#include "base/fd.h"
#include "journal/file.h"
#include "journal/index.h"
#include "journal/lines.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

void journal_runs_free(struct journal_runs *runs)
{
    if (!runs)
        return;
    for (size_t i = 0; i < runs->n; i++)
        free(runs->items[i].seals);
    free(runs->items);
    free(runs->slots);
    free(runs);
}

static size_t hash_of(const char *run)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

    for (; *run; run++)
        hash = (hash ^ (unsigned char)*run) * 0x100000001b3;
    return (size_t)hash;
}

/* The slot of the run, or the free one for it. There is always a free slot. */
static size_t *slot_of(const struct journal_runs *runs, const char *run)
{
    size_t at = hash_of(run) & (runs->n_slots - 1);

    while (runs->slots[at] > 0 && strcmp(runs->items[runs->slots[at] - 1].run, run) != 0)
        at = (at + 1) & (runs->n_slots - 1);
    return &runs->slots[at];
}

/* Makes room for one more in both arrays. */
static int grow(struct journal_runs *runs)
{
    if (2 * (runs->n + 1) <= runs->n_slots)
        return 0;
    size_t n_slots = runs->n_slots ? 2 * runs->n_slots : 64;
    struct journal_run *items = reallocarray(runs->items, n_slots / 2, sizeof(*items));
    if (!items)
        return -ENOMEM;
    runs->items = items;
    size_t *slots = calloc(n_slots, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    free(runs->slots);
    runs->slots = slots;
    runs->n_slots = n_slots;
    for (size_t i = 0; i < runs->n; i++)
        *slot_of(runs, runs->items[i].run) = i + 1;
    return 0;
}

const struct journal_run *journal_runs_get(const struct journal_runs *runs, const char *run)
{
    size_t at = runs->n > 0 ? *slot_of(runs, run) : 0;

    return at > 0 ? &runs->items[at - 1] : NULL;
}

/* The entry of a run; a new one if the run is unknown. */
static struct journal_run *entry_of(struct journal_runs *runs, const char *run)
{
    if (grow(runs) < 0)
        return NULL;
    size_t *slot = slot_of(runs, run);
    if (*slot == 0) {
        runs->items[runs->n] = (struct journal_run){ 0 };
        (void)stpcpy(runs->items[runs->n].run, run);
        *slot = ++runs->n;
    }
    return &runs->items[*slot - 1];
}

static void take_text(const struct journal_line *line, const char *key, char *out, size_t size)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(size - 1);

    (void)json_read_string(json_read_member(line->whole, key), &text);
    (void)snprintf(out, size, "%s", text.data ? text.data : "");
}

static int take_seal(struct journal_run *run, const struct journal_line *line)
{
    struct journal_seal *seals = reallocarray(run->seals, run->n_seals + 1, sizeof(*seals));

    if (!seals)
        return -ENOMEM;
    run->seals = seals;
    run->is_open = false;
    (void)snprintf(
            run->sealed, sizeof(run->sealed), "%.*s", (int)line->time.len, line->time.text);
    take_text(line, "reason", run->reason, sizeof(run->reason));
    take_text(line, "seal", run->seal, sizeof(run->seal));
    (void)json_read_u64(json_read_member(line->whole, "records"), &run->records);
    seals[run->n_seals].records = run->records;
    memcpy(seals[run->n_seals++].hash, run->seal, sizeof(run->seal));
    return 0;
}

static int take(struct journal_runs *runs, const struct journal_line *line)
{
    char id[JOURNAL_RUN];

    if (journal_line_is(line, "torn"))
        return 0;
    (void)snprintf(id, sizeof(id), "%.*s", (int)line->run.len, line->run.text);
    struct journal_run *run = entry_of(runs, id);
    if (!run)
        return -ENOMEM;
    if (journal_line_is(line, "run_sealed"))
        return take_seal(run, line);
    if (journal_line_is(line, "run_pruned")) {
        run->is_pruned = true;
        run->is_open = false;
    } else {
        if (!run->began[0] || run->is_pruned) { /* an id may be reused after it was pruned */
            free(run->seals);
            *run = (struct journal_run){ 0 };
            (void)stpcpy(run->run, id);
            (void)snprintf(run->began, sizeof(run->began), "%.*s", (int)line->time.len,
                    line->time.text);
        }
        take_text(line, "task", run->task, sizeof(run->task));
        run->is_open = true;
    }
    return 0;
}

/* The length of the file at a moment when no process writes to it. */
static int settled_size(int fd, uint64_t *out, struct carrel_error *err)
{
    struct stat st;

    int r = journal_lock_shared(fd);
    if (r < 0)
        return err_set_errno(err, r, "lock '%s'", JOURNAL_INDEX);
    if (fstat(fd, &st) < 0)
        r = err_set_errno(err, -errno, "stat '%s'", JOURNAL_INDEX);
    else
        *out = (uint64_t)st.st_size;
    journal_unlock(fd);
    return r;
}

static int read_index(int fd, struct journal_runs *runs, struct carrel_error *err)
{
    struct journal_known known = { .is_index = true };
    struct journal_line line;

    int r = settled_size(fd, &known.max_bytes, err);
    if (r < 0 || known.max_bytes == 0)
        return r;
    AUTO(journal_reader_finish) struct journal_reader reader = journal_reader_of(fd, &known);
    while ((r = journal_reader_next(&reader, &line, err)) > 0) {
        r = take(runs, &line);
        if (r < 0)
            return err_set_errno(err, r, "read '%s'", JOURNAL_INDEX);
    }
    if (r == 0)
        journal_reader_judge(&reader, &runs->index);
    return r;
}

int journal_runs_read(int dir, struct journal_runs **out, struct carrel_error *err)
{
    AUTO(journal_runs_free) struct journal_runs *runs = calloc(1, sizeof(*runs));

    if (!runs)
        return err_set_errno(err, -ENOMEM, "read '%s'", JOURNAL_INDEX);
    runs->index.state = CARREL_RECORD_UNSEALED;
    AUTO(fd_close)
    int fd = dir < 0 ? -1 : openat(dir, JOURNAL_INDEX, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && fd < 0 && errno != ENOENT)
        return err_set_errno(err, -errno, "open '%s'", JOURNAL_INDEX);
    int r = fd < 0 ? 0 : read_index(fd, runs, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&runs);
    return 0;
}

int journal_open_run(int dir, const char *run, struct carrel_error *err)
{
    if (!journal_is_run(run, strlen(run)))
        return err_set(err, -EINVAL, "not a valid run id");
    AUTO(fd_close)
    int sub = openat(dir, run, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = sub < 0 ? -1
                     : openat(sub, JOURNAL_NAME,
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "journal of run '%s'", run);
    return fd;
}

enum carrel_record_state journal_run_state(int dir, const struct journal_run *run)
{
    if (run->is_pruned)
        return CARREL_RECORD_PRUNED;
    AUTO(fd_close) int fd = journal_open_run(dir, run->run, NULL);
    if (fd < 0)
        return CARREL_RECORD_MISSING;
    if (journal_lock_is_held(fd))
        return CARREL_RECORD_IN_PROGRESS;
    return run->is_open ? CARREL_RECORD_UNSEALED : CARREL_RECORD_SEALED;
}

static void say(
        struct journal_verdict *verdict, enum carrel_record_state state, const char *why)
{
    verdict->state = state;
    (void)snprintf(verdict->why, sizeof(verdict->why), "%s", why);
}

struct journal_known journal_run_known(const char *run, const struct journal_run *entry)
{
    struct journal_known known = { .run = run };

    if (entry && !entry->is_pruned) {
        known.seals = entry->seals;
        known.n_seals = entry->n_seals;
    }
    return known;
}

void journal_run_judge(const struct journal_run *entry, struct journal_verdict *verdict)
{
    if (!entry && verdict->records + verdict->torn_bytes > 0 &&
            (verdict->state == CARREL_RECORD_SEALED ||
                    verdict->state == CARREL_RECORD_UNSEALED))
        say(verdict, CARREL_RECORD_BAD, "the index does not know this run");
    else if (verdict->state == CARREL_RECORD_SEALED && !verdict->has_known_seal)
        say(verdict, CARREL_RECORD_UNSEALED,
                "it is sealed and the index has no record of that: carrel was killed at its "
                "end, "
                "or the index was truncated");
}

int journal_verify_run(int fd, const char *run, const struct journal_run *entry,
        const struct journal_trust *trust, struct journal_verdict *out,
        struct carrel_error *err)
{
    struct journal_known known = journal_run_known(run, entry);

    if (fd < 0) {
        *out = (struct journal_verdict){ 0 };
        if (entry && entry->is_pruned)
            say(out, CARREL_RECORD_PRUNED, "");
        else
            say(out, CARREL_RECORD_MISSING, "the index knows it, and its journal is not there");
        return 0;
    }
    known.trust = trust;
    int r = journal_verify(fd, &known, out, err);
    if (r == 0)
        journal_run_judge(entry, out);
    return r;
}
