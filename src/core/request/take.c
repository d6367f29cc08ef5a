/* take.c - see take.h. */
#include "core/request/take.h"
#include "base/options.h"

int take_run(
        struct taken_run *own, const struct carrel_run_options *given, struct carrel_error *err)
{
    *own = (struct taken_run){
        .options = CARREL_RUN_OPTIONS_INIT,
        .workspace = CARREL_WORKSPACE_OPTIONS_INIT,
    };
    int r = OPTIONS_TAKE(&own->options, given, CARREL_RUN_OPTIONS_INIT, err);
    if (r < 0 || !own->options.workspace)
        return r;
    r = OPTIONS_TAKE(
            &own->workspace, own->options.workspace, CARREL_WORKSPACE_OPTIONS_INIT, err);
    own->options.workspace = &own->workspace;
    return r;
}
