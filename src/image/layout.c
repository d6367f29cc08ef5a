/* layout.c - files of a layout, verified by their digests. */
#include "image/layout.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NESTING 4 /* an index of indexes of ... */

/*
 * Opens a regular file below `dir`. It may contain links: old docker
 * archives have them from one layer to another. They are followed as long as they stay inside.
 */
static int open_inside(int dir, const char *path, struct carrel_error *err)
{
    const struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    char shown[200];
    struct stat st;

    (void)str_escape(path, strlen(path), shown, sizeof(shown));
    AUTO(fd_close) int fd = fd_open_how(dir, path, &how);
    if (fd < 0)
        return err_set_errno(err, fd, "open '%s'", shown);
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat '%s'", shown);
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "'%s' is not a regular file", shown);
    return fd_steal(&fd);
}

static int compare(
        const char *hex, const char *sha256, const char *path, struct carrel_error *err)
{
    char shown[200];

    if (!sha256[0] || strcmp(hex, sha256) == 0)
        return 0;
    return err_set(err, -EBADMSG, "'%s' is not what its digest says: sha256:%s",
            str_escape(path, strlen(path), shown, sizeof(shown)), hex);
}

int layout_open(int dir, const char *path, const char *sha256, struct carrel_error *err)
{
    AUTO(free) char *data = malloc(1U << 17);
    AUTO(fd_close) int fd = open_inside(dir, path, err);
    struct sha256 sha;
    char hex[65];
    ssize_t n;

    if (fd < 0)
        return fd;
    if (!data)
        return err_set_errno(err, -ENOMEM, "read a layout");
    if (sha256[0]) {
        sha256_init(&sha);
        while ((n = fd_read_all(fd, data, 1U << 17)) > 0)
            sha256_add(&sha, data, (size_t)n);
        if (n < 0)
            return err_set_errno(err, (int)n, "read '%s'", path);
        sha256_finish_hex(&sha, hex);
        int r = compare(hex, sha256, path, err);
        if (r < 0)
            return r;
        if (lseek(fd, 0, SEEK_SET) < 0)
            return err_set_errno(err, -errno, "seek");
    }
    return fd_steal(&fd);
}

/* A whole small file, verified as it lies in memory. `hex` is what it hashes to. */
static int read_text(int dir, const struct manifest_blob *blob, struct buf *out,
        char hex[static 65], struct carrel_error *err)
{
    AUTO(free) char *data = malloc(MANIFEST_MAX_BYTES + 1);
    AUTO(fd_close) int fd = open_inside(dir, blob->path, err);
    char shown[200];

    if (fd < 0)
        return fd;
    if (!data)
        return err_set_errno(err, -ENOMEM, "read a layout");
    ssize_t n = fd_read_all(fd, data, MANIFEST_MAX_BYTES + 1);
    (void)str_escape(blob->path, strlen(blob->path), shown, sizeof(shown));
    if (n < 0)
        return err_set_errno(err, (int)n, "read '%s'", shown);
    if (n > MANIFEST_MAX_BYTES)
        return err_set(err, -EFBIG, "'%s' is larger than 4M", shown);
    if (n == 0)
        return err_set(err, -EINVAL, "'%s' is empty", shown);
    sha256_hex(data, (size_t)n, hex);
    buf_clear(out);
    buf_add(out, data, (size_t)n);
    if (out->is_short)
        return err_set_errno(err, -ENOMEM, "read a layout");
    return compare(hex, blob->sha256, blob->path, err);
}

enum layout_kind layout_kind(int dir)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(MANIFEST_MAX_BYTES);
    AUTO(fd_close) int layout = open_inside(dir, "oci-layout", NULL);
    AUTO(fd_close) int index = open_inside(dir, "index.json", NULL);
    const struct manifest_blob docker = { .path = "manifest.json", .sha256 = "" };
    char hex[65];

    if (layout >= 0 && index >= 0)
        return LAYOUT_OCI;
    if (read_text(dir, &docker, &text, hex, NULL) == 0 &&
            manifest_is_docker(text.data, text.len))
        return LAYOUT_DOCKER;
    return LAYOUT_NONE;
}

/* From index.json down to a manifest; its digest in `hex`, its text in `text`. */
static int find_manifest(int dir, const char *tag, struct arena *arena, struct buf *text,
        char hex[static 65], struct carrel_error *err)
{
    struct manifest_choice choice = {
        .blob = { .path = "index.json", .sha256 = "" },
        .kind = MANIFEST_INDEX,
    };
    char shown[200];

    for (int depth = 0;; depth++) {
        const char *path = choice.blob.path;
        int r = read_text(dir, &choice.blob, text, hex, err);
        if (r < 0 || choice.kind == MANIFEST_IMAGE)
            return r;
        if (depth == MAX_NESTING)
            return err_set(err, -EINVAL, "an index lists an index lists an index ...");
        r = manifest_choose(
                arena, text->data, text->len, depth == 0 ? tag : NULL, &choice, err);
        if (r < 0)
            return err_wrap(
                    err, r, "'%s'", str_escape(path, strlen(path), shown, sizeof(shown)));
    }
}

static const char *digest_text(struct arena *arena, const char *hex)
{
    char text[80];

    (void)snprintf(text, sizeof(text), "sha256:%.64s", hex);
    return arena_copy(arena, text, strlen(text));
}

static int find_parts(int dir, enum layout_kind kind, const char *tag, struct arena *arena,
        struct manifest *manifest, struct layout *out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(MANIFEST_MAX_BYTES);
    const struct manifest_blob docker = { .path = "manifest.json", .sha256 = "" };
    char hex[65];
    int r;

    if (kind == LAYOUT_OCI) {
        r = find_manifest(dir, tag, arena, &text, hex, err);
        if (r < 0)
            return r;
        out->digest = digest_text(arena, hex);
        r = manifest_read(arena, text.data, text.len, manifest, err);
    } else {
        r = read_text(dir, &docker, &text, hex, err);
        if (r == 0)
            r = manifest_read_docker(arena, text.data, text.len, tag, manifest, err);
    }
    return r < 0 ? err_wrap(err, r, "manifest") : 0;
}

int layout_read(int dir, enum layout_kind kind, const char *tag, struct arena *arena,
        struct layout *out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(MANIFEST_MAX_BYTES);
    AUTO(free) struct manifest *manifest = calloc(1, sizeof(*manifest));
    char hex[65];

    if (!manifest)
        return err_set_errno(err, -ENOMEM, "read a layout");
    int r = find_parts(dir, kind, tag, arena, manifest, out, err);
    if (r < 0)
        return r;
    if (manifest->n_layers == 0)
        return err_set(err, -EINVAL, "manifest: it lists no layers");
    r = read_text(dir, &manifest->config, &text, hex, err);
    if (r == 0)
        r = manifest_read_config(arena, text.data, text.len, manifest->n_layers, &out->settings,
                out->diff_ids, err);
    if (r < 0)
        return r;
    if (kind == LAYOUT_DOCKER)
        out->digest = digest_text(arena, hex);
    if (!out->digest)
        return err_set_errno(err, -ENOMEM, "read a layout");
    out->n_layers = manifest->n_layers;
    for (size_t i = 0; i < out->n_layers; i++) {
        out->paths[i] = manifest->layers[i].path;
        out->sha256[i] = manifest->layers[i].sha256;
    }
    return 0;
}
