/*
 * random_edits.h - for tests: typical edits of a tree, in an order that depends only on the
 * seed.
 */
#pragma once
#include "base/auto.h"
#include "base/fd.h"
#include "harness.h"
#include "workspace/random.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static inline const char *pick_name(struct random *random)
{
    static const char *const names[] = { "a", "b", "c", "d.o", "keep.o", "build", "x.log",
        "sub", "Z", "na me", "new\nline", "\xff\xfe", "\xc3\xa9", "tmp", ".hidden", "a-", "mod",
        "[x]", "\"q\"", "back\\slash" };

    return names[below(random, ARRAY_LEN(names))];
}

static inline int by_name(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* Names in `dir` of this type, in an order that depends only on the seed. */
static inline size_t list(int dir, mode_t type, char found[static 64][256])
{
    size_t n = 0;
    DIR *stream = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

    CHECK(stream);
    for (struct dirent *item; n < 64 && (item = readdir(stream));) {
        struct stat st;
        if (item->d_name[0] == '.' && (!item->d_name[1] || strcmp(item->d_name, "..") == 0 ||
                                              strcmp(item->d_name, ".git") == 0))
            continue;
        CHECK_EQ(fstatat(dir, item->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
        if ((st.st_mode & S_IFMT) == type)
            (void)snprintf(found[n++], 256, "%s", item->d_name);
    }
    (void)closedir(stream);
    qsort(found, n, 256, by_name);
    return n;
}

/* A directory somewhere below `top`, open. */
static inline int pick_dir(struct random *random, int top)
{
    static char found[64][256];
    int dir = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (;;) {
        CHECK(dir >= 0);
        size_t n = list(dir, S_IFDIR, found);
        if (n == 0 || below(random, 3) == 0)
            return dir;
        int next = openat(dir, found[below(random, n)], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fd_close(dir);
        dir = next;
    }
}

/* An entry of this type in `dir`; a missing name if there is none. */
static inline const char *pick(struct random *random, int dir, mode_t type)
{
    static char found[64][256];
    size_t n = list(dir, type, found);

    return n > 0 ? found[below(random, n)] : "no such name";
}

static inline void put_text(int dir, const char *name, const char *text, int flags)
{
    AUTO(fd_close)
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0644);

    if (fd >= 0) /* if a directory or a link has the name, nothing is done */
        CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

static inline void put_file(struct random *random, int dir, const char *name)
{
    char text[40];

    (void)snprintf(text, sizeof(text), "%u\n", below(random, 1000));
    put_text(dir, name, text, below(random, 3) ? O_TRUNC : O_APPEND);
}

/* tree_remove() moves directories, which an overlay forbids. */
static inline void remove_tree(int dir, const char *name)
{
    AUTO(fd_close) int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub < 0) {
        (void)unlinkat(dir, name, 0);
        return;
    }
    DIR *stream = fdopendir(openat(sub, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK(stream);
    for (struct dirent *item; (item = readdir(stream));) {
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            remove_tree(sub, item->d_name);
    }
    (void)closedir(stream);
    CHECK_EQ(unlinkat(dir, name, AT_REMOVEDIR), 0);
}

static inline void put_dir(struct random *random, int dir, const char *name)
{
    (void)mkdirat(dir, name, 0755);
    AUTO(fd_close) int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub < 0)
        return;
    for (unsigned i = below(random, 4); i > 0; i--)
        put_file(random, sub, pick_name(random));
    if (below(random, 3) == 0)
        put_dir(random, sub, pick_name(random));
}

/* A committed directory cannot be renamed (EXDEV), so mv copies it. */
static inline void move(int from, const char *name, int to, const char *new_name)
{
    char source[300], target[300];
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        (void)snprintf(source, sizeof(source), "/proc/self/fd/%d/%s", from, name);
        (void)snprintf(target, sizeof(target), "/proc/self/fd/%d/%s", to, new_name);
        (void)fcntl(from, F_SETFD, 0);
        (void)fcntl(to, F_SETFD, 0);
        (void)close(2); /* into itself, or over a directory: it may be refused */
        execlp("mv", "mv", "-fT", "--", source, target, (char *)NULL);
        _exit(127);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
}

static inline void edit_rules(struct random *random, int dir)
{
    static const char *const rules[] = { "*.o", "build/", "!keep.o", "/a", "sub/*", "!sub/b",
        "**/c", "tmp", "*", "!*/", "!.gitignore", "b/**", "#x", "\\!x", "a/b", "Z/",
        "[[:lower:]]", "!a", "na me ", "\\[x]", "!*.log" };
    unsigned what = below(random, 12);

    if (what == 0) {
        remove_tree(dir, ".gitignore");
        (void)symlinkat("a", dir, ".gitignore");
    } else if (what == 1) {
        remove_tree(dir, ".gitignore");
        (void)mkdirat(dir, ".gitignore", 0755);
    } else if (what == 2) {
        remove_tree(dir, ".gitignore");
    } else {
        for (unsigned i = below(random, 3) + 1; i > 0; i--) {
            char line[40];
            (void)snprintf(line, sizeof(line), "%s\n", rules[below(random, ARRAY_LEN(rules))]);
            put_text(dir, ".gitignore", line, O_APPEND);
        }
    }
}

static inline void toggle_executable(int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        CHECK_EQ(fchmodat(dir, name, (st.st_mode ^ 0111) & 0777, 0), 0);
}

/*
 * To a directory or to a missing name, never in a circle: git then gives up on what is behind
 * it.
 */
static inline void replace_by_link(struct random *random, int dir, const char *name)
{
    char copy[256];

    (void)snprintf(copy, sizeof(copy), "%s", name);
    remove_tree(dir, copy);
    (void)symlinkat(below(random, 2) ? pick(random, dir, S_IFDIR) : "/nonexistent", dir, copy);
}

/* One edit somewhere below `top`. */
static inline void edit(struct random *random, int top)
{
    AUTO(fd_close) int dir = pick_dir(random, top);
    AUTO(fd_close) int other = pick_dir(random, top);
    char name[256];

    switch (below(random, 20)) {
    case 0:
    case 1:
        put_file(random, dir, pick_name(random));
        break;
    case 2:
        put_file(random, dir, pick(random, dir, S_IFREG));
        break;
    case 3:
        (void)unlinkat(dir, pick(random, dir, S_IFREG), 0);
        break;
    case 4:
        move(dir, pick(random, dir, S_IFREG), other, pick_name(random));
        break;
    case 5:
        move(dir, pick(random, dir, S_IFDIR), other, pick_name(random));
        break;
    case 6:
        (void)snprintf(name, sizeof(name), "%s", pick(random, dir, S_IFREG));
        remove_tree(dir, name);
        put_dir(random, dir, name);
        break;
    case 7:
        (void)snprintf(name, sizeof(name), "%s", pick(random, dir, S_IFDIR));
        remove_tree(dir, name);
        put_file(random, dir, name);
        break;
    case 8:
        toggle_executable(dir, pick(random, dir, S_IFREG));
        break;
    case 9:
        replace_by_link(random, dir, pick_name(random));
        break;
    case 10:
        replace_by_link(random, dir, pick(random, dir, S_IFDIR));
        break;
    case 11:
    case 12: /* created again: opaque */
        (void)snprintf(name, sizeof(name), "%s", pick(random, dir, S_IFDIR));
        remove_tree(dir, name);
        put_dir(random, dir, name);
        break;
    case 13:
    case 17:
        edit_rules(random, dir);
        break;
    case 14:
        (void)mkdirat(dir, pick_name(random), 0755);
        break;
    case 15:
        put_dir(random, dir, pick_name(random));
        break;
    case 18: /* removed one by one, what remains is merged */
        (void)unlinkat(other, pick(random, other, S_IFREG), 0);
        (void)unlinkat(dir, pick(random, dir, S_IFLNK), 0);
        break;
    case 16: /* copied up, otherwise unchanged */
        (void)utimensat(dir, pick(random, dir, S_IFREG), NULL, AT_SYMLINK_NOFOLLOW);
        (void)fchmodat(dir, pick(random, dir, S_IFDIR), 0750, 0);
        break;
    default:
        remove_tree(dir, pick(random, dir, S_IFDIR));
        break;
    }
}
