/*
 * library_files.c - files of living sandboxes through libcarrel; only its public headers.
 *
 *     library_files DIRECTORY    an empty one, for what is on the host
 *
 * tests/cli/library.bats builds and runs it. Ends with status 0 if all is as it should be.
 */
#include <carrel/carrel.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct carrel_error err;
static struct carrel_sandbox *sandbox, *other;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            (void)fprintf(                                                                     \
                    stderr, "library_files:%d: %s: %s\n", __LINE__, #condition, err.message);  \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

static const struct carrel_files_options none = CARREL_FILES_OPTIONS_INIT;

/* A file of the host with this content, at its beginning. */
static int scratch(const char *text)
{
    char path[] = "scratch.XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0 && unlink(path) == 0);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

/* Whether this is all that the file of the host has; closes it. */
static int has(int fd, const char *text)
{
    char data[256];
    ssize_t n = pread(fd, data, sizeof(data), 0);

    (void)close(fd);
    return n == (ssize_t)strlen(text) && memcmp(data, text, (size_t)n) == 0;
}

static int put(const char *path, const char *text, const struct carrel_files_options *options)
{
    int fd = scratch(text);
    int r = carrel_files_write(sandbox, path, fd, options, &err);

    (void)close(fd);
    return r;
}

static int holds(struct carrel_sandbox *where, const char *path, const char *text)
{
    int fd = scratch("");
    int r = carrel_files_read(where, path, fd, NULL, &err);

    return has(fd, r < 0 ? "?" : text) && r == 0;
}

static int is_refused(int r, int code, enum carrel_origin origin)
{
    return r == code && err.code == code && err.origin == origin && err.message[0];
}

static void write_and_read(void)
{
    struct carrel_files_options o = none;

    CHECK(put("/workspace/a", "one\n", NULL) == 0);
    CHECK(holds(sandbox, "a", "one\n")); /* relative to /workspace */
    o.is_append = true;
    CHECK(put("a", "two\n", &o) == 0);
    CHECK(holds(sandbox, "a", "one\ntwo\n"));
    o = none;
    o.no_replace = true;
    CHECK(is_refused(put("a", "x", &o), -EEXIST, CARREL_FROM_CALLER));
    o = none;
    o.has_mode = true;
    o.mode = 0600;
    CHECK(put("private", "", &o) == 0);
    o.mode = 04755;
    CHECK(is_refused(put("private", "", &o), -EINVAL, CARREL_FROM_CALLER));
    o = none;
    o.is_whole = true;
    o.max_bytes = 3;
    CHECK(is_refused(carrel_files_read(sandbox, "a", 1, &o, &err), -EFBIG, CARREL_FROM_CALLER));
    CHECK(is_refused(
            carrel_files_read(sandbox, "none", 1, NULL, &err), -ENOENT, CARREL_FROM_CALLER));
    CHECK(strcmp(err.reason, "not_found") == 0);
    CHECK(carrel_files_read(sandbox, "none", 1, NULL, NULL) == -ENOENT);
}

static void refuse_options(void)
{
    struct carrel_files_options o = none;
    struct carrel_files_count count = { .size = 1 };
    struct carrel_file_stat stat = { .size = 1 };

    o.is_recursive = true;
    CHECK(is_refused(put("a", "x", &o), -EINVAL, CARREL_FROM_CALLER));
    CHECK(strcmp(err.message, "the option is_recursive has no meaning here") == 0);
    o = none;
    o.size = 1;
    CHECK(is_refused(put("a", "x", &o), -EINVAL, CARREL_FROM_CALLER));
    CHECK(carrel_files_export(sandbox, ".", 1, NULL, &count, &err) == -EINVAL);
    CHECK(carrel_files_stat(sandbox, "a", NULL, &stat, NULL, &err) == -EINVAL);
    CHECK(carrel_files_copy(NULL, "a", NULL, "b", NULL, NULL, &err) == -EINVAL);
    CHECK(holds(sandbox, "a", "one\ntwo\n"));
}

struct names {
    char text[256];
    int with_stat, stop_after;
};

static int note(const struct carrel_file_entry *entry, void *context)
{
    struct names *names = context;

    CHECK(entry->size == sizeof(*entry));
    (void)strcat(names->text, entry->name);
    (void)strcat(names->text, entry->target ? "@" : "");
    (void)strcat(names->text, " ");
    names->with_stat += entry->stat && entry->stat->inode > 0;
    return --names->stop_after == 0 ? 7 : 0;
}

static void exec(struct carrel_sandbox *where, const char *line)
{
    const char *const argv[] = { "/bin/sh", "-ec", line, NULL };
    struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;

    run.argv = argv;
    CHECK(carrel_sandbox_exec(where, &run, &result, &err) == 0);
    CHECK(carrel_run_result_status(result) == 0);
    carrel_run_result_free(result);
}

static void list_and_stat(void)
{
    struct carrel_files_options o = none;
    struct names names = { .text = "" };
    struct carrel_file_stat stat = CARREL_FILE_STAT_INIT;
    char *target = NULL;

    exec(sandbox, "ln -s a link");
    CHECK(carrel_files_list(sandbox, ".", NULL, note, &names, &err) == 0);
    CHECK(strcmp(names.text, "a link@ private ") == 0 && names.with_stat == 3);
    names = (struct names){ .stop_after = 2 };
    o.names_only = true;
    CHECK(carrel_files_list(sandbox, ".", &o, note, &names, &err) == 7);
    CHECK(strcmp(names.text, "a link ") == 0 && names.with_stat == 0);
    CHECK(is_refused(carrel_files_list(sandbox, "none", &o, note, &names, &err), -ENOENT,
            CARREL_FROM_CALLER));

    CHECK(carrel_files_stat(sandbox, "link", NULL, &stat, &target, &err) == 0);
    CHECK(S_ISLNK(stat.mode) && target && strcmp(target, "a") == 0);
    carrel_free(target);
    o = none;
    o.follows_link = true;
    CHECK(carrel_files_stat(sandbox, "link", &o, &stat, &target, &err) == 0);
    CHECK(S_ISREG(stat.mode) && stat.bytes == 8 && !target && stat.modified.seconds > 0);
    CHECK(carrel_files_stat(sandbox, "private", NULL, &stat, NULL, &err) == 0);
    CHECK((stat.mode & 07777) == 0600);
    CHECK(carrel_files_remove(sandbox, "link", NULL, &err) == 0);
    CHECK(holds(sandbox, "a", "one\ntwo\n"));
}

static void make_move_remove(void)
{
    struct carrel_files_options o = none;

    CHECK(is_refused(
            carrel_files_make_dir(sandbox, "d/e", NULL, &err), -ENOENT, CARREL_FROM_CALLER));
    o.with_parents = true;
    CHECK(carrel_files_make_dir(sandbox, "d/e", &o, &err) == 0);
    CHECK(carrel_files_make_dir(sandbox, "d/e", &o, &err) == 0);
    CHECK(carrel_files_move(sandbox, "a", "d/e", NULL, &err) == 0);
    CHECK(holds(sandbox, "d/e/a", "one\ntwo\n"));
    o = none;
    o.no_replace = true;
    CHECK(is_refused(carrel_files_move(sandbox, "d/e/a", "private", &o, &err), -EEXIST,
            CARREL_FROM_CALLER));
    CHECK(is_refused(
            carrel_files_remove(sandbox, "d", NULL, &err), -ENOTEMPTY, CARREL_FROM_CALLER));
    CHECK(carrel_files_remove(sandbox, "private", NULL, &err) == 0);
}

static void copy(void)
{
    struct carrel_files_count count = CARREL_FILES_COUNT_INIT;
    struct carrel_files_options o = none;

    CHECK(carrel_files_copy(sandbox, "d", NULL, "copy", NULL, &count, &err) == 0);
    CHECK(count.files == 1 && count.directories == 2 && count.bytes == 8);
    CHECK(has(open("copy/e/a", O_RDONLY), "one\ntwo\n"));
    CHECK(carrel_files_copy(NULL, "copy/e/a", sandbox, "from_host", NULL, NULL, &err) == 0);
    CHECK(holds(sandbox, "from_host", "one\ntwo\n"));
    CHECK(carrel_files_copy(sandbox, "d", other, "d", NULL, &count, &err) == 0);
    CHECK(holds(other, "d/e/a", "one\ntwo\n"));
    o.max_entries = 1;
    CHECK(is_refused(carrel_files_copy(sandbox, "d", other, "few", &o, &count, &err), -EFBIG,
            CARREL_FROM_CALLER));
    int in = scratch("stream\n");
    CHECK(carrel_files_copy_stream(sandbox, "streamed", in, NULL, &count, &err) == 0);
    (void)close(in);
    CHECK(count.files == 1 && count.bytes == 7 && count.directories == 0);
    CHECK(holds(sandbox, "streamed", "stream\n"));
}

static void archive(void)
{
    struct carrel_files_count count = CARREL_FILES_COUNT_INIT;
    struct carrel_files_options o = none;
    int tar = scratch("");

    CHECK(carrel_files_export(sandbox, "d", tar, NULL, &count, &err) == 0);
    CHECK(count.files == 1 && count.directories == 1);
    CHECK(lseek(tar, 0, SEEK_SET) == 0);
    CHECK(carrel_files_make_dir(other, "there", NULL, &err) == 0);
    CHECK(carrel_files_import(other, "there", tar, NULL, &count, &err) == 0);
    CHECK(count.files == 1 && count.bytes == 8);
    CHECK(holds(other, "there/e/a", "one\ntwo\n"));
    CHECK(lseek(tar, 0, SEEK_SET) == 0);
    o.max_bytes = 4;
    CHECK(is_refused(carrel_files_import(other, "there", tar, &o, NULL, &err), -EFBIG,
            CARREL_FROM_CALLER));
    (void)close(tar);

    int text = scratch("this is no archive, however it is read");
    CHECK(is_refused(carrel_files_import(other, "there", text, NULL, NULL, &err), -EBADMSG,
            CARREL_FROM_CALLER));
    CHECK(is_refused(carrel_files_import(other, "none", text, NULL, NULL, &err), -ENOENT,
            CARREL_FROM_CALLER));
    (void)close(text);
}

static const struct carrel_watch_event *hear(struct carrel_watch *watch)
{
    struct pollfd fd = { .fd = carrel_watch_fd(watch), .events = POLLIN };
    const struct carrel_watch_event *event = NULL;
    int r;

    while ((r = carrel_watch_next(watch, &event, &err)) == 0)
        CHECK(poll(&fd, 1, 30000) == 1);
    CHECK(r == 1 && event->size == sizeof(*event));
    return event;
}

static int is_heard(struct carrel_watch *watch, const char *kind, const char *path)
{
    const struct carrel_watch_event *event = hear(watch);

    return strcmp(carrel_watch_kind_name(event->kind), kind) == 0 &&
           strcmp(event->path, path) == 0;
}

/* The handle of the sandbox is used meanwhile: programs end, files change. */
static void watch(void)
{
    struct carrel_files_options o = none;
    struct carrel_watch *handle = NULL;
    const struct carrel_watch_event *event;

    CHECK(is_refused(carrel_watch_open(sandbox, "none", NULL, &handle, &err), -ENOENT,
            CARREL_FROM_CALLER));
    o.is_recursive = true;
    CHECK(carrel_watch_open(sandbox, "d", &o, &handle, &err) == 0);
    CHECK(is_heard(handle, "ready", "d"));
    CHECK(carrel_watch_next(handle, &event, &err) == 0);
    exec(sandbox, "mkdir d/new; mv d/e/a d/b");
    CHECK(is_heard(handle, "create", "d/new"));
    event = hear(handle);
    CHECK(event->kind == CARREL_WATCH_RENAME && strcmp(event->to, "d/b") == 0);
    CHECK(put("d/new/file", "x", NULL) == 0);
    CHECK(is_heard(handle, "create", "d/new/file"));
    CHECK(is_heard(handle, "write", "d/new/file"));
    CHECK(carrel_sandbox_destroy(sandbox, NULL, &err) == 0);
    while (hear(handle)->kind != CARREL_WATCH_END)
        ;
    CHECK(carrel_watch_next(handle, &event, &err) == -ESHUTDOWN);
    carrel_watch_free(handle);
    CHECK(carrel_files_read(sandbox, "d/b", 1, NULL, &err) == -ESRCH);
    CHECK(carrel_watch_open(sandbox, "d", NULL, &handle, &err) == -ESRCH);
}

static void act_as(void)
{
    struct carrel_files_options o = none;
    struct carrel_file_stat stat = CARREL_FILE_STAT_INIT;

    exec(other, "mkdir -m 777 /dev/shm/open");
    o.has_user = true;
    o.uid = o.gid = 1234;
    int r = carrel_files_make_dir(other, "/dev/shm/open/theirs", &o, &err);
    if (getuid() != 0) { /* there is one user in the sandbox of an ordinary user */
        CHECK(r < 0);
        return;
    }
    CHECK(r == 0 &&
            carrel_files_stat(other, "/dev/shm/open/theirs", NULL, &stat, NULL, &err) == 0);
    CHECK(stat.uid == 1234 && stat.gid == 1234);
}

int main(int argc, char **argv)
{
    const struct carrel_sandbox_options made = CARREL_SANDBOX_OPTIONS_INIT;

    CHECK(argc == 2 && chdir(argv[1]) == 0);
    CHECK(carrel_sandbox_create(&made, &sandbox, &err) == 0);
    CHECK(carrel_sandbox_create(&made, &other, &err) == 0);
    write_and_read();
    refuse_options();
    list_and_stat();
    make_move_remove();
    copy();
    archive();
    act_as();
    watch();
    CHECK(carrel_sandbox_destroy(other, NULL, &err) == 0);
    carrel_sandbox_free(sandbox);
    carrel_sandbox_free(other);
    carrel_watch_free(NULL);
    (void)puts("0 failures");
    return 0;
}
