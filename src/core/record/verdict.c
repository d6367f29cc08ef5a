/* verdict.c - the index of all runs, and the verification of journals. */
#include "core/record/verdict.h"
#include "base/err.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

typedef int visit_verdict(const struct carrel_journal_verdict *verdict, void *context);

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

void verdict_view_fill(struct verdict_view *view, const struct journal_ref *ref)
{
    const struct journal_verdict *own = &view->own;
    const struct journal_chain *chain = &own->chain;
    const bool is_file = !ref->run[0];

    (void)snprintf(view->run, sizeof(view->run), "%s", is_file ? chain->run : ref->run);
    view->key_id[0] = '\0';
    if (chain->signer[0])
        journal_key_id(chain->signer, view->key_id);
    view->public = (struct carrel_journal_verdict){
        .size = sizeof(view->public),
        .key = or_null(view->run),
        .is_file = is_file,
        .is_index = ref->is_index,
        .state = own->state,
        .n_records = own->records,
        .n_recovered = own->n_recovered,
        .torn_bytes = own->torn_bytes,
        .bad_record = own->bad_record,
        .why = or_null(own->why),
        .head = chain->seq > 0 ? chain->head : NULL,
        .seal = or_null(chain->seal),
        .signer = or_null(chain->signer),
        .key_id = or_null(view->key_id),
    };
}

int carrel_journal_each(int (*visit)(const struct carrel_journal_info *info, void *context),
        void *context, struct carrel_error *err)
{
    AUTO(journals_close) struct journals *journals = NULL;

    err = ERR_OR_IGNORED(err);
    int r = journals_open(&journals, err);
    for (size_t i = 0; r == 0 && i < journals->runs->n; i++) {
        const struct journal_run *run = &journals->runs->items[i];
        const struct carrel_journal_info info = {
            .size = sizeof(info),
            .key = run->run,
            .task = or_null(run->task),
            .state = journal_run_state(journals->dir, run),
            .began = or_null(run->began),
            .sealed = or_null(run->sealed),
            .reason = or_null(run->reason),
            .seal = or_null(run->seal),
            .n_records = run->records,
        };
        r = visit(&info, context);
    }
    if (r != 0)
        return r;
    const struct journal_verdict *index = &journals->runs->index;
    if (index->state != CARREL_RECORD_BAD)
        return 0;
    return err_set(err, -EBADMSG,
            "record %" PRIu64 " of the index is bad: %s; only what is before it is listed",
            index->bad_record, index->why);
}

/* One verification: what is verified, with which key, and what is done with the verdict. */
struct verification {
    const struct journals *journals;
    const struct journal_trust *trust; /* NULL: any key */
    visit_verdict *visit;
    void *context;
};

static int verify(const struct verification *v, const struct journal_ref *ref, const char *word,
        struct carrel_error *err)
{
    struct verdict_view view = { 0 };

    int r = journals_verify(ref, v->trust, &view.own, err);
    if (r < 0)
        return err_wrap(err, r, "verify '%s'", word);
    verdict_view_fill(&view, ref);
    return v->visit(&view.public, v->context);
}

static int verify_run(const struct verification *v, const char *run, struct carrel_error *err)
{
    AUTO(journal_ref_finish) struct journal_ref ref = { .fd = -1 };

    int r = journals_open_run(v->journals, run, &ref, err);
    return r < 0 ? r : verify(v, &ref, run, err);
}

/* It has nothing to verify. */
static int tell_pruned(
        const struct verification *v, const struct journal_run *run, struct carrel_error *err)
{
    struct journal_ref ref = { .fd = -1, .entry = run };

    (void)snprintf(ref.run, sizeof(ref.run), "%s", run->run);
    return verify(v, &ref, run->run, err);
}

static int verify_word(const struct verification *v, const char *word, struct carrel_error *err)
{
    AUTO(journal_ref_finish) struct journal_ref ref = { .fd = -1 };

    int r = journals_find(v->journals, word, &ref, err);
    return r < 0 ? r : verify(v, &ref, word, err);
}

/* Of the index itself there is a verdict since it was opened. */
static int verify_index(const struct verification *v)
{
    static const struct journal_ref ref = { .fd = -1, .is_index = true };
    struct verdict_view view = { .own = v->journals->runs->index };

    verdict_view_fill(&view, &ref);
    view.public.key = NULL; /* it names many */
    view.public.is_file = false;
    return v->visit(&view.public, v->context);
}

static int verify_all(const struct verification *v, struct carrel_error *err)
{
    const struct journal_runs *runs = v->journals->runs;
    AUTO(free) char(*strays)[JOURNAL_RUN] = NULL;
    size_t n_strays = 0;

    int r = verify_index(v);
    for (size_t i = 0; r == 0 && i < runs->n; i++)
        r = runs->items[i].is_pruned ? tell_pruned(v, &runs->items[i], err)
                                     : verify_run(v, runs->items[i].run, err);
    if (r == 0)
        r = journals_strays(v->journals, &strays, &n_strays, err);
    for (size_t i = 0; r == 0 && i < n_strays; i++)
        r = verify_run(v, strays[i], err);
    return r;
}

int carrel_journal_verify(const char *word, const char *key,
        int (*visit)(const struct carrel_journal_verdict *verdict, void *context),
        void *context, struct carrel_error *err)
{
    AUTO(journals_close) struct journals *journals = NULL;
    struct verification v = { .visit = visit, .context = context };
    struct journal_trust trust;

    err = ERR_OR_IGNORED(err);
    int r = journals_trust(key, &trust, err);
    v.trust = r > 0 ? &trust : NULL;
    if (r >= 0)
        r = journals_open(&journals, err);
    v.journals = journals;
    if (r < 0)
        return r;
    return word ? verify_word(&v, word, err) : verify_all(&v, err);
}
