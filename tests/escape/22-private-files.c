/* Reads what belongs to the host, to its user, or to another run. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* attack WHAT=PATH... */
static void attack(char **args)
{
    for (; *args; args++) {
        char what[64];
        char byte;
        const char *path = strchr(*args, '=');
        if (!path)
            cannot("'%s' is not WHAT=PATH", *args);
        snprintf(what, sizeof(what), "%.*s", (int)(path - *args), *args);
        int fd = open(path + 1, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
            invisible(what);
        else if (fd < 0)
            failed(what, errno, REASONS(EACCES, EPERM));
        else if (read(fd, &byte, 1) == 1 || errno == EISDIR)
            succeeded(what, "%s", path + 1);
        else
            refused(what, "empty");
    }
}

static void control(char **args)
{
    char byte;
    for (; *args; args++) {
        int fd = open(*args, O_RDONLY | O_CLOEXEC);
        works(*args, fd >= 0 && read(fd, &byte, 1) == 1);
    }
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
