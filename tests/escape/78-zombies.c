/* Leaves zombies that are never waited for: each keeps a pid. */
#include "attack.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Its child lives a moment longer than itself, so it is reparented to init. */
static int make_orphan(void)
{
    pid_t pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0) {
        if (fork() == 0) {
            while (getppid() != 1)
                (void)nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
        }
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    return 0;
}

static size_t count_zombies(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[300], text[512] = "";
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        const char *end = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
        n += end && end[1] && end[2] == 'Z';
        fclose(file);
    }
    if (dir)
        closedir(dir);
    return n;
}

/* attack N: many more than the sandbox may have processes. */
static void attack(char **args)
{
    size_t want = number(args[0]), made = 0;
    int why = 0;

    for (int tries = 0; made < want && tries < 200;) {
        if (make_orphan() == 0) {
            made++;
            continue;
        }
        why = errno; /* full; init may need a moment */
        tries++;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    size_t left = count_zombies();
    for (int i = 0; left > 8 && i < 100; i++) {
        (void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        left = count_zombies();
    }
    if (made < want)
        succeeded("zombies", "no process after %zu: %s, %zu zombies", made, errno_name(why),
                left);
    else if (left > 8)
        succeeded("zombies", "%zu of %zu left", left, made);
    else
        refused("zombies", "%zu made, %zu left", made, left);
}

static void control(char **args)
{
    int status = 0;
    (void)args;
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    works("own-child", waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
}

/* Bare, as pid 1 of a pid namespace: an init that starts one program and reaps nothing. */
static void lazy_init(char **args)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execv(args[0], args);
        _exit(99);
    }
    waitpid(pid, &status, 0);
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control },
                    { "lazy-init", lazy_init }, { 0 } });
}
