/* monitor.c - the index, entry by entry, beside the pristine one and the upper directory. */
#include "workspace/cache/monitor.h"
#include "base/buf.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where things are in an entry: gitformat-index(5). */
enum {
    AT_CTIME = 0,
    AT_MTIME = 8,
    AT_INO = 20,
    AT_MODE = 24,
    AT_UID = 28,
    AT_GID = 32,
    AT_SIZE = 36,
    AT_OID = 40,
    HEADER_BYTES = 12,
};
enum { FLAG_EXTENDED = 0x4000, FLAG_STAGE = 0x3000, NAME_MASK = 0x0fff };

#define MODE_GITLINK 0160000U
#define MAX_DEPTH 256U
/* A name that no file has: it makes git read the directory again. */
#define NO_FILE ".carrel-looked-here"

struct file {
    const unsigned char *data;
    size_t len;
    struct stat st;
};

static void file_finish(struct file file)
{
    if (file.data)
        (void)munmap((void *)(uintptr_t)file.data, file.len);
}
DEFINE_AUTO(struct file, file_finish)

struct entry {
    const unsigned char *data;
    size_t len;
    const char *path; /* NUL-terminated */
    size_t path_len;
    unsigned flags;
};

struct cursor {
    const unsigned char *data;
    size_t at;
    size_t end;
    size_t left; /* entries */
    size_t oid_bytes;
};

static uint32_t load32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool map_file(int dir, const char *name, struct file *out)
{
    struct file file = { 0 };
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &file.st) < 0 || !S_ISREG(file.st.st_mode) ||
            file.st.st_size < HEADER_BYTES + SHA256_BYTES || file.st.st_size > INT32_MAX)
        return false;
    file.len = (size_t)file.st.st_size;
    void *data = mmap(NULL, file.len, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (data == MAP_FAILED)
        return false;
    file.data = data;
    *out = file;
    return true;
}

static bool cursor_init(struct cursor *cursor, const struct file *file, size_t oid_bytes)
{
    uint32_t version = load32(file->data + 4);

    *cursor = (struct cursor){
        .data = file->data,
        .at = HEADER_BYTES,
        .end = file->len - oid_bytes,
        .left = load32(file->data + 8),
        .oid_bytes = oid_bytes,
    };
    return memcmp(file->data, "DIRC", 4) == 0 && (version == 2 || version == 3);
}

/* False: the entry is malformed. */
static bool next_entry(struct cursor *cursor, struct entry *out)
{
    const unsigned char *data = cursor->data + cursor->at;
    size_t room = cursor->end - cursor->at;
    size_t name_at = AT_OID + cursor->oid_bytes + 2;

    if (room < name_at + 3)
        return false;
    unsigned flags = (unsigned)data[name_at - 2] << 8 | data[name_at - 1];
    if (flags & FLAG_EXTENDED)
        name_at += 2;
    size_t len = flags & NAME_MASK;
    if (len == NAME_MASK)
        len = strnlen((const char *)data + name_at, room - name_at);
    size_t total = (name_at + len + 8) & ~(size_t)7; /* one to eight NULs */
    if (len == 0 || len >= PATH_MAX || total > room || data[name_at + len] != 0)
        return false;
    *out = (struct entry){
        .data = data,
        .len = total,
        .path = (const char *)data + name_at,
        .path_len = len,
        .flags = flags,
    };
    cursor->at += total;
    cursor->left--;
    return true;
}

/*
 * What follows the entries must hold our last answer's token, or git has read another index
 * than we do; and nothing that keeps entries elsewhere (a split index, directories as entries).
 */
static bool extensions_fit(const struct cursor *cursor, const char *token)
{
    bool is_ours = false;

    for (size_t at = cursor->at; at < cursor->end;) {
        const unsigned char *data = cursor->data + at;
        if (cursor->end - at < 8)
            return false;
        size_t len = load32(data + 4);
        if (len > cursor->end - at - 8 || memcmp(data, "link", 4) == 0 ||
                memcmp(data, "sdir", 4) == 0)
            return false;
        if (memcmp(data, "FSMN", 4) == 0)
            is_ours = len > 4 + strlen(token) && load32(data + 8) == 2 &&
                      memcmp(data + 12, token, strlen(token) + 1) == 0;
        at += 8 + len;
    }
    return is_ours;
}

/* Where a directory of the work tree is. */
enum place {
    PLACE_UPPER, /* changed: in the upper directory or in the setup layer, too */
    PLACE_LOWER, /* as it always was, with all that is below it */
    PLACE_GONE,
};

