/*
 * pull.c - skopeo fetches, we import.
 *
 * skopeo knows registries, credentials and mirrors, and asks the user's files about them; it
 * runs as the user would run it. What it leaves is an OCI layout like any other: nothing in it
 * is believed before its digests have been compared.
 */
#include "core/image/pull.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "git/program.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMPLAINTS_MAX 4096

static int find_skopeo(char path[static PATH_MAX], struct carrel_error *err)
{
    const char *search = getenv("PATH");

    if (!search)
        search = "/usr/local/bin:/usr/bin:/bin";
    while (*search) {
        size_t len = strcspn(search, ":");
        if (search[0] == '/' && len < PATH_MAX - 8) {
            (void)snprintf(path, PATH_MAX, "%.*s/skopeo", (int)len, search);
            if (access(path, X_OK) == 0)
                return 0;
        }
        search += len + (search[len] == ':');
    }
    return err_set(err, -ENOENT,
            "cannot pull images: there is no skopeo in PATH; install the package skopeo");
}

static bool has_transport(const char *ref)
{
    return strncmp(ref, "docker://", 9) == 0 || strncmp(ref, "docker-daemon:", 14) == 0;
}

/*
 * What else skopeo reads lies on this machine. Files are for `import`, which needs no help with
 * them; containers-storage and ostree are other programs' state, into which skopeo would write
 * its locks, and as root also mount.
 */
static int refuse_transport(const char *ref, const char *shown, struct carrel_error *err)
{
    static const char *const local[] = { "atomic", "containers-storage", "dir",
        "docker-archive", "oci", "oci-archive", "ostree", "sif", "tarball" };
    size_t len = strcspn(ref, ":");

    if (!ref[len] || has_transport(ref))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(local); i++)
        if (strlen(local[i]) == len && strncmp(ref, local[i], len) == 0)
            return err_set(err, -EINVAL,
                    "'%s' is not in a registry: 'carrel image import' reads OCI layouts and "
                    "docker archives; where '%s' is a registry's repository, write docker://%s",
                    shown, local[i], shown);
    if (strstr(ref, "://"))
        return err_set(err, -EINVAL,
                "'%s' is not an image reference; expected docker://, docker-daemon: or neither",
                shown);
    return 0;
}

const char *pull_name(const struct pull *pull)
{
    if (pull->name)
        return pull->name;
    return strncmp(pull->ref, "docker://", 9) == 0 ? pull->ref + 9 : pull->ref;
}

/*
 * The reason out of a line such as
 *     time="..." level=fatal msg="reading manifest: unknown \"x\""
 * or the line as it is. What fits is enough.
 */
static const char *reason(const char *line, size_t len, char *out, size_t size)
{
    static const char key[] = "msg=\"";
    const char *begin = memmem(line, len, key, strlen(key));
    size_t at = 0;

    if (begin && line[len - 1] == '"') {
        begin += strlen(key);
        len = len - (size_t)(begin - line) - 1;
        line = begin;
    }
    for (size_t i = 0; i < len && at + 1 < size; i++) {
        if (line[i] == '\\' && i + 1 < len && line[i + 1] == '"')
            continue;
        out[at++] = line[i];
    }
    out[at] = '\0';
    return out;
}

/* The last line of its output, which has the reason. */
static int complain(const struct buf *complaints, int status, struct carrel_error *err)
{
    const char *text = complaints->data ? complaints->data : "";
    size_t len = complaints->len;
    char shown[400];

    while (len > 0 && text[len - 1] == '\n')
        len--;
    const char *line = len > 0 ? memrchr(text, '\n', len) : NULL;
    line = line ? line + 1 : text;
    len -= (size_t)(line - text);
    if (len == 0)
        return err_set(err, -EIO, "skopeo ended with status %d", status);
    return err_set(err, -EIO, "skopeo: %s", reason(line, len, shown, sizeof(shown)));
}

static int fetch(const struct pull *pull, const char *to, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf complaints = BUF_INIT(COMPLAINTS_MAX);
    AUTO(free) char *from = NULL;
    AUTO(free) char *target = NULL;
    char path[PATH_MAX];
    const char *argv[8];
    size_t n = 0;

    int r = find_skopeo(path, err);
    if (r < 0)
        return r;
    if (asprintf(&from, "%s%s", has_transport(pull->ref) ? "" : "docker://", pull->ref) < 0 ||
            asprintf(&target, "oci:%s:image", to) < 0)
        return err_set_errno(err, -ENOMEM, "pull");
    argv[n++] = "skopeo";
    argv[n++] = "copy";
    argv[n++] = "--quiet";
    if (pull->is_insecure)
        argv[n++] = "--src-tls-verify=false";
    argv[n++] = from;
    argv[n++] = target;
    argv[n] = NULL;
    const struct program program = {
        .path = path,
        .name = "skopeo copy",
        .argv = argv,
        .env = (const char *const *)environ,
        .cwd = "/",
        .input_fd = -1,
        .output_fd = -1,
        .complaints = &complaints,
    };
    r = program_run_to_end(&program, err);
    return r > 0 ? complain(&complaints, r, err) : r;
}

int pull_image(const char *state, const struct pull *pull, struct image_imported *out,
        struct carrel_error *err)
{
    AUTO(image_room_free) struct image_room *room = NULL;
    AUTO(free) char *layout = NULL;
    char shown[100];

    (void)str_escape(pull->ref, strlen(pull->ref), shown, sizeof(shown));
    int r = refuse_transport(pull->ref, shown, err);
    if (r < 0)
        return r;
    if (!image_is_name(pull->ref)) /* also: it is no option */
        return err_set(err, -EINVAL,
                "'%s' is not an image reference; expected one such as "
                "docker.io/library/debian:12",
                shown);
    if (!image_is_name(pull_name(pull)))
        return err_set(err, -EINVAL, "'%s' cannot be the name of an image", pull_name(pull));
    r = image_room_make(state, &room, err);
    if (r < 0)
        return r;
    if (asprintf(&layout, "%s/pulled", image_room_path(room)) < 0) {
        layout = NULL;
        return err_set_errno(err, -ENOMEM, "pull");
    }
    r = fetch(pull, layout, err);
    if (r == 0) {
        const struct image_import import = {
            .source = layout,
            .name = pull_name(pull),
            .called = pull->ref,
        };
        r = image_import(state, &import, out, err);
    }
    return r < 0 ? err_wrap(err, r, "pull '%s'", shown) : 0;
}
