/* image_user.c - reads untrusted passwd and group files. */
#include "core/request/image_user.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "image/image.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_MAX_BYTES (1U << 20)

/* One field of a line; `at` moves past its colon. */
static void take_field(const char **at, const char *end, const char **field, size_t *len)
{
    const char *colon = memchr(*at, ':', (size_t)(end - *at));

    *field = *at;
    *len = (size_t)((colon ? colon : end) - *at);
    *at = colon ? colon + 1 : end;
}

static bool parse_id(const char *text, size_t len, unsigned *out)
{
    char number[16];
    uint64_t value;

    if (len == 0 || len >= sizeof(number))
        return false;
    memcpy(number, text, len);
    number[len] = '\0';
    if (str_parse_u64(number, &value) < 0 || value >= UINT32_MAX)
        return false;
    *out = (unsigned)value;
    return true;
}

bool image_user_in(const char *text, size_t len, const char *name, unsigned *id, unsigned *gid)
{
    const char *end = text + len;
    unsigned number = 0;
    bool is_number = parse_id(name, strlen(name), &number);

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;
        const char *at = text;
        const char *field[4];
        size_t n[4];
        unsigned ids[2] = { 0, 0 };
        for (size_t i = 0; i < ARRAY_LEN(field); i++)
            take_field(&at, stop, &field[i], &n[i]);
        text = newline ? newline + 1 : end;
        bool is_whole = n[0] > 0 && parse_id(field[2], n[2], &ids[0]) &&
                        (!gid || parse_id(field[3], n[3], &ids[1]));
        if (!is_whole)
            continue;
        if (is_number ? ids[0] == number
                      : strlen(name) == n[0] && memcmp(name, field[0], n[0]) == 0) {
            *id = ids[0];
            if (gid)
                *gid = ids[1];
            return true;
        }
    }
    return false;
}

/*
 * The file as a sandbox would see it, if no link is on its way: of the topmost layer that says
 * anything about it. What is hidden there, or is no file, is not there.
 */
static int read_file(const struct image *image, const char *dir, const char *name,
        struct buf *out, struct carrel_error *err)
{
    const struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    for (const char *const *path = image->trees; *path; path++) {
        struct stat st;
        AUTO(fd_close) int tree = open(*path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        AUTO(fd_close)
        int etc = tree < 0 ? -1
                           : openat(tree, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (etc < 0 && errno == ENOENT)
            continue;
        if (etc < 0)
            return 0;
        AUTO(fd_close) int fd = (int)syscall(SYS_openat2, etc, name, &how, sizeof(how));
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
            return 0;
        AUTO(free) char *text = malloc(FILE_MAX_BYTES);
        if (!text)
            return err_set_errno(err, -ENOMEM, "image");
        ssize_t n = fd_read_all(fd, text, FILE_MAX_BYTES);
        if (n < 0)
            return err_set_errno(err, (int)n, "read the image's /%s/%s", dir, name);
        buf_add(out, text, (size_t)n);
        return out->is_short ? err_set_errno(err, -ENOMEM, "image") : 0;
    }
    return 0;
}

static int find_in(const struct image *image, const char *file, const char *name, unsigned *id,
        unsigned *gid, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(FILE_MAX_BYTES);
    char shown[64];

    int r = read_file(image, "etc", file, &text, err);
    if (r < 0)
        return r;
    if (image_user_in(text.data ? text.data : "", text.len, name, id, gid))
        return 0;
    if (parse_id(name, strlen(name), id)) {
        if (gid)
            *gid = *id;
        return 0;
    }
    return err_set(err, -EINVAL, "image '%s': its user '%s' is not in its /etc/%s; use --user",
            image->name, str_escape(name, strlen(name), shown, sizeof(shown)), file);
}

int image_user_find(const struct image *image, const char *user, uid_t *uid, gid_t *gid,
        struct carrel_error *err)
{
    const char *colon = strchr(user, ':');
    unsigned ids[2];

    AUTO(free) char *name = strndup(user, colon ? (size_t)(colon - user) : strlen(user));
    if (!name)
        return err_set_errno(err, -ENOMEM, "image");
    int r = find_in(image, "passwd", name, &ids[0], &ids[1], err);
    if (r == 0 && colon && colon[1])
        r = find_in(image, "group", colon + 1, &ids[1], NULL, err);
    if (r < 0)
        return r;
    *uid = ids[0];
    *gid = ids[1];
    return 0;
}
