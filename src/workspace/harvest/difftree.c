/* difftree.c - parses the output of `git diff-tree -z --raw --numstat` as it is read. */
#include "workspace/harvest/difftree.h"
#include "base/err.h"
#include "base/str.h"
#include "workspace/harvest/quarantine.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RECORD_MAX 65536

/*
 * git holds all differences, each path three times, before it prints the first: this is enough
 * for as many as PATHS_MAX_BYTES and harvest_limits.max_paths allow, and for the lines of one
 * file below its threshold.
 */
#define MEMORY_MAX (UINT64_C(1) << 30)

/*
 * Records end with a NUL. ":<modes and ids> <status>" is followed by a record with the path;
 * "<added>\t<removed>\t<path>" is a single record and follows all the others.
 */
struct reader {
    const struct difftree *difftree;
    struct buf record;
    struct difftree_entry entry; /* if has_header: the next record is its path */
    bool has_header;
};

static void reader_finish(struct reader reader)
{
    buf_finish(reader.record);
}
DEFINE_AUTO(struct reader, reader_finish)

static int confused(const char *record, struct carrel_error *err)
{
    char text[80];

    return err_set(err, -EPROTO, "git diff-tree printed '%s', which is not understood",
            str_escape(record, strlen(record), text, sizeof(text)));
}

static int read_header(struct reader *reader, const char *record, struct carrel_error *err)
{
    struct difftree_entry entry = { 0 };

    if (sscanf(record, ":%6o %6o %*64[0-9a-f] %*64[0-9a-f] %c", &entry.old_mode,
                &entry.new_mode, &entry.status) != 3 ||
            !strchr("AMDT", entry.status))
        return confused(record, err);
    reader->entry = entry;
    reader->has_header = true;
    return 0;
}

static int read_lines(struct reader *reader, char *record, struct carrel_error *err)
{
    char *removed = strchr(record, '\t');
    char *path = removed ? strchr(removed + 1, '\t') : NULL;
    struct difftree_lines lines = { 0 };

    if (!path || !reader->difftree->lines)
        return confused(record, err);
    *removed++ = '\0';
    *path++ = '\0';
    lines.path = path;
    if (strcmp(record, "-") == 0)
        lines.is_binary = true;
    else if (str_parse_u64(record, &lines.added) < 0 ||
             str_parse_u64(removed, &lines.removed) < 0)
        return confused(record, err);
    return reader->difftree->lines(reader->difftree->context, &lines, err);
}

static int read_record(struct reader *reader, char *record, struct carrel_error *err)
{
    if (reader->has_header) {
        reader->has_header = false;
        reader->entry.path = record;
        return reader->difftree->each(reader->difftree->context, &reader->entry, err);
    }
    return record[0] == ':' ? read_header(reader, record, err)
                            : read_lines(reader, record, err);
}

static int sink(void *context, const char *data, size_t len, struct carrel_error *err)
{
    struct reader *reader = context;

    while (len > 0) {
        const char *nul = memchr(data, '\0', len);
        size_t part = nul ? (size_t)(nul - data) : len;
        buf_add(&reader->record, data, part);
        if (reader->record.is_short)
            return err_set(err, -EBADMSG, "a path is longer than %d bytes", RECORD_MAX);
        data += part;
        len -= part;
        if (!nul)
            break;
        data++;
        len--;
        if (reader->record.len == 0)
            return confused("", err);
        int r = read_record(reader, reader->record.data, err);
        if (r < 0)
            return r;
        buf_clear(&reader->record);
    }
    return 0;
}

int difftree_run(
        const struct git *git, const struct difftree *difftree, struct carrel_error *err)
{
    AUTO(reader_finish)
    struct reader reader = { .difftree = difftree, .record = BUF_INIT(RECORD_MAX) };
    struct git_io io = GIT_IO_INIT;

    io.sink = sink;
    io.context = &reader;
    io.timeout_ms = difftree->timeout_ms;
    io.max_memory_bytes = MEMORY_MAX;
    if (difftree->max_memory_bytes > 0 && difftree->max_memory_bytes < MEMORY_MAX)
        io.max_memory_bytes = difftree->max_memory_bytes;
    int r = git_expect(git,
            GIT_ARGS(QUARANTINE_GIT, "diff-tree", "-r", "-z", "--no-renames", "--no-abbrev",
                    "--no-ext-diff", "--no-textconv", "--ignore-submodules=none",
                    "--submodule=short", "--raw", difftree->lines ? "--numstat" : "--raw",
                    difftree->from, difftree->to, "--"),
            &io, err);
    if (r < 0)
        return r;
    if (reader.has_header || reader.record.len > 0)
        return err_set(err, -EPROTO, "git diff-tree ended in the middle of a path");
    return 0;
}
