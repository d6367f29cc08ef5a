/* verdict.h - what a verification found, as the library shows it. */
#pragma once
#include "core/record/find.h"

struct verdict_view {
    struct journal_verdict own;
    char run[JOURNAL_RUN];
    char key_id[JOURNAL_KEY_ID];
    struct carrel_journal_verdict public; /* points to the above */
};

/* Fills the rest of the view after `own`. It must not be moved afterwards. */
void verdict_view_fill(struct verdict_view *view, const struct journal_ref *ref);
