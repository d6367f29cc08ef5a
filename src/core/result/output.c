/* output.c - two captures and their files. */
#include "core/result/output.h"
#include "base/err.h"
#include "core/result/result.h"
#include "core/state/state.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define MOST_BEFORE 1000U /* times that a run was taken up again */

static void name_files(
        struct output *output, const struct carrel_run_result *result, bool is_old)
{
    char state[PATH_MAX];
    char key[STATE_KEY_MAX];
    struct stat st;

    state_run_key(result->task, result->run, key);
    if (state_path(state, sizeof(state), NULL) < 0 ||
            snprintf(output->dir, sizeof(output->dir), "%s/runs/%s", state, key) >=
                    (int)sizeof(output->dir)) {
        output->dir[0] = '\0';
        return;
    }
    for (unsigned i = 1; i < MOST_BEFORE; i++) {
        char suffix[16] = "";
        if (i > 1)
            (void)snprintf(suffix, sizeof(suffix), "-%u", i);
        (void)snprintf(output->out_path, PATH_MAX, "%s/stdout%s", output->dir, suffix);
        (void)snprintf(output->err_path, PATH_MAX, "%s/stderr%s", output->dir, suffix);
        if (!is_old || (lstat(output->out_path, &st) < 0 && lstat(output->err_path, &st) < 0))
            return;
    }
}

int output_open(struct output *output, const struct carrel_run_result *result, bool is_old,
        uint64_t file_max, struct carrel_error *err)
{
    name_files(output, result, is_old);
    bool has_dir = output->dir[0];
    int r = capture_init(
            &output->out, result->output_bytes, has_dir ? output->out_path : NULL, file_max);
    if (r == 0)
        r = capture_init(&output->err, result->output_bytes, has_dir ? output->err_path : NULL,
                file_max);
    return r < 0 ? err_set_errno(err, r, "output buffers") : 0;
}

void output_finish(struct output *output)
{
    capture_finish(&output->out);
    capture_finish(&output->err);
}

int output_keep(struct output *output, struct carrel_error *err)
{
    int r = capture_keep(&output->out);

    if (r == 0)
        r = capture_keep(&output->err);
    return r < 0 ? err_set_errno(err, r, "keep the run's output in '%s'", output->dir) : 0;
}

static char *file_of(const struct capture *capture)
{
    return capture->file >= 0 && capture->file_error == 0 ? strdup(capture->path) : NULL;
}

void output_take(const struct output *output, struct carrel_run_result *result)
{
    result->stdout_cut = capture_text(&output->out, &result->stdout_text);
    result->stderr_cut = capture_text(&output->err, &result->stderr_text);
    buf_add(&result->stderr_end, output->err.end, output->err.end_len);
    result->stdout_bytes = capture_bytes(&output->out);
    result->stderr_bytes = capture_bytes(&output->err);
    result->is_truncated =
            capture_is_truncated(&output->out) || capture_is_truncated(&output->err);
}

void output_name(const struct output *output, struct carrel_run_result *result)
{
    result->stdout_file = file_of(&output->out);
    result->stderr_file = file_of(&output->err);
}
