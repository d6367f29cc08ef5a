/* cleanup.c - sweeping every runtime. */
#include "core/cleanup.h"
#include "runtime/runtime.h"
#include <assert.h>
#include <errno.h>

int cleanup_run(struct cleanup *cleanup, struct carrel_error *err)
{
    struct runtime *runtime;
    int first = 0;

    *cleanup = (struct cleanup){ 0 };
    for (size_t i = 0; (runtime = runtime_at(i)); i++) {
        struct cleanup_row row = { .runtime = runtime_name(runtime) };
        int r = runtime_sweep(runtime, &row.error);
        if (r == -ENOTSUP)
            continue; /* one that leaves nothing */
        if (r < 0 && first == 0) {
            first = r;
            *err = row.error;
        }
        row.sandboxes = r < 0 ? 0 : (unsigned)r;
        cleanup->sandboxes += row.sandboxes;
        assert(cleanup->n_rows < CLEANUP_MAX_ROWS);
        cleanup->rows[cleanup->n_rows++] = row;
    }
    return first;
}
