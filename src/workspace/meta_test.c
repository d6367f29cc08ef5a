#include "base/buf.h"
#include "base/err.h"
#include "harness.h"
#include "workspace/meta.h"
#include "workspace/record.h"
#include <errno.h>
#include <stdio.h>

static struct carrel_error err;

static struct workspace *sample(void)
{
    struct workspace *ws = record_new();

    CHECK(ws);
    (void)snprintf(ws->task, sizeof(ws->task), "T-1");
    (void)snprintf(ws->run, sizeof(ws->run), "R-1");
    (void)snprintf(ws->branch, sizeof(ws->branch), "task-T-1-run-R-1");
    (void)snprintf(ws->base, sizeof(ws->base), "0123456789012345678901234567890123456789");
    (void)snprintf(ws->applied, sizeof(ws->applied), "ab");
    (void)snprintf(ws->applied_tree, sizeof(ws->applied_tree), "cd");
    (void)snprintf(ws->note, sizeof(ws->note), "the machine stopped");
    ws->repo = strdup("/a\nb\\c/.git");
    ws->top = strdup("/a\nb\\c");
    ws->phase = WORKSPACE_FINISHED;
    ws->mode = WORKSPACE_COPY;
    ws->is_user_locked = true;
    ws->is_published = true;
    ws->n_other_commits = 3;
    ws->created_s = 1700000000;
    ws->created_ns = 999999999;
    return ws;
}

TEST(what_was_written_is_read_again)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(META_MAX);
    AUTO(buf_finish) struct buf again = BUF_INIT(META_MAX);
    AUTO(workspace_free) struct workspace *ws = sample();
    AUTO(workspace_free) struct workspace *back = record_new();

    meta_write(ws, &text);
    CHECK_EQ(meta_read(back, text.data, text.len, &err), 0);
    CHECK_STR(back->repo, "/a\nb\\c/.git");
    CHECK_STR(back->top, "/a\nb\\c");
    CHECK_STR(back->note, "the machine stopped");
    CHECK_STR(back->tip, "");
    CHECK_STR(back->applied, "ab");
    CHECK_STR(back->applied_tree, "cd");
    CHECK_EQ(back->phase, WORKSPACE_FINISHED);
    CHECK_EQ(back->mode, WORKSPACE_COPY);
    CHECK_EQ(back->n_other_commits, 3);
    CHECK(back->is_user_locked && back->is_published && !back->is_opened && !back->is_folder);
    CHECK_EQ(back->created_s, 1700000000);
    CHECK_EQ(back->created_ns, 999999999);
    meta_write(back, &again);
    CHECK_MEM(again.data, again.len, text.data, text.len);
}

TEST(reading_forgets_what_the_record_does_not_say)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(META_MAX);
    AUTO(workspace_free) struct workspace *ws = sample();
    AUTO(workspace_free) struct workspace *back = sample();

    ws->is_user_locked = false;
    free(ws->top);
    ws->top = NULL;
    ws->note[0] = '\0';
    meta_write(ws, &text);
    CHECK_EQ(meta_read(back, text.data, text.len, &err), 0);
    CHECK(!back->is_user_locked);
    CHECK_STR(back->top, NULL);
    CHECK_STR(back->note, "");
}

TEST(a_record_cut_short_anywhere_is_refused)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(META_MAX);
    AUTO(workspace_free) struct workspace *ws = sample();

    meta_write(ws, &text);
    for (size_t len = 0; len + 1 < text.len; len++) { /* the very last newline says nothing */
        AUTO(workspace_free) struct workspace *back = record_new();
        CHECK_EQ(meta_read(back, text.data, len, &err), -EBADMSG);
    }
}

TEST(a_key_of_a_later_version_is_passed_over)
{
    static const char text[] = "carrel-workspace 1\ntask T\nrun R\nrepo /x\nnew-key \\q\nend\n";
    AUTO(workspace_free) struct workspace *ws = record_new();

    CHECK_EQ(meta_read(ws, text, strlen(text), &err), 0);
    CHECK_STR(ws->repo, "/x");
}

TEST(nonsense_is_refused_with_a_reason)
{
    static const char *const texts[] = {
        "carrel-workspace 2\ntask T\nrun R\nrepo /x\nend\n",
        "carrel-workspace 1\ntask T\nrun R\nrepo /x\nphase dancing\nend\n",
        "carrel-workspace 1\ntask T\nrun R\nrepo /x\nmode none\nend\n",
        "carrel-workspace 1\ntask T\nrun R\nrepo /x\ncreated soon\nend\n",
        "carrel-workspace 1\ntask T\nrun R\nrepo /x\\\nend\n",
        ("carrel-workspace 1\ntask T\nrun R\nrepo /x\nbase "
         "01234567890123456789012345678901234567"
         "8901234567890123456789012345678901\nend\n"),
        "carrel-workspace 1\ntask\nend\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(workspace_free) struct workspace *ws = record_new();
        err.message[0] = '\0';
        CHECK_EQ(meta_read(ws, texts[i], strlen(texts[i]), &err), -EBADMSG);
        CHECK(err.message[0]);
    }
    AUTO(workspace_free) struct workspace *ws = record_new();
    CHECK_EQ(meta_read(ws, "carrel-workspace 1\0end\n", 23, &err), -EBADMSG);
}
