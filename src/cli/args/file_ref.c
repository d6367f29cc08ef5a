/* file_ref.c - which sandbox, which path. */
#include "cli/args/file_ref.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <string.h>

int file_ref_parse(const char *word, struct file_ref *out, struct carrel_error *err)
{
    struct file_ref ref = { .path = word };
    const char *colon = strchr(word, ':');
    size_t len = colon ? (size_t)(colon - word) : 0;
    char shown[128];

    if (!word[0])
        return err_set(err, -EINVAL, "a path is empty");
    if (len > 0 && !memchr(word, '/', len)) {
        if (len >= sizeof(ref.id))
            return err_set(err, -EINVAL, "sandbox '%s': the name is too long",
                    str_escape(word, len, shown, sizeof(shown)));
        memcpy(ref.id, word, len);
        ref.path = colon[1] ? colon + 1 : ".";
    }
    *out = ref;
    return 0;
}

int file_ref_inside(const char *word, struct file_ref *out, struct carrel_error *err)
{
    struct file_ref ref;
    char shown[128];

    int r = file_ref_parse(word, &ref, err);
    if (r == 0 && !ref.id[0])
        r = err_set(err, -EINVAL, "'%s' names no sandbox; expected SANDBOX:PATH",
                str_escape(word, strlen(word), shown, sizeof(shown)));
    if (r < 0)
        return r;
    *out = ref;
    return 0;
}
