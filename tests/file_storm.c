/*
 * file_storm.c - accesses a file of a living sandbox repeatedly, in every way, while a program
 * inside changes what the path means. tests/escape/24-swap-storm.sh starts it.
 *
 * usage: file_storm SANDBOX PATH CALLS
 *
 * PATH names a directory that has `file` whenever it is one. Prints what was read that is not
 * "inside\n", and at the end how many calls were made and how many of them succeeded.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/client/client.h"
#include "core/files/file_access.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long calls;
static unsigned long reached;

static int ask(struct file_access *access, enum file_op op, const char *path, int flags)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = op;
    request.path = path;
    request.other = path;
    request.flags = flags;
    request.mode = 0777;
    int r = file_access_ask(access, &request, &answer, NULL);
    calls++;
    reached += r == 0;
    return r < 0 ? r : answer.fd;
}

static void read_file(struct file_access *access, const char *path)
{
    char text[64] = "";

    AUTO(fd_close) int fd = ask(access, FILE_OPEN, path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return;
    if (strcmp(text, "inside\n") != 0)
        printf("READ %s\n", text);
}

static void storm(struct file_access *access, const char *path, unsigned long max)
{
    char file[PATH_MAX];
    char made[PATH_MAX];

    (void)snprintf(file, sizeof(file), "%s/file", path);
    (void)snprintf(made, sizeof(made), "%s/made", path);
    while (calls < max) {
        read_file(access, file);
        fd_close(ask(access, FILE_OPEN, made, O_WRONLY | O_CREAT));
        (void)ask(access, FILE_STAT, made, 0);
        (void)ask(access, FILE_SET_MODE, path, 0);
        fd_close(ask(access, FILE_OPEN, path, O_RDONLY | O_DIRECTORY));
        (void)ask(access, FILE_REMOVE, made, 0);
        (void)ask(access, FILE_MAKE_DIR, made, 0);
        (void)ask(access, FILE_REMOVE_DIR, made, 0);
    }
}

int main(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct file_access access = FILE_ACCESS_INIT;

    if (argc != 4)
        return 2;
    if (client_file_access(argv[1], &access, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    storm(&access, argv[2], strtoul(argv[3], NULL, 10));
    file_access_close(&access);
    printf("CALLS %lu REACHED %lu\n", calls, reached);
    return 0;
}
