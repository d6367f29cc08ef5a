/* host.c - carrel host: the process that answers questions about the machine. */
#include "base/err.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "core/host/apart.h"
#include <errno.h>
#include <sys/socket.h>

int cmd_host(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    int type = 0;
    socklen_t len = sizeof(type);

    (void)argv;
    if (argc == 1 && getsockopt(APART_FD, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
            type == SOCK_STREAM)
        return apart_execute();
    (void)err_set(
            &err, -EINVAL, "host: this command is a part of 'carrel health' and 'carrel test'");
    return report_error(STATUS_FAILED, &err);
}
