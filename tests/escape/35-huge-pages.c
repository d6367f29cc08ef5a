/* Takes huge pages, which are in a pool of the machine that no memory limit counts. */
#include "attack.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { PAGE = 2 << 20 };

static long use(void *at)
{
    if (at == MAP_FAILED)
        return -1;
    memset(at, 'x', PAGE);
    return 0;
}

static long take_mapping(const void *arg)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
    (void)arg;
    return use(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0));
}

/* The file alone is a success: it can be made where no page is reserved yet. */
static long take_memfd(const void *arg)
{
    (void)arg;
    return memfd_create("attack", MFD_CLOEXEC | MFD_HUGETLB);
}

static long take_segment(const void *arg)
{
    (void)arg;
    int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | SHM_HUGETLB | 0600);
    if (id < 0)
        return -1;
    void *at = shmat(id, NULL, 0);
    (void)shmctl(id, IPC_RMID, NULL);
    return use(at);
}

static void attack(char **args)
{
    (void)args;
    attempt_in_child("mapping", take_mapping, NULL, NULL, REASONS(ENOMEM));
    attempt_in_child("memfd", take_memfd, NULL, NULL, REASONS(ENOMEM));
    attempt_in_child("segment", take_segment, NULL, NULL, REASONS(ENOMEM));
}

static void control(char **args)
{
    (void)args;
    works("mapping", use(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             -1, 0)) == 0);
    works("memfd", memfd_create("control", MFD_CLOEXEC) >= 0);
    int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    works("segment", id >= 0 && use(shmat(id, NULL, 0)) == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
