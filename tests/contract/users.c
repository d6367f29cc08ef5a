/* users.c - programs under other ids than the sandbox's ordinary one. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* The program's answer, or -errno of a refused start. */
static int ask_as(struct sandbox *box, uid_t uid, gid_t gid, const char *line, struct buf *out)
{
    const char *const argv[] = { "sh", "-c", line, NULL };
    struct process_spec spec = plain_process(argv);
    struct process process = PROCESS_INIT;

    spec.has_user = true;
    spec.uid = uid;
    spec.gid = gid;
    int r = sandbox_start(box, &spec, &process, &err);
    if (r < 0)
        return r;
    struct outcome got = finish(box, &process);
    buf_clear(out);
    buf_add(out, got.out.data, got.out.len);
    r = got.status;
    outcome_finish(got);
    return r;
}

/* Whether the subject can do it here. If not, the refusal must have one of its codes. */
static bool has_users(struct sandbox *box, struct buf *out)
{
    int r = ask_as(box, 4242, 4343, "true", out);

    if (r >= 0)
        return true;
    CHECK(r == -EPERM || r == -ENOTSUP);
    CHECK(strstr(err.message, runtime_name(subject)));
    CHECK(strstr(err.message, "user"));
    return false;
}

CONTRACT(a_program_runs_under_the_id_that_was_asked_for_or_is_refused)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    if (!has_users(box, &out)) {
        AUTO(outcome_finish) struct outcome still = run_shell(box, "echo works");
        CHECK_STR(still.out.data, "works\n"); /* a refusal does not change the sandbox */
        return;
    }
    CHECK_EQ(ask_as(box, 4242, 4343, "id -u; id -g; id -G", &out), 0);
    CHECK_STR(out.data, "4242\n4343\n4343\n");
    CHECK_EQ(ask_as(box, 0, 0, "id -u; id -g; grep -h ^CapEff /proc/self/status", &out), 0);
    CHECK_STR(out.data, "0\n0\nCapEff:\t0000000000000000\n");
    CHECK_EQ(ask_as(box, 65535, 65535, "id -u", &out), 0);
    CHECK_STR(out.data, "65535\n");
    CHECK_EQ(ask_as(box, 65536, 0, "id -u", &out), -EINVAL);
    CHECK_EQ(ask_as(box, 0, (gid_t)-1, "id -u", &out), -EINVAL);
    CHECK(strstr(err.message, "65535"));
}

CONTRACT(the_sandboxs_own_user_can_be_named)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    AUTO(outcome_finish) struct outcome plain = run_shell(box, "id -u; id -g");
    const struct sandbox_spec spec = plain_spec();
    uid_t uid;
    gid_t gid;

    runtime_identity(subject, &spec, &uid, &gid);
    CHECK_EQ(ask_as(box, uid, gid, "id -u; id -g", &out), 0);
    CHECK_STR(out.data, plain.out.data);
}

CONTRACT(permissions_of_files_count_for_the_program_that_has_the_id)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    if (!has_users(box, &out))
        return;
    AUTO(outcome_finish)
    struct outcome ours = run_shell(box, "umask 077; echo secret >/tmp/ours");
    CHECK_EQ(ours.status, 0);
    CHECK(ask_as(box, 4242, 4343, "cat /tmp/ours", &out) != 0);
    CHECK_EQ(ask_as(box, 4242, 4343, "umask 077; echo mine >/tmp/mine", &out), 0);
    AUTO(outcome_finish)
    struct outcome theirs = run_shell(box, "stat -c %u:%g /tmp/mine; cat /tmp/mine");
    CHECK_STR(theirs.out.data, "4242:4343\n");
    /* Uid 0 of the sandbox has no more rights than others: no capability comes with it. */
    CHECK(ask_as(box, 0, 0, "cat /tmp/ours", &out) != 0);
    CHECK(ask_as(box, 0, 0, "touch /etc/mine", &out) != 0);
    CHECK(ask_as(box, 0, 0, "touch /usr/mine", &out) != 0);
}

CONTRACT(a_terminal_belongs_to_the_user_of_its_program)
{
    const char *const argv[] = { "sh", "-c", "stat -c %u $(tty) && echo open >$(tty)", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    if (!has_users(box, &out))
        return;
    spec.has_tty = spec.has_user = true;
    spec.uid = 4242;
    spec.gid = 4343;
    AUTO(process_close) struct process process = start(box, &spec);
    buf_clear(&out);
    read_to_end(process.stdout_fd, &out);
    CHECK_STR(out.data, "4242\r\nopen\r\n");
}

CONTRACT(a_sandbox_whose_user_is_0_can_start_others_too)
{
    AUTO(sandbox_free) struct sandbox *box = NULL;
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    struct sandbox_spec spec = plain_spec();

    spec.has_user = true;
    if (create(&spec, &box) < 0)
        return; /* the ordinary user's sandbox is checked above */
    if (!has_users(box, &out))
        return;
    CHECK_EQ(ask_as(box, 4242, 4343, "id -u; id -g", &out), 0);
    CHECK_STR(out.data, "4242\n4343\n");
    AUTO(outcome_finish) struct outcome plain = run_shell(box, "id -u; id -g");
    CHECK_STR(plain.out.data, "0\n0\n");
}

CONTRACT(signals_and_the_end_reach_programs_of_other_users)
{
    const char *const argv[] = { "sleep", "1000", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    if (!has_users(box, &out))
        return;
    spec.has_user = true;
    spec.uid = spec.gid = 4242;
    AUTO(process_close) struct process first = start(box, &spec);
    AUTO(process_close) struct process second = start(box, &spec);
    CHECK_EQ(sandbox_signal(box, first.id, 15, &err), 0);
    CHECK_EQ(await_event(box).wait_status, 15);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK(is_readable(second.stdout_fd)); /* its end: no process holds the other side */
}

/* The caller's files belong to its programs, whatever other users there are. */
CONTRACT(with_subordinate_ids_there_are_other_users_or_it_is_refused)
{
    AUTO(sandbox_free) struct sandbox *box = NULL;
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    struct sandbox_spec spec = plain_spec();

    spec.ids = IDS_SUB;
    int r = create(&spec, &box);
    if (r < 0) {
        CHECK_EQ(r, -ENOTSUP);
        SKIP("%s", err.message);
    }
    CHECK_EQ(ask_as(box, 4242, 4343, "id -u; id -g; id -G", &out), 0);
    CHECK_STR(out.data, "4242\n4343\n4343\n");
    CHECK(ask_as(box, 4242, 4343, "kill -0 1", &out) != 0);
    AUTO(outcome_finish)
    struct outcome own =
            run_shell(box, "touch f && stat -c %u f | grep -qx $(id -u) && echo own");
    CHECK_STR(own.out.data, "own\n");
    r = ask_as(box, 70000, 70000, "true", &out);
    CHECK(r == -EINVAL || r == -EPERM);
}
