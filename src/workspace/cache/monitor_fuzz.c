/* monitor_fuzz.c - an index and a command line that a run chose: any bytes get an answer, or
 * none. */
#include "base/buf.h"
#include "base/fd.h"
#include "fuzz.h"
#include "workspace/cache/monitor.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(int dir, const char *name, const uint8_t *data, size_t size)
{
    AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/carrel-monitor-fuzz-XXXXXX";
    AUTO(buf_finish) struct buf answer = BUF_INIT(4096);
    size_t first = size / 2;

    (void)monitor_helps((const char *)data, size);
    if (!mkdtemp(path))
        abort();
    AUTO(fd_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(dir, "index", data, first);
    put(dir, MONITOR_PRISTINE, data + first, size - first);
    const struct monitor monitor = { dir, dir, dir, dir, "token" };
    (void)monitor_list(&monitor, &answer);
    answer.len = 0;
    put(dir, "index", data, size);
    put(dir, MONITOR_PRISTINE, data, size);
    (void)monitor_list(&monitor, &answer);
    (void)unlinkat(dir, "index", 0);
    (void)unlinkat(dir, MONITOR_PRISTINE, 0);
    (void)rmdir(path);
    return 0;
}