/* The directory of the last entry, component by component. */
struct here {
    char path[PATH_MAX];
    size_t len;
    size_t depth;
    struct {
        size_t len; /* of the path up to here */
        enum place place;
        bool is_in_layer;
    } levels[PATH_MAX / 2 + 1];
};

static bool find_place(
        const struct monitor *monitor, const char *path, enum place parent, enum place *out)
{
    struct stat st;

    *out = parent;
    if (parent != PLACE_UPPER)
        return true;
    if (fstatat(monitor->upper, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        *out = S_ISDIR(st.st_mode) ? PLACE_UPPER : PLACE_GONE;
        return true;
    }
    if (errno != ENOENT)
        return false;
    /* Not changed, if the upper directory above it does not hide what was there. */
    bool is_there = fstatat(monitor->tree, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!is_there && errno != ENOENT)
        return false;
    *out = is_there && S_ISDIR(st.st_mode) ? PLACE_LOWER : PLACE_GONE;
    return true;
}

static bool is_dir_at(int dir, const char *path)
{
    struct stat st;

    return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Goes to the directory of `path`. Entries are sorted, so most of the way is known. Names each
 * directory on the way that the setup layer has, too. */
static bool go_to(const struct monitor *monitor, struct here *here, const char *path,
        size_t path_len, struct buf *out)
{
    const char *slash = memrchr(path, '/', path_len);
    size_t len = slash ? (size_t)(slash - path) : 0;

    if (len == here->len && memcmp(here->path, path, len) == 0)
        return true;
    while (here->depth > 0) {
        size_t known = here->levels[here->depth].len;
        if (known <= len && path[known] == '/' && memcmp(here->path, path, known) == 0)
            break;
        here->depth--;
    }
    size_t at = here->levels[here->depth].len;
    while (at < len) {
        const char *end = memchr(path + at + 1, '/', path_len - at - 1);
        size_t next = end ? (size_t)(end - path) : len;
        enum place parent = here->levels[here->depth].place;
        bool is_in_layer = here->levels[here->depth].is_in_layer;
        memcpy(here->path, path, next);
        here->path[next] = '\0';
        here->depth++;
        here->levels[here->depth].len = next;
        if (!find_place(monitor, here->path, parent, &here->levels[here->depth].place))
            return false;
        here->levels[here->depth].is_in_layer =
                is_in_layer && is_dir_at(monitor->layer, here->path);
        if (here->levels[here->depth].is_in_layer) {
            here->levels[here->depth].place = PLACE_UPPER; /* or gone: both are looked at */
            buf_add(out, here->path, next);
            buf_add(out, "/" NO_FILE, sizeof("/" NO_FILE));
        }
        at = next;
    }
    here->len = len;
    return true;
}

static bool same_time(const unsigned char *recorded, const struct timespec *time)
{
    return load32(recorded) == (uint32_t)time->tv_sec &&
           load32(recorded + 4) == (uint32_t)time->tv_nsec;
}

static bool same_mode(uint32_t recorded, mode_t mode)
{
    if ((recorded & S_IFMT) != (mode & S_IFMT))
        return false;
    return !S_ISREG(mode) || ((recorded & 0100) != 0) == ((mode & 0100) != 0);
}

/* As ie_match_stat() in git does it; a file of the index's own second does not count. */
static bool is_as_recorded(
        const struct monitor *monitor, const struct entry *entry, const struct stat *index)
{
    const unsigned char *data = entry->data;
    struct stat st;

    return fstatat(monitor->tree, entry->path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_mtim.tv_sec < index->st_mtim.tv_sec &&
           same_time(data + AT_MTIME, &st.st_mtim) && same_time(data + AT_CTIME, &st.st_ctim) &&
           load32(data + AT_INO) == (uint32_t)st.st_ino &&
           load32(data + AT_UID) == (uint32_t)st.st_uid &&
           load32(data + AT_GID) == (uint32_t)st.st_gid &&
           load32(data + AT_SIZE) == (uint32_t)st.st_size &&
           same_mode(load32(data + AT_MODE), st.st_mode);
}

/* Moves `pristine` on to `entry`; true when it says the same. */
static bool is_pristine(
        struct cursor *cursor, struct entry *pristine, const struct entry *entry)
{
    while (pristine->path && strcmp(pristine->path, entry->path) < 0)
        if (cursor->left == 0 || !next_entry(cursor, pristine))
            pristine->path = NULL;
    return pristine->path && pristine->data && pristine->len == entry->len &&
           memcmp(pristine->data, entry->data, entry->len) == 0;
}

static bool list_entries(const struct monitor *monitor, size_t oid_bytes, struct buf *out)
{
    AUTO(file_finish) struct file index = { 0 };
    AUTO(file_finish) struct file old = { 0 };
    struct cursor cursor;
    struct cursor old_cursor;
    struct entry entry;
    struct entry pristine = { .path = "" };
    struct here here = {
        .levels[0] = { .place = PLACE_UPPER, .is_in_layer = monitor->layer >= 0 },
    };

    if (!map_file(monitor->git, "index", &index) ||
            !map_file(monitor->git, MONITOR_PRISTINE, &old) ||
            !cursor_init(&cursor, &index, oid_bytes) ||
            !cursor_init(&old_cursor, &old, oid_bytes))
        return false;
    while (cursor.left > 0) {
        if (!next_entry(&cursor, &entry) ||
                !go_to(monitor, &here, entry.path, entry.path_len, out))
            return false;
        bool is_same = is_pristine(&old_cursor, &pristine, &entry);
        enum place place = here.levels[here.depth].place;
        if (place == PLACE_LOWER && is_same)
            continue;
        if (place == PLACE_GONE || entry.flags & FLAG_STAGE ||
                load32(entry.data + AT_MODE) == MODE_GITLINK ||
                !is_as_recorded(monitor, &entry, &index.st))
            buf_add(out, entry.path, entry.path_len + 1);
    }
    return extensions_fit(&cursor, monitor->token);
}

static bool is_dir(int dir, const struct dirent *item)
{
    struct stat st;

    if (item->d_type != DT_UNKNOWN)
        return item->d_type == DT_DIR;
    return fstatat(dir, item->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/*
 * Every directory in the upper one: git remembers which untracked files it saw in it, and one
 * that was removed again has left nothing to name. Takes over `fd`.
 */
static bool list_dirs(int fd, char *path, size_t len, unsigned depth, struct buf *out)
{
    const struct dirent *item;
    AUTO(dir_close) DIR *dir = fdopendir(fd);

    if (!dir || depth > MAX_DEPTH) {
        if (!dir)
            fd_close(fd);
        return false;
    }
    buf_add(out, path, len);
    buf_add(out, NO_FILE, sizeof(NO_FILE));
    while ((item = readdir(dir))) {
        size_t name_len = strlen(item->d_name);
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 ||
                strcmp(item->d_name, ".git") == 0 || !is_dir(dirfd(dir), item))
            continue;
        if (len + name_len + 2 > PATH_MAX)
            return false;
        memcpy(path + len, item->d_name, name_len);
        path[len + name_len] = '/';
        int below = openat(
                dirfd(dir), item->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0 || !list_dirs(below, path, len + name_len + 1, depth + 1, out))
            return false;
    }
    return true;
}

bool monitor_list(const struct monitor *monitor, struct buf *out)
{
    char path[PATH_MAX];
    size_t before = out->len;
    bool is_fine = list_entries(monitor, SHA1_BYTES, out);

    if (!is_fine && !out->is_short) { /* entries of the other length, or nothing for us */
        out->len = before;
        is_fine = list_entries(monitor, SHA256_BYTES, out);
    }
    if (!is_fine)
        return false;
    int fd = openat(monitor->upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && list_dirs(fd, path, 0, 0, out) && !out->is_short;
}

/* The arguments of a command line, one after the other. */
struct words {
    const char *at;
    const char *end;
};

static const char *next_word(struct words *words)
{
    const char *word = words->at;

    if (word >= words->end || !memchr(word, '\0', (size_t)(words->end - word)))
        return NULL;
    words->at = word + strlen(word) + 1;
    return word;
}

/* The name of the command; options of git itself stand before it. */
static const char *next_command(struct words *words)
{
    static const char *const with_value[] = { "-C", "-c", "--git-dir", "--work-tree",
        "--namespace", "--super-prefix", "--config-env" };
    const char *word;

    while ((word = next_word(words)) && word[0] == '-')
        for (size_t i = 0; i < sizeof(with_value) / sizeof(with_value[0]); i++)
            if (strcmp(word, with_value[i]) == 0)
                (void)next_word(words);
    return word;
}

bool monitor_helps(const char *args, unsigned long len)
{
    struct words words = { args, args + len };
    const char *word = next_word(&words); /* git itself */
    const char *command = word ? next_command(&words) : NULL;

    if (!command)
        return false;
    if (strcmp(command, "status") == 0 || strcmp(command, "add") == 0 ||
            strcmp(command, "commit") == 0)
        return true;
    if (strcmp(command, "diff") != 0)
        return false;
    while ((word = next_word(&words)) && strcmp(word, "--") != 0)
        if (word[0] != '-')
            return false; /* it may be a commit */
    return true;
}
