/* entries.c - reading, making and erasing what an entry consists of. */
#include "registry/entries.h"
#include "base/err.h"
#include "base/path.h"
#include "base/tree.h"
#include "registry/guard.h"
#include "registry/status.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define NAME_PATH_MAX (sizeof("names/") + REGISTRY_WORD_MAX)

static const char *name_path(const char *name, char path[static NAME_PATH_MAX])
{
    (void)snprintf(path, NAME_PATH_MAX, "names/%.*s", REGISTRY_WORD_MAX, name);
    return path;
}

bool entry_is_word(const char *word)
{
    return path_is_name(word) && word[0] != '.' && strlen(word) <= REGISTRY_WORD_MAX;
}

void entry_names_finish(struct entry_names names)
{
    free(names.list);
}

static int add_name(struct entry_names *names, const char *name)
{
    if (names->n == names->room) {
        size_t room = names->room ? 2 * names->room : 64;
        void *list = reallocarray(names->list, room, sizeof(*names->list));
        if (!list)
            return -ENOMEM;
        names->list = list;
        names->room = room;
    }
    (void)stpcpy(names->list[names->n++], name);
    return 0;
}

static int add_all(DIR *dir, struct entry_names *names)
{
    for (;;) {
        errno = 0;
        const struct dirent *found = readdir(dir);
        if (!found)
            return -errno;
        int r = entry_is_word(found->d_name) ? add_name(names, found->d_name) : 0;
        if (r < 0)
            return r;
    }
}

int entry_names_read(
        int top, const char *path, struct entry_names *out, struct carrel_error *err)
{
    AUTO(entry_names_finish) struct entry_names names = { 0 };
    AUTO(fd_close)
    int fd = openat(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        return err_set_errno(err, -errno, "read '%s' of the living sandboxes", path);
    (void)fd_steal(&fd); /* closedir() closes it */
    int r = add_all(dir, &names);
    (void)closedir(dir); /* it was read only */
    if (r < 0)
        return err_set_errno(err, r, "read '%s' of the living sandboxes", path);
    *out = names;
    names = (struct entry_names){ 0 };
    return 0;
}

int entry_name_read(int top, const char *name, char id[static REGISTRY_WORD_MAX + 1])
{
    char path[NAME_PATH_MAX];

    ssize_t n = readlinkat(top, name_path(name, path), id, REGISTRY_WORD_MAX + 1);
    if (n < 0)
        return -errno;
    if (n > REGISTRY_WORD_MAX)
        return -EBADMSG;
    id[n] = '\0';
    return entry_is_word(id) ? 0 : -EBADMSG;
}

int entry_name_make(int top, const char *name, const char *id)
{
    char path[NAME_PATH_MAX];

    return symlinkat(id, top, name_path(name, path)) < 0 ? -errno : 0;
}

static int unlink_if_there(int top, const char *path, struct carrel_error *err)
{
    if (unlinkat(top, path, 0) == 0 || errno == ENOENT)
        return 0;
    return err_set_errno(err, -errno, "remove '%s' of the living sandboxes", path);
}

int entry_erase(int top, const char *id, const char *name, struct carrel_error *err)
{
    char of[REGISTRY_WORD_MAX + 1];
    char path[NAME_PATH_MAX];
    char status[STATUS_PATH_MAX];
    int r = 0;

    if (name && name[0] && entry_name_read(top, name, of) == 0 && strcmp(of, id) == 0)
        r = unlink_if_there(top, name_path(name, path), err);
    if (r == 0)
        r = tree_remove(top, id, err);
    /* Last: as long as it is there, a sweep knows that there is something to do. */
    return r < 0 ? r : unlink_if_there(top, status_path(id, status), err);
}

int entry_erase_dead(int top, const char *id, struct carrel_error *err)
{
    struct status_facts facts = { 0 };
    AUTO(fd_close) int fd = status_open(top, id);

    if (fd < 0 && fd != -ENOENT)
        return err_set_errno(err, fd, "open the status of sandbox '%s'", id);
    if (fd >= 0 && status_is_locked(fd))
        return 0;
    if (fd >= 0 && status_read(fd, &facts) < 0)
        facts.name[0] = '\0'; /* its name, if it has one, is swept as a name without an owner */
    int r = fd >= 0 ? guard_note_death(top) : 0; /* first: this process may be killed, too */
    if (r < 0)
        return err_set_errno(err, r, "note the end of sandbox '%s'", id);
    r = entry_erase(top, id, facts.name, err);
    return r < 0 ? r : 1;
}
