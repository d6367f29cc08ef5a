/* Reaches others through names that are not files: System V and POSIX IPC, abstract sockets. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const int *const by_namespace = REASONS(ENOENT, ECONNREFUSED, EPERM, ENOSYS, EACCES);

struct names {
    key_t key;
    char posix[64]; /* with its slash */
    struct sockaddr_un abstract;
    socklen_t abstract_len;
};

static void make_names(struct names *names, const char *word)
{
    unsigned long n = number(word);
    names->key = (key_t)n;
    snprintf(names->posix, sizeof(names->posix), "/carrel-escape-%lu", n);
    names->abstract = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int len = snprintf(names->abstract.sun_path + 1, sizeof(names->abstract.sun_path) - 1,
            "carrel-escape-%lu", n);
    names->abstract_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static void look(const char *what, long result)
{
    if (result < 0 && errno == ENOENT)
        invisible(what);
    else
        attempt(what, result, by_namespace);
}

static void attack(char **args)
{
    struct names n;
    make_names(&n, args[0]);
    look("sysv-shm", shmget(n.key, 0, 0));
    look("sysv-sem", semget(n.key, 0, 0));
    look("sysv-msg", msgget(n.key, 0));
    look("posix-mq", mq_open(n.posix, O_RDONLY));
    look("posix-shm", shm_open(n.posix, O_RDONLY, 0));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    look("abstract-socket", connect(fd, (struct sockaddr *)&n.abstract, n.abstract_len));
}

/* POSIX queues are not part of the promise: Landlock does not cover their file system. */
static void make_all(const struct names *n)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    works("sysv-shm", shmget(n->key, 4096, IPC_CREAT | 0600) >= 0);
    works("sysv-sem", semget(n->key, 1, IPC_CREAT | 0600) >= 0);
    works("sysv-msg", msgget(n->key, IPC_CREAT | 0600) >= 0);
    (void)mq_open(n->posix, O_CREAT | O_RDWR, 0600, NULL);
    works("posix-shm", shm_open(n->posix, O_CREAT | O_RDWR, 0600) >= 0);
    works("abstract-socket",
            bind(fd, (const struct sockaddr *)&n->abstract, n->abstract_len) == 0 &&
                    listen(fd, 8) == 0);
}

/* Creates under the same names and finds them again: inside this is allowed. */
static void control(char **args)
{
    struct names n;
    make_names(&n, args[0] ? args[0] : "4711");
    make_all(&n);
    works("find-sysv-shm", shmget(n.key, 0, 0) >= 0);
    works("find-posix-shm", shm_open(n.posix, O_RDONLY, 0) >= 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    works("find-socket", connect(fd, (struct sockaddr *)&n.abstract, n.abstract_len) == 0);
}

/* Holds everything until it is killed; `remove` removes the rest. */
static void hold(char **args)
{
    struct names n;
    make_names(&n, args[0]);
    make_all(&n);
    ready("%d", getpid());
    for (;;)
        pause();
}

static void remove_all(char **args)
{
    struct names n;
    make_names(&n, args[0]);
    (void)shmctl(shmget(n.key, 0, 0), IPC_RMID, NULL);
    (void)semctl(semget(n.key, 0, 0), 0, IPC_RMID);
    (void)msgctl(msgget(n.key, 0), IPC_RMID, NULL);
    (void)mq_unlink(n.posix);
    (void)shm_unlink(n.posix);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control },
                    { "hold", hold }, { "remove", remove_all }, { 0 } });
}
