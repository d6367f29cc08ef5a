/* find.c - resolves paths and names of journals. */
#include "core/record/find.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/state/state.h"
#include "journal/index.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int journals_path(char path[static PATH_MAX], struct carrel_error *err)
{
    int r = state_path(path, PATH_MAX, err);
    if (r == 0 && strlen(path) + sizeof("/runs") > PATH_MAX)
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", path);
    if (r == 0)
        (void)strcat(path, "/runs");
    return r;
}

void journals_close(struct journals *journals)
{
    if (!journals)
        return;
    journal_runs_free(journals->runs);
    fd_close(journals->dir);
    free(journals);
}

int journals_open(struct journals **out, struct carrel_error *err)
{
    AUTO(journals_close) struct journals *journals = calloc(1, sizeof(*journals));
    char path[PATH_MAX];

    if (!journals)
        return err_set_errno(err, -ENOMEM, "open journals");
    journals->dir = -1;
    int r = journals_path(path, err);
    if (r < 0)
        return r;
    r = journal_open_runs(path, err);
    journals->dir = r < 0 ? -1 : r;
    if (r < 0 && r != -ENOENT)
        return r;
    r = journal_runs_read(journals->dir, &journals->runs, err);
    if (r < 0)
        return err_wrap(err, r, "'%s'", path);
    *out = ptr_steal(&journals);
    return 0;
}

void journal_ref_finish(struct journal_ref ref)
{
    fd_close(ref.fd);
}

int journals_open_run(const struct journals *journals, const char *run, struct journal_ref *out,
        struct carrel_error *err)
{
    struct journal_ref ref = {
        .fd = journal_open_run(journals->dir, run, err),
        .entry = journal_runs_get(journals->runs, run),
    };

    if (ref.fd < 0 && (ref.fd != -ENOENT || !ref.entry))
        return ref.fd;
    if (ref.fd < 0)
        ref.fd = -1;
    (void)snprintf(ref.run, sizeof(ref.run), "%s", run);
    *out = ref;
    return 0;
}

static int open_file(const char *path, struct journal_ref *out, struct carrel_error *err)
{
    const char *slash = strrchr(path, '/');
    struct stat st;

    AUTO(fd_close) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "'%s' is not a regular file", path);
    *out = (struct journal_ref){
        .fd = fd_steal(&fd),
        .is_index = strcmp(slash ? slash + 1 : path, JOURNAL_INDEX) == 0,
    };
    return 0;
}

/* The only run whose id begins with `word`. Returns how many match. */
static size_t find_beginning(const struct journal_runs *runs, const char *word,
        const struct journal_run **found, struct buf *names)
{
    size_t n = 0;

    for (size_t i = runs->n; i-- > 0;) {
        if (strncmp(runs->items[i].run, word, strlen(word)) != 0)
            continue;
        *found = &runs->items[i];
        if (++n <= 4)
            buf_addf(names, "%s%s", n > 1 ? ", " : "", runs->items[i].run);
    }
    return n;
}

/* A run by its id, or by a unique prefix. -ENOENT: none. */
static int find_run(const struct journals *journals, const char *id, const char *shown,
        struct journal_ref *out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf names = BUF_INIT(4 * JOURNAL_RUN);
    const struct journal_run *found = NULL;

    if (!journal_is_run(id, strlen(id)))
        return -ENOENT;
    int r = journals_open_run(journals, id, out, err);
    if (r != -ENOENT && r != -EBADF) /* the second: there is no directory of runs */
        return r;
    size_t n = find_beginning(journals->runs, id, &found, &names);
    if (n == 0)
        return -ENOENT;
    if (n > 1)
        return err_set(err, -EINVAL, "%zu runs begin with '%s': %s%s", n, shown,
                names.data ? names.data : "", n > 4 ? ", ..." : "");
    return journals_open_run(journals, found->run, out, err);
}

int journals_find(const struct journals *journals, const char *word, struct journal_ref *out,
        struct carrel_error *err)
{
    char id[JOURNAL_RUN];
    char shown[100];

    if (word[0] == '/' || word[0] == '.')
        return open_file(word, out, err);
    (void)str_escape(word, strlen(word), shown, sizeof(shown));
    (void)snprintf(id, sizeof(id), "%.*s", JOURNAL_RUN - 1, word);
    for (char *slash = id; (slash = strchr(slash, '/'));)
        *slash = '+'; /* T/R is T+R on disk */
    int r = find_run(journals, id, shown, out, err);
    if (r != -ENOENT)
        return r;
    r = open_file(word, out, err);
    if (r != -ENOENT)
        return r;
    (void)err_set(err, r,
            "there is no run '%s' and no such file; 'carrel journal list' shows the runs",
            shown);
    return err_from(err, r, CARREL_FROM_CALLER);
}

int journals_verify(const struct journal_ref *ref, const struct journal_trust *trust,
        struct journal_verdict *out, struct carrel_error *err)
{
    AUTO(journals_close) struct journals *later = NULL;

    if (!ref->run[0]) {
        const struct journal_known known = { .is_index = ref->is_index, .trust = trust };
        return journal_verify(ref->fd, &known, out, err);
    }
    int r = journal_verify_run(ref->fd, ref->run, ref->entry, trust, out, err);
    if (r < 0 || out->state != CARREL_RECORD_UNSEALED || !out->chain.is_sealed)
        return r;
    /* A seal that is not in the index: perhaps the run has ended since the index was read. */
    r = journals_open(&later, err);
    if (r < 0)
        return r;
    return journal_verify_run(
            ref->fd, ref->run, journal_runs_get(later->runs, ref->run), trust, out, err);
}

int journals_strays(const struct journals *journals, char (**out)[JOURNAL_RUN], size_t *n,
        struct carrel_error *err)
{
    AUTO(free) char(*strays)[JOURNAL_RUN] = NULL;
    size_t n_strays = 0;

    *n = 0;
    *out = NULL;
    if (journals->dir < 0)
        return 0;
    AUTO(dir_close) DIR *dir = dir_open(journals->dir, ".");
    if (!dir)
        return err_set_errno(err, -errno, "read the directory of runs");
    for (const char *name; (name = dir_next(dir));) {
        if (journal_runs_get(journals->runs, name))
            continue;
        AUTO(fd_close) int journal = journal_open_run(journals->dir, name, NULL);
        if (journal < 0)
            continue; /* a directory without a journal is not a run */
        void *more = reallocarray(strays, n_strays + 1, sizeof(*strays));
        if (!more)
            return err_set_errno(err, -ENOMEM, "read the directory of runs");
        strays = more;
        (void)snprintf(strays[n_strays++], JOURNAL_RUN, "%.*s", JOURNAL_RUN - 1, name);
    }
    *out = ptr_steal(&strays);
    *n = n_strays;
    return 0;
}
