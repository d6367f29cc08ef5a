/* archive.c - carrel archive: the process that parses an archive, for libcarrel and carrel. */
#include "archive/job.h"
#include "base/err.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

/* See executable.h: what contains this file is the program. */
const char executable_is_carrel[] = "carrel";

int cmd_archive(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    int type = 0;
    socklen_t len = sizeof(type);

    (void)argv;
    if (argc == 1 && fcntl(JOB_SOURCE_FD, F_GETFD) >= 0 &&
            getsockopt(JOB_ANSWER_FD, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
            type == SOCK_STREAM)
        return job_execute();
    (void)err_set(&err, -EINVAL,
            "archive: this command is a part of 'carrel import' and 'carrel image import'");
    return report_error(STATUS_FAILED, &err);
}
