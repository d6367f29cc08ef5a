/* names.c - a text of names as a list. */
#include "core/state/names.h"
#include "base/err.h"
#include <errno.h>

void names_finish(struct names names)
{
    buf_finish(names.text);
    free(names.list);
}

int names_split(struct names *names, struct carrel_error *err)
{
    size_t n = 0;

    for (size_t i = 0; i < names->text.len; i++)
        n += names->text.data[i] == '\0';
    names->list = calloc(n + 1, sizeof(*names->list));
    if (!names->list)
        return err_set_errno(err, -ENOMEM, "names");
    const char *at = names->text.data;
    for (; names->n < n; names->n++) {
        names->list[names->n] = at;
        at += strlen(at) + 1;
    }
    return 0;
}
