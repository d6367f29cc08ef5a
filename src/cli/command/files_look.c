/* files_look.c - carrel ls, cat and stat: files of a sandbox, looked at. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/files_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* "drwxr-xr-x" */
static const char *mode_text(uint32_t mode, char text[static 11])
{
    static const char bits[] = "rwxrwxrwx";

    text[0] = S_ISDIR(mode)    ? 'd'
              : S_ISLNK(mode)  ? 'l'
              : S_ISFIFO(mode) ? 'p'
              : S_ISSOCK(mode) ? 's'
              : S_ISCHR(mode)  ? 'c'
              : S_ISBLK(mode)  ? 'b'
                               : '-';
    for (unsigned i = 0; i < 9; i++)
        text[1 + i] = mode & (0400U >> i) ? bits[i] : '-';
    text[10] = '\0';
    return text;
}

static void stamp(const struct carrel_file_time *time, char text[static CLOCK_STAMP])
{
    const struct timespec when = { .tv_sec = time->seconds, .tv_nsec = time->nanoseconds };

    clock_stamp(&when, text);
}

static const char *type_name(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "link";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    case S_IFCHR:
    case S_IFBLK:
        return "device";
    default:
        return "unknown";
    }
}

static void write_stat(
        struct json *json, const struct carrel_file_stat *stat, const char *target)
{
    char text[CLOCK_STAMP];
    char mode[16];

    json_str(json, "type", type_name(stat->mode));
    json_u64(json, "size", stat->bytes);
    (void)snprintf(mode, sizeof(mode), "%04o", stat->mode & 07777);
    json_str(json, "mode", mode);
    json_u64(json, "uid", stat->uid);
    json_u64(json, "gid", stat->gid);
    stamp(&stat->modified, text);
    json_str(json, "modified", text);
    json_u64(json, "inode", stat->inode);
    json_u64(json, "links", stat->links);
    json_u64(json, "held_bytes", stat->held_bytes);
    json_str(json, "target", target);
}

/* --- ls --- */

struct listing {
    const struct files_args *args;
    struct json json;
};

static int list_one(const struct carrel_file_entry *entry, void *context)
{
    struct listing *listing = context;
    const struct carrel_file_stat *stat = entry->stat;
    char name[4 * NAME_MAX + 1];
    char target[1024];
    char mode[11];
    char time[CLOCK_STAMP];

    if (listing->args->is_json) {
        json_object(&listing->json, NULL);
        json_str(&listing->json, "name", entry->name);
        write_stat(&listing->json, stat, entry->target);
        json_end_object(&listing->json);
        return 0;
    }
    (void)str_escape(entry->name, strlen(entry->name), name, sizeof(name));
    if (!listing->args->is_long) {
        (void)puts(name);
        return 0;
    }
    stamp(&stat->modified, time);
    printf("%s %5u %5u %10" PRIu64 " %.19s %s%s%s\n", mode_text(stat->mode, mode), stat->uid,
            stat->gid, stat->bytes, time, name, entry->target ? " -> " : "",
            entry->target
                    ? str_escape(entry->target, strlen(entry->target), target, sizeof(target))
                    : "");
    return 0;
}

static int run_ls(const struct files_args *args, char **words, int n)
{
    struct carrel_error err = { 0 };
    struct carrel_files_options options = args->options;
    struct carrel_sandbox *sandbox = NULL;
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct listing listing = { .args = args, .json = { .out = &text } };
    const char *path = NULL;

    (void)n;
    json_object(&listing.json, NULL);
    json_array(&listing.json, "entries");
    options.names_only = !args->is_long && !args->is_json;
    int r = files_open(words[0], &sandbox, &path, &err);
    if (r == 0)
        r = carrel_files_list(sandbox, path, &options, list_one, &listing, &err);
    carrel_sandbox_free(sandbox);
    if (r < 0)
        return report_fail(args->is_json, &err);
    json_end_array(&listing.json);
    json_end_object(&listing.json);
    return args->is_json ? report_print_json(&text, 0) : report_finish(0);
}

