/* files_import.c - unpacks a tar of any origin into a sandbox. */
#include "archive/tar_apart.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/files/files_far.h"
#include "core/files/files_tar.h"
#include "runtime/file_unpack.h"
#include <fcntl.h>

struct import {
    struct file_unpack base;
    struct file_access *access;
    struct tar_apart *tar;
};

static struct import *import_of(struct file_unpack *base)
{
    return container_of(base, struct import, base);
}

static int ask(struct file_unpack *base, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    return file_access_ask(import_of(base)->access, request, answer, err);
}

static int next(struct file_unpack *base, struct tar_entry *out, struct carrel_error *err)
{
    return tar_apart_next(import_of(base)->tar, out, err);
}

static ssize_t read_data(
        struct file_unpack *base, void *data, size_t size, struct carrel_error *err)
{
    return tar_apart_read(import_of(base)->tar, data, size, err);
}

int files_import(struct file_access *access, const char *path, int in,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err)
{
    static const struct file_unpack_ops ops = { .ask = ask, .next = next, .read = read_data };
    const struct tar_limits tar_limits = {
        .entries = limits && limits->entries ? limits->entries : FILES_MAX_ENTRIES,
        .bytes = limits && limits->bytes ? limits->bytes : FILES_MAX_BYTES,
        .depth = FILES_MAX_DEPTH,
    };
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;
    AUTO(tar_apart_free) struct tar_apart *tar = NULL;

    if (file_access_far(access)) {
        int far = tar_apart_open(in, &tar_limits, &tar, err);
        return far < 0 ? far : far_import(access, path, tar, count, err);
    }
    request.op = FILE_OPEN;
    request.path = path;
    request.flags = O_RDONLY | O_DIRECTORY;
    int r = file_access_ask(access, &request, &answer, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int top = answer.fd;
    r = tar_apart_open(in, &tar_limits, &tar, err);
    if (r < 0)
        return r;
    struct import import = {
        .base = { .ops = &ops, .top = top, .count = count },
        .access = access,
        .tar = tar,
    };
    return file_unpack(&import.base, err);
}
