/* place.c - a place is what it is, wherever it was. */
#include "core/state/place.h"
#include "base/fd.h"
#include "base/path.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void place_finish(struct place place)
{
    fd_close(place.dir);
}

static int open_above(const char *path)
{
    char above[PATH_MAX];

    (void)snprintf(above, sizeof(above), "%s", path);
    char *slash = strrchr(above, '/');
    slash[slash == above] = '\0';
    return open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int place_open(const char *path, int fd, struct place *out)
{
    struct place place = PLACE_INIT;
    struct stat st;

    AUTO(fd_close)
    int own = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : open(path, O_PATH | O_CLOEXEC);
    if (own < 0 || fstat(own, &st) < 0)
        return -errno;
    int r = named_path(own, place.path, sizeof(place.path));
    if (r < 0)
        return r;
    place.id = named_id_of(&st);
    place.owner = st.st_uid;
    place.dir = S_ISDIR(st.st_mode) ? fd_steal(&own) : open_above(place.path);
    if (place.dir < 0)
        return -errno;
    *out = place;
    return 0;
}

bool place_is_in(const struct place *place, const char *path, const struct named_id *id)
{
    return (place->id.dev == id->dev && place->id.ino == id->ino) ||
           path_is_below(place->path, path) || named_is_below(place->dir, id);
}
