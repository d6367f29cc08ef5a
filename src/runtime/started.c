/* started.c - a short array in no order. */
#include "runtime/started.h"
#include "base/err.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int started_reserve(struct started *started, struct carrel_error *err)
{
    if (started->n < started->size)
        return 0;
    size_t size = started->size ? started->size * 2 : 8;
    struct started_one *all = reallocarray(started->all, size, sizeof(*all));
    if (!all)
        return err_set_errno(err, -ENOMEM, "remember a process");
    started->all = all;
    started->size = size;
    return 0;
}

void started_add(struct started *started, uint32_t id, pid_t pid)
{
    assert(started->n < started->size);
    started->all[started->n++] = (struct started_one){ .id = id, .pid = pid };
}

void started_remove(struct started *started, uint32_t id)
{
    for (size_t i = 0; i < started->n; i++)
        if (started->all[i].id == id)
            started->all[i--] = started->all[--started->n];
}

uint32_t started_find(const struct started *started, pid_t pid)
{
    for (size_t i = started->n; i-- > 0;)
        if (started->all[i].pid == pid)
            return started->all[i].id;
    return 0;
}

void started_finish(struct started *started)
{
    free(started->all);
    *started = (struct started){ 0 };
}
