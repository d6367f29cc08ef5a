/*
 * Types into the caller's terminal: TIOCSTI puts characters into its input queue, and the shell
 * reads them after our exit. The kernel uses only the low 32 bits of the command, so a filter
 * that compares all 64 can be bypassed (CVE-2019-10063).
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* ENOTTY, EBADF, ENXIO, ENOENT: there is no terminal at all. EIO: dev.tty.legacy_tiocsti=0. */
static const int *const by_filter = REASONS(EPERM, ENOTTY, EBADF, ENXIO, ENOENT, EIO);

/* On every descriptor that may be the terminal; the worst outcome counts. */
static void type_into(const char *what, unsigned long command, const char *bytes)
{
    int fds[] = { 0, 1, 2, open("/dev/tty", O_RDWR | O_CLOEXEC) };
    int why = 0;

    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (syscall(SYS_ioctl, fds[i], command, bytes) >= 0) {
            succeeded(what, "on descriptor %d", fds[i]);
            return;
        }
        if (why == 0 || errno == EPERM)
            why = errno;
    }
    failed(what, why, by_filter);
}

static void attack(char **args)
{
    (void)args;
    type_into("TIOCSTI", TIOCSTI, "X");
    type_into("TIOCSTI-bit32", TIOCSTI | (1UL << 32), "Y");
    type_into("TIOCSTI-bit63", TIOCSTI | (1UL << 63), "Z");
    /* Subcode 3 only asks for the shift keys; 2 would paste the selection. */
    type_into("TIOCLINUX", TIOCLINUX, "\006");
    type_into("TIOCLINUX-bit32", TIOCLINUX | (1UL << 32), "\006");
}

static void control(char **args)
{
    struct winsize size;
    struct termios mode;
    (void)args;
    works("window-size", ioctl(0, TIOCGWINSZ, &size) == 0);
    works("terminal-mode", tcgetattr(0, &mode) == 0);
    works("set-terminal-mode", tcsetattr(0, TCSANOW, &mode) == 0);
    works("own-terminal", open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0);
}

/* The content of the terminal's input queue. */
static size_t count_input(int slave)
{
    struct termios raw;
    char bytes[64];
    size_t total = 0;
    ssize_t n;

    tcgetattr(slave, &raw);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(slave, TCSANOW, &raw);
    while ((n = read(slave, bytes, sizeof(bytes))) > 0)
        total += (size_t)n;
    return total;
}

static void become_foreground(int slave, char **args)
{
    setsid();
    if (ioctl(slave, TIOCSCTTY, 0) < 0)
        cannot("TIOCSCTTY: %s", strerror(errno));
    for (int fd = 0; fd <= 2; fd++)
        dup2(slave, fd);
    execvp(args[0], args);
    cannot("%s: %s", args[0], strerror(errno));
}

/*
 * On the host: runs a program on a new terminal, shows its output, then checks the input queue.
 */
static void host(char **args)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        cannot("pty: %s", strerror(errno));
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        cannot("%s: %s", ptsname(master), strerror(errno));
    struct termios quiet;
    tcgetattr(slave, &quiet);
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(slave, TCSANOW, &quiet);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        become_foreground(slave, args);
    int status = 0;
    bool is_over = false;
    struct pollfd readable = { .fd = master, .events = POLLIN };
    /* One more read after the exit: the last output is still in the terminal. */
    for (;;) {
        char bytes[4096];
        if (poll(&readable, 1, is_over ? 0 : 50) > 0) {
            ssize_t n = read(master, bytes, sizeof(bytes));
            if (n > 0)
                fwrite(bytes, 1, (size_t)n, stdout);
        } else if (is_over) {
            break;
        }
        is_over = is_over || waitpid(pid, &status, WNOHANG) == pid;
    }
    size_t typed = count_input(slave);
    if (typed)
        succeeded("host-terminal", "%zu characters typed", typed);
    else
        refused("host-terminal", "nothing typed");
    if (!WIFEXITED(status) || WEXITSTATUS(status) >= 99)
        cannot("the program on the terminal ended with status %d", status);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){
                    { "attack", attack }, { "control", control }, { "host", host }, { 0 } });
}