int cmd_ls(int argc, char **argv)
{
    static const struct option_row rows[] = {
        FILES_FLAG("l", "also print type, permissions, owner, size, time (UTC)", is_long),
        FILES_USER,
        FILES_JSON,
        FILES_HELP,
    };
    static const struct files_command command = {
        .name = "ls",
        .words = "SANDBOX:PATH",
        .help = "Lists a directory of a sandbox, one name per line. Control characters are\n"
                "printed as \\xNN.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 1,
        .max_words = 1,
        .run = run_ls,
    };

    return files_command_run(&command, argc, argv);
}

/* --- cat --- */

static int read_one(const struct files_args *args, struct carrel_sandbox *sandbox,
        const char *path, struct carrel_error *err)
{
    return carrel_files_read(sandbox, path, STDOUT_FILENO, &args->options, err);
}

static int run_cat(const struct files_args *args, char **words, int n)
{
    return files_for_words(args, words, n, read_one);
}

int cmd_cat(int argc, char **argv)
{
    static const struct option_row rows[] = { FILES_USER, FILES_HELP };
    static const struct files_command command = {
        .name = "cat",
        .words = "SANDBOX:PATH...",
        .help = "Writes files of a sandbox to standard output, unchanged.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 1,
        .max_words = INT_MAX,
        .run = run_cat,
    };

    return files_command_run(&command, argc, argv);
}

/* --- stat --- */

static int print_stat(const struct files_args *args, const char *path,
        const struct carrel_file_stat *stat, const char *target)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 10);
    struct json json = { .out = &text };
    char shown[2 * PATH_MAX];
    char time[CLOCK_STAMP];
    char mode[11];

    if (args->is_json) {
        json_object(&json, NULL);
        json_str(&json, "path", path);
        write_stat(&json, stat, target);
        json_end_object(&json);
        return report_print_json(&text, 0);
    }
    printf("path      %s\n", str_escape(path, strlen(path), shown, sizeof(shown)));
    printf("type      %s\n", type_name(stat->mode));
    if (target)
        printf("target    %s\n", str_escape(target, strlen(target), shown, sizeof(shown)));
    printf("size      %" PRIu64 "\n", stat->bytes);
    printf("mode      %04o (%s)\n", stat->mode & 07777, mode_text(stat->mode, mode));
    printf("owner     %u:%u\n", stat->uid, stat->gid);
    stamp(&stat->modified, time);
    printf("modified  %s\n", time);
    printf("inode     %" PRIu64 ", %" PRIu64 " link%s\n", stat->inode, stat->links,
            stat->links == 1 ? "" : "s");
    return report_finish(0);
}

static int run_stat(const struct files_args *args, char **words, int n)
{
    struct carrel_error err = { 0 };
    struct carrel_sandbox *sandbox = NULL;
    struct carrel_file_stat stat = CARREL_FILE_STAT_INIT;
    char *target = NULL;
    const char *path = NULL;

    (void)n;
    int r = files_open(words[0], &sandbox, &path, &err);
    if (r == 0)
        r = carrel_files_stat(sandbox, path, &args->options, &stat, &target, &err);
    carrel_sandbox_free(sandbox);
    if (r < 0)
        return report_fail(args->is_json, &err);
    int status = print_stat(args, path, &stat, target);
    carrel_free(target);
    return status;
}

int cmd_stat(int argc, char **argv)
{
    static const struct option_row rows[] = {
        FILES_FLAG("follow", "follow a symbolic link", options.follows_link),
        FILES_USER,
        FILES_JSON,
        FILES_HELP,
    };
    static const struct files_command command = {
        .name = "stat",
        .words = "SANDBOX:PATH",
        .help = "Prints type, permissions, owner, size and time of a file of a sandbox. User "
                "and\n"
                "group ids are those inside the sandbox.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 1,
        .max_words = 1,
        .run = run_stat,
    };

    return files_command_run(&command, argc, argv);
}
