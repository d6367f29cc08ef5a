/*
 * workspace_calls.c - measures the library's part of a workspace: making one, and committing
 * what changed in it.
 *
 * usage: workspace_calls REPO ROUNDS FILE...      FILEs are paths in the commit
 *
 * In each round the files are changed, and "create <microseconds>", "commit <microseconds>" and
 * "disk <bytes>" are printed.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "core/harvest/harvest.h"
#include "core/worktree/worktree.h"
#include "workspace/harvest/upper.h"
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct carrel_error err;

static int fail(const char *what)
{
    (void)fprintf(stderr, "workspace_calls: %s: %s\n", what, err.message);
    return 1;
}

/* Writes what a run that edits the file would leave in the upper directory. */
static int change(const struct workspace *ws, const char *file, int round)
{
    char path[4096];
    char text[64];

    int n = snprintf(path, sizeof(path), "upper/%s", file);
    if (n < 0 || n >= (int)sizeof(path))
        return -ENAMETOOLONG;
    for (char *slash = path + 6; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdirat(ws->dir, path, 0755) < 0 && errno != EEXIST)
            return -errno;
    }
    AUTO(fd_close)
    int fd = openat(ws->dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    n = snprintf(text, sizeof(text), "changed in round %d\n", round);
    return fd < 0 ? -errno : fd_write_all(fd, text, (size_t)n);
}

static int measure(struct runtime *runtime, const char *repo, char *const *files, int round)
{
    const struct carrel_workspace_options options = { .repo = repo };
    const struct sandbox_spec spec = { .id = "bench" };
    struct harvest harvest = { 0 };
    uint64_t bytes;
    uint64_t inodes;
    char run[32];

    (void)snprintf(run, sizeof(run), "B-%d-%d", (int)getpid(), round);
    const struct worktree_request request = {
        .options = &options, .runtime = runtime, .spec = &spec, .task = "bench", .run = run
    };
    AUTO(worktree_free) struct worktree *worktree = NULL;
    uint64_t began = clock_ns();
    if (worktree_open(&request, &worktree, &err) < 0)
        return fail("create");
    printf("create %" PRIu64 "\n", (clock_ns() - began) / 1000);
    if (upper_usage(worktree->ws->dir, UINT64_MAX, &bytes, &inodes, &err) < 0)
        return fail("disk");
    printf("disk %" PRIu64 "\n", bytes);

    for (; *files; files++)
        if (change(worktree->ws, *files, round) < 0)
            return fail("change");
    began = clock_ns();
    const struct harvest_bounds bounds = { .max_bytes = UINT64_MAX, .disk_bytes = UINT64_MAX };
    if (harvest_take(worktree, runtime, &bounds, &harvest, &err) < 0)
        return fail("commit");
    printf("commit %" PRIu64 "\n", (clock_ns() - began) / 1000);
    harvest_finish(&harvest);
    return 0; /* the workspace is not removed: see bench/workspace */
}

int main(int argc, char **argv)
{
    struct runtime *runtime;

    if (argc < 3)
        return 2;
    if (runtime_find("local", &runtime, &err) < 0)
        return fail("runtime");
    for (int i = 0; i < atoi(argv[2]); i++)
        if (measure(runtime, argv[1], argv + 3, i) != 0)
            return 1;
    return 0;
}
