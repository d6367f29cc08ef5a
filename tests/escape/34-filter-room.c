/*
 * Fills the room for compiled filters that all processes of the machine share: by filters on
 * sockets, and by seccomp filters of many processes.
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 4000, EACH = 7, PROCESSES = 60 };

static struct sock_filter code[LENGTH];
static const struct sock_fprog program = { .len = LENGTH, .filter = code };

static void write_program(void)
{
    for (size_t i = 0; i < LENGTH - 1; i++)
        code[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, (unsigned)i);
    code[LENGTH - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

struct option {
    const char *what;
    int family, type, name;
};

static const struct option options[] = {
    { "unix-filter", AF_UNIX, SOCK_DGRAM, SO_ATTACH_FILTER },
    { "udp-filter", AF_INET, SOCK_DGRAM, SO_ATTACH_FILTER },
    { "tcp-filter", AF_INET, SOCK_STREAM, SO_ATTACH_FILTER },
    { "reuseport-filter", AF_INET, SOCK_DGRAM, SO_ATTACH_REUSEPORT_CBPF },
};

static void attach(const struct option *option, unsigned long high)
{
    int sock = socket(option->family, option->type | SOCK_CLOEXEC, 0);
    int yes = 1;
    if (sock < 0)
        cannot("socket: %s", errno_name(errno));
    (void)setsockopt(sock, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
    struct sockaddr_in at = { .sin_family = AF_INET };
    if (option->name == SO_ATTACH_REUSEPORT_CBPF)
        (void)bind(sock, (struct sockaddr *)&at, sizeof(at));
    long r = syscall(SYS_setsockopt, sock, high | SOL_SOCKET, high | (unsigned)option->name,
            &program, sizeof(program));
    attempt(option->what, r, REASONS(ENOPROTOOPT));
    close(sock);
}

/* Adds as many as the kernel lets one process have; reports how many, and keeps them. */
static void add_filters(int report)
{
    unsigned char n = 0;
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    while (n < EACH && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
        n++;
    (void)!write(report, &n, 1);
    for (;;)
        pause();
}

static void many_processes(void)
{
    pid_t children[PROCESSES];
    size_t n_children = 0;
    size_t total = 0;
    int report[2];
    unsigned char n;
    if (pipe2(report, O_CLOEXEC) < 0)
        cannot("pipe: %s", errno_name(errno));
    for (; n_children < PROCESSES; n_children++) {
        pid_t pid = fork();
        if (pid == 0)
            add_filters(report[1]);
        if (pid < 0 || read(report[0], &n, 1) != 1)
            cannot("fork: %s", errno_name(errno));
        children[n_children] = pid;
        total += n;
    }
    for (size_t i = 0; i < n_children; i++) {
        (void)kill(children[i], SIGKILL);
        (void)waitpid(children[i], NULL, 0);
    }
    if (total > 200)
        succeeded("seccomp-filters", "%zu at once", total);
    else
        refused("seccomp-filters", "no more than %zu", total);
}

static void attack(char **args)
{
    (void)args;
    write_program();
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        attach(&options[i], 0);
    attach(&(struct option){ "high-bit", AF_UNIX, SOCK_DGRAM, SO_ATTACH_FILTER }, 1UL << 32);
    many_processes();
}

static void control(char **args)
{
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int yes = 1;
    (void)args;
    write_program();
    works("socket-option", setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
    works("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
    works("prctl", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
