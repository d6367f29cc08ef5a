/*
 * Writes without end: lines, one line, or bytes that are not text; on stdout, stderr or both.
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char chunk[65536];

/* attack lines|line|binary */
static void attack(char **args)
{
    if (!args[0])
        cannot("which flood?");
    for (size_t i = 0; i < sizeof(chunk); i++)
        chunk[i] = strcmp(args[0], "lines") == 0  ? "y\n"[i % 2]
                   : strcmp(args[0], "line") == 0 ? 'y'
                                                  : (char)(i * 7);
    for (;;)
        for (int fd = 1; fd <= 2; fd++)
            if (write(fd, chunk, sizeof(chunk)) < 0)
                return; /* the reader has closed the stream */
}

/* Small enough to be kept whole. */
static void control(char **args)
{
    (void)args;
    for (int i = 0; i < 100; i++)
        works("line", true);
}

static bool has_ended(pid_t pid, int seconds)
{
    for (int i = 0; i < 20 * seconds; i++) {
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return true;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    }
    return false;
}

/* In which call of the kernel a process waits, to say why it has not ended. */
static void read_where(pid_t pid, char *where, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, where, size - 1);
    where[n < 0 ? 0 : n] = '\0';
    where[strcspn(where, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

/*
 * On the host: both streams of a program are one small pipe. The reader reads a little now and
 * then, so that both streams become writable, and then stops.
 */
static void stall(char **args)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0 || fcntl(fds[1], F_SETPIPE_SZ, 4096) < 0)
        cannot("pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        execvp(args[0], args);
        _exit(99);
    }
    close(fds[1]);
    for (int i = 0; i < 5; i++) {
        (void)nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
        if (read(fds[0], chunk, 4096) <= 0)
            cannot("the program wrote nothing");
    }
    if (has_ended(pid, 30)) {
        refused("stalled-reader", "the program has ended");
        return;
    }
    char where[128] = "";
    read_where(pid, where, sizeof(where));
    succeeded("stalled-reader", "the program has not ended; it waits in %s", where);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){
                    { "attack", attack }, { "control", control }, { "stall", stall }, { 0 } });
}
