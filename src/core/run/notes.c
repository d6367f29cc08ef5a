/* notes.c - each note is one clause of one line. */
#include "core/run/notes.h"
#include "core/run/run.h"
#include "core/run/session.h"
#include "policy/policy.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void add(char *note, const char *fmt, ...)
{
    size_t at = strlen(note);
    va_list ap;

    if (at > 0 && at + 2 < RESULT_NOTE_MAX) {
        memcpy(note + at, "; ", 3);
        at += 2;
    }
    va_start(ap, fmt);
    int len = vsnprintf(note + at, RESULT_NOTE_MAX - at, fmt, ap);
    va_end(ap);
    if (len >= (int)(RESULT_NOTE_MAX - at)) /* it is cut: that there is more must be seen */
        memcpy(note + RESULT_NOTE_MAX - 4, "...", 4);
}

static void note_policy(const struct session *session, char *note)
{
    struct policy_file file;

    if (session->request->policy && policy_file_at(session->request->policy, 0, &file) &&
            file.authority == POLICY_OF_REPOSITORY)
        add(note,
                "the policy '%.300s' was found beside the code and is in force; it only "
                "tightens, and --policy none ignores it",
                file.name);
}

/* Which filters were not run on the files, since the repository's own configuration sets them.
 */
static void note_filters(const struct repo *repo, char *note)
{
    if (repo->filters)
        add(note,
                "git on the host does not run filters that '%.200s' sets, which an earlier "
                "program may have written: %.100s. If they are yours: git config --global "
                "filter.NAME.smudge COMMAND, likewise clean, process and required",
                repo->common_dir, repo->filters);
}

/* Which objects the run is shown that lie outside the repository's git dir. */
static void note_objects(const struct repo *repo, char *note)
{
    char list[RESULT_NOTE_MAX];
    size_t at = 0;

    for (size_t i = 1; repo->objects[i] && at < sizeof(list); i++)
        at += (size_t)snprintf(
                list + at, sizeof(list) - at, "%s%s", i > 1 ? ", " : "", repo->objects[i]);
    if (at > 0)
        add(note, "the run also sees the objects in %s", list);
}

void notes_add(struct session *session)
{
    const struct worktree *worktree = session->worktree;
    char *note = session->result->note;

    note_policy(session, note);
    if (!worktree)
        return;
    if (worktree->carried)
        add(note,
                "the run has copies of untracked files that '%.200s/.worktreeinclude' names: "
                "%s",
                worktree->repo->top, worktree->carried);
    if (worktree->ws->is_folder)
        return;
    note_filters(worktree->repo, note);
    if (!worktree->ws->is_cut) /* last: the longest */
        note_objects(worktree->repo, note);
}
