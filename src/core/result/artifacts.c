/* artifacts.c - files named by time and hash. */
#include "core/result/artifacts.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JSON_MAX (256U << 20)
#define TEMPORARY ".new"

/* Whole or absent; not synced, as a run that failed should not wait for the disk. */
static int write_whole(const char *path, const struct buf *text, struct carrel_error *err)
{
    char temporary[PATH_MAX];

    (void)snprintf(temporary, sizeof(temporary), "%s" TEMPORARY, path);
    AUTO(fd_close)
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_all(fd, text->data, text->len);
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0 && fd >= 0)
        (void)unlink(temporary); /* the failure is what is reported */
    return r < 0 ? err_set_errno(err, r, "write '%s'", path) : 0;
}

/* The name sorts by time and says whether two are the same. */
static int store(const char *dir, const char *kind, const struct buf *text,
        struct artifact *artifact, struct carrel_error *err)
{
    struct timespec now;
    struct tm utc;
    char stamp[32];
    char path[PATH_MAX - sizeof(TEMPORARY)];

    if (text->is_short)
        return err_set_errno(err, -ENOMEM, "artifact");
    sha256_hex(text->data, text->len, artifact->sha256);
    artifact->bytes = text->len;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    (void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
    (void)snprintf(artifact->name, sizeof(artifact->name), "artifacts/%s-%.12s-%s.json", stamp,
            artifact->sha256, kind);
    int n = snprintf(path, sizeof(path), "%s/%s", dir, artifact->name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", dir);
    return write_whole(path, text, err);
}

static void write_code(const char *run, const struct artifact_code *code, struct buf *text)
{
    struct json json = { .out = text };
    size_t len = code->len < ARTIFACT_CODE_MAX ? code->len : ARTIFACT_CODE_MAX;

    json_object(&json, NULL);
    json_str(&json, "run", run);
    json_str(&json, "language", code->language);
    json_array(&json, "argv");
    for (const char *const *word = code->argv; *word; word++)
        json_str(&json, NULL, *word);
    json_end_array(&json);
    json_bytes(&json, "code", code->text, len);
    json_u64(&json, "code_bytes", code->len);
    json_end_object(&json);
    buf_add_str(text, "\n");
}

int artifacts_store(const char *dir, const char *run, const struct artifact_code *code,
        const char *result, struct artifact out[static ARTIFACTS_MAX], size_t *n,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf code_text = BUF_INIT(JSON_MAX);
    AUTO(buf_finish) struct buf result_text = BUF_INIT(JSON_MAX);
    char path[PATH_MAX];

    *n = 0;
    (void)snprintf(path, sizeof(path), "%s/artifacts", dir);
    if ((mkdir(dir, 0700) < 0 && errno != EEXIST) || (mkdir(path, 0700) < 0 && errno != EEXIST))
        return err_set_errno(err, -errno, "create '%s'", path);
    write_code(run, code, &code_text);
    buf_add_str(&result_text, result);
    buf_add_str(&result_text, "\n");
    int r = store(dir, "code", &code_text, &out[0], err);
    if (r == 0)
        r = store(dir, "result", &result_text, &out[1], err);
    if (r < 0)
        return err_wrap(err, r, "keep the run's artifacts");
    *n = 2;
    return 0;
}
