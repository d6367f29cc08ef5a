/* keeper.c - carrel keeper: the process that keeps a sandbox, started by 'carrel create'. */
#include "base/auto.h"
#include "base/err.h"
#include "base/trim.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "core/keeper/launch.h"
#include "core/keeper/start.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

static int keep(void *arg)
{
    (void)arg;
    return keeper_execute();
}

/* On a stack of its own, so that it can give up the one of exec. */
int cmd_keeper(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    int type = 0;
    socklen_t len = sizeof(type);

    (void)argv;
    if (argc == 1 && fcntl(KEEPER_REQUEST_FD, F_GETFD) >= 0 &&
            getsockopt(KEEPER_REPORT_FD, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
            type == SOCK_SEQPACKET)
        return trim_call(keep, NULL);
    (void)err_set(&err, -EINVAL, "keeper: this command is a part of 'carrel create'");
    return report_error(STATUS_FAILED, &err);
}
