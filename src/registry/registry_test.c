/* registry_test.c - entries as their owners and their clients see them. */
#include "base/buf.h"
#include "base/clock.h"
#include "registry/registry_fixture.h"
#include <sys/socket.h>

TEST(an_entry_is_found_by_id_by_name_and_by_how_its_id_begins)
{
    static const char *const words[] = { "S-abcdef0123456789", "site", "S-abcd", "S-abcdef01" };
    open_registry();
    struct registry_entry *entry = claim("S-abcdef0123456789", "site");

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        AUTO(registry_entry_free) struct registry_entry *found = NULL;
        CHECK_EQ(registry_find(&reg, words[i], &found, &err), 0);
        CHECK_STR(found->id, "S-abcdef0123456789");
        CHECK_STR(found->name, "site");
        CHECK(registry_is_alive(found));
    }
    let_go(entry);
    check_empty();
}

TEST(too_little_of_an_id_and_what_is_not_there_are_not_found)
{
    static const char *const words[] = { "S-abc", "S-abce", "", ".", "..", "a/b", "status",
        "names", "lock", "\033[2J" };
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *entry = claim("S-abcdef", "site");
    AUTO(registry_entry_free) struct registry_entry *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        CHECK_EQ(registry_find(&reg, words[i], &found, &err), -ENOENT);
        CHECK(!strchr(err.message, '\033'));
    }
    CHECK_EQ(registry_find(&reg, "siet", &found, &err), -ENOENT);
    CHECK_STR(err.message,
            "no living sandbox 'siet' (did you mean 'site'? 'carrel list' shows them)");
    CHECK(!found);
}

TEST(a_beginning_that_two_have_is_refused_until_one_is_dead)
{
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *first = claim("S-same-1", NULL);
    struct registry_entry *second = claim("S-same-2", NULL);
    AUTO(registry_entry_free) struct registry_entry *found = NULL;

    CHECK_EQ(registry_find(&reg, "S-same", &found, &err), -ENOTUNIQ);
    CHECK(strstr(err.message, "S-same-1") && strstr(err.message, "S-same-2"));
    registry_entry_free(second); /* as if its owner were killed */
    CHECK_EQ(registry_find(&reg, "S-same", &found, &err), 0);
    CHECK_STR(found->id, "S-same-1");
}

TEST(a_name_belongs_to_one_living_sandbox)
{
    const struct registry_request again = { .id = "S-second", .name = "site" };
    open_registry();
    struct registry_entry *entry = claim("S-first", "site");
    struct registry_entry *other = NULL;

    CHECK_EQ(registry_claim(&reg, &again, &other, &err), -EEXIST);
    CHECK_STR(err.message,
            "the living sandbox S-first is named 'site' (destroy it, or take another name)");
    CHECK_EQ(count_in("status"), 1);
    let_go(entry);
    let_go(claim("S-second", "site"));

    registry_entry_free(claim("S-third", "site")); /* dies without a word */
    CHECK_EQ(registry_find(&reg, "site", &other, &err), -ENOENT);
    let_go(claim("S-fourth", "site"));
    check_empty();
}

TEST(an_id_is_given_once_and_a_name_does_not_look_like_one)
{
    static const char *const names[] = { "", ".hidden", "..", "a/b", "S-first",
        "12345678901234567890123456789012345678901234567890123456789012345" };
    struct registry_entry *other = NULL;
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *entry = claim("S-first", NULL);

    const struct registry_request again = { .id = "S-first" };
    CHECK_EQ(registry_claim(&reg, &again, &other, &err), -EEXIST);
    CHECK(registry_is_alive(entry));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct registry_request request = { .id = "S-x", .name = names[i] };
        CHECK_EQ(registry_claim(&reg, &request, &other, &err), -EINVAL);
        const struct registry_request bad_id = { .id = names[i][0] == 'S' ? "x" : names[i] };
        CHECK_EQ(registry_claim(&reg, &bad_id, &other, &err), -EINVAL);
    }
    CHECK_EQ(count_in("status"), 1);
}

TEST(a_stale_handle_never_reaches_a_later_sandbox_of_the_same_name)
{
    AUTO(registry_entry_free) struct registry_entry *handle = NULL;
    open_registry();
    struct registry_entry *first = claim("S-first", "site");

    CHECK_EQ(registry_find(&reg, "site", &handle, &err), 0);
    let_go(first);
    AUTO(registry_entry_free) struct registry_entry *second = claim("S-second", "site");
    CHECK(!registry_is_alive(handle));
    CHECK_EQ(registry_connect(handle, 10000, &err), -ESRCH);
    CHECK_STR(err.message, "sandbox 'site' is gone");

    AUTO(registry_entry_free) struct registry_entry *fresh = NULL;
    CHECK_EQ(registry_find(&reg, "site", &fresh, &err), 0);
    CHECK_STR(fresh->id, "S-second");
}

TEST(a_name_that_is_anothers_by_now_stays_with_it)
{
    AUTO(registry_entry_free) struct registry_entry *found = NULL;
    open_registry();
    struct registry_entry *first = claim("S-first", "site");

    CHECK_EQ(unlinkat(reg.dir, "names/site", 0), 0); /* by another program */
    AUTO(registry_entry_free) struct registry_entry *second = claim("S-second", "site");
    let_go(first);
    CHECK_EQ(registry_find(&reg, "site", &found, &err), 0);
    CHECK_STR(found->id, "S-second");
}

TEST(what_its_owner_has_removed_is_dead_though_it_is_locked)
{
    AUTO(registry_entry_free) struct registry_entry *handle = NULL;
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *owner = claim("S-removed", "site");

    CHECK_EQ(registry_find(&reg, "site", &handle, &err), 0);
    CHECK(registry_is_alive(handle) && registry_is_alive(owner));
    CHECK_EQ(registry_remove(owner, &err), 0);
    CHECK(!registry_is_alive(handle) && !registry_is_alive(owner));
    CHECK_EQ(registry_connect(handle, 10000, &err), -ESRCH);
}

TEST(a_client_talks_to_the_owner_however_long_the_path)
{
    char byte = 0;
    open_registry();
    for (int i = 0; i < 4; i++) { /* no address of a socket has room for this */
        char deep[64];
        (void)memset(deep, 'd', sizeof(deep));
        deep[sizeof(deep) - 1] = '\0';
        CHECK_EQ(mkdirat(reg.dir, deep, 0700), 0);
        AUTO(fd_close) int dir = openat(reg.dir, deep, O_PATH | O_DIRECTORY | O_CLOEXEC);
        registry_close(reg);
        CHECK_EQ(registry_open_at(&reg, dir, &err), 0);
    }
    struct registry_entry *entry = claim("S-first", NULL);
    AUTO(registry_entry_free) struct registry_entry *client = NULL;
    CHECK_EQ(registry_find(&reg, "S-first", &client, &err), 0);

    struct stat st;
    CHECK_EQ(fstatat(client->dir, "sock", &st, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_EQ(st.st_mode & 0777, 0600);
    AUTO(fd_close) int ours = registry_connect(client, 10000, &err);
    CHECK(ours >= 0);
    AUTO(fd_close) int theirs = accept4(entry->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(theirs >= 0);
    CHECK_EQ(send(ours, "x", 1, 0), 1);
    CHECK_EQ(recv(theirs, &byte, 1, 0), 1);
    CHECK_EQ(byte, 'x');

    registry_entry_free(entry); /* killed: nothing was removed */
    CHECK_EQ(registry_connect(client, 10000, &err), -ESRCH);
}

TEST(an_owner_that_accepts_no_client_is_not_waited_for_forever)
{
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *entry = claim("S-first", NULL);
    AUTO(registry_entry_free) struct registry_entry *client = NULL;
    CHECK_EQ(registry_find(&reg, "S-first", &client, &err), 0);
    CHECK_EQ(listen(entry->listen_fd, 0), 0); /* room for one */
    AUTO(fd_close) int first = registry_connect(client, 10000, &err);
    CHECK(first >= 0);
    struct timeval most;
    socklen_t len = sizeof(most);
    CHECK_EQ(getsockopt(first, SOL_SOCKET, SO_SNDTIMEO, &most, &len), 0);
    CHECK_EQ(most.tv_sec, 0); /* what is sent later takes as long as it takes */
    CHECK_EQ(registry_connect(client, 20, &err), -ETIMEDOUT);
}

TEST(a_name_without_an_entry_does_not_block_a_claim)
{
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *found = NULL;

    CHECK_EQ(symlinkat("S-nobody", reg.dir, "names/site"), 0);
    CHECK_EQ(symlinkat("S-nobody", reg.dir, "names/other"), 0);
    CHECK_EQ(registry_find(&reg, "site", &found, &err), -ENOENT);
    let_go(claim("S-first", "site"));
    CHECK_EQ(registry_sweep(&reg, &err), 0);
    check_empty();
}

TEST(a_process_that_inherits_the_status_keeps_it_alive)
{
    int go[2];
    AUTO(registry_entry_free) struct registry_entry *client = NULL;
    open_registry();
    CHECK_EQ(pipe2(go, O_CLOEXEC), 0);
    struct registry_entry *entry = claim("S-first", NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        char byte;
        (void)close(go[1]);
        _exit(read(go[0], &byte, 1) != 0);
    }
    registry_entry_free(entry);
    CHECK_EQ(registry_find(&reg, "S-first", &client, &err), 0);
    CHECK(registry_is_alive(client));
    CHECK_EQ(registry_sweep(&reg, &err), 0);
    CHECK_EQ(close(go[1]), 0);
    CHECK_EQ(reap(pid), 0);
    CHECK(!registry_is_alive(client));
    CHECK_EQ(registry_sweep(&reg, &err), 1);
    check_empty();
}

/* A death is reported once, whichever process removes the entry: the caller must remove what
 * the owner kept elsewhere. */
TEST(a_death_is_told_once_and_a_new_directory_knows_nothing)
{
    open_registry();
    CHECK_EQ(registry_take_deaths(&reg, &err), 1);
    CHECK_EQ(registry_take_deaths(&reg, &err), 0);
    let_go(claim("S-first", "site"));
    CHECK_EQ(registry_take_deaths(&reg, &err), 0);

    registry_entry_free(claim("S-second", NULL));
    CHECK_EQ(registry_take_deaths(&reg, &err), 0); /* it is still there to be found */
    CHECK_EQ(registry_sweep(&reg, &err), 1);
    CHECK_EQ(registry_take_deaths(&reg, &err), 1);
    CHECK_EQ(registry_take_deaths(&reg, &err), 0);

    registry_entry_free(claim("S-third", "site"));
    AUTO(registry_entry_free) struct registry_entry *fourth = claim("S-fourth", "site");
    CHECK_EQ(registry_take_deaths(&reg, &err), 1);
    CHECK_STR(fourth->name, "site");
    CHECK_EQ(fourth->number, 4);
}

TEST(a_record_is_there_whole_or_not_at_all)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1024);
    AUTO(registry_entry_free) struct registry_entry *client = NULL;
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *entry = claim("S-first", NULL);

    CHECK_EQ(registry_find(&reg, "S-first", &client, &err), 0);
    CHECK_EQ(registry_get_record(client, &text, &err), 0);
    CHECK_EQ(text.len, 0);
    CHECK_EQ(registry_publish(entry, "{\"id\":1}", 8, &err), 0);
    CHECK_EQ(registry_get_record(client, &text, &err), 0);
    CHECK_STR(text.data, "{\"id\":1}");
    AUTO(free) char *huge = calloc(1, REGISTRY_RECORD_MAX + 1);
    CHECK_EQ(registry_publish(entry, huge, REGISTRY_RECORD_MAX + 1, &err), -EFBIG);
}

/* One writes pairs that belong together for as long as the other reads. */
TEST(a_reader_sees_a_status_whole)
{
    int go[2];
    AUTO(registry_entry_free) struct registry_entry *client = NULL;
    open_registry();
    CHECK_EQ(pipe2(go, O_CLOEXEC | O_NONBLOCK), 0);
    AUTO(registry_entry_free) struct registry_entry *entry = claim("S-first", "site");
    CHECK_EQ(registry_find(&reg, "site", &client, &err), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        char byte;
        (void)close(go[1]);
        for (uint32_t i = 0; read(go[0], &byte, 1) != 0; i++) {
            const struct registry_status status = { .state = REGISTRY_RUNNING,
                .lease_end_ns = i,
                .idle_ms = i,
                .idle_since_ns = i,
                .n_processes = i,
                .n_clients = i };
            CHECK_EQ(registry_set_status(entry, &status, &err), 0);
        }
        _exit(0);
    }
    for (int i = 0; i < 20000; i++) {
        struct registry_status status;
        CHECK_EQ(registry_get_status(client, &status, &err), 0);
        CHECK_EQ(status.lease_end_ns, status.n_clients);
        CHECK_EQ(status.idle_ms, status.n_processes);
        CHECK_EQ(status.idle_since_ns, status.n_clients);
    }
    CHECK_EQ(close(go[1]), 0);
    CHECK_EQ(reap(pid), 0);
}

static int check_order(void *context, const struct registry_view *view)
{
    int *n = context;
    char id[32];

    (void)snprintf(id, sizeof(id), "S-%d", 7919 * *n % 10007);
    CHECK_STR(view->id, id);
    CHECK_EQ(view->is_alive, *n % 10 != 0);
    CHECK(view->began_ns > 0 && view->began_ns <= clock_boot_ns());
    CHECK_STR(view->record, *n % 10 == 0 ? "" : "{}");
    ++*n;
    return 0;
}

TEST(five_hundred_entries_are_shown_in_the_order_in_which_they_came)
{
    int n = 0;
    open_registry();
    struct registry_entry *entries[500];
    for (int i = 0; i < 500; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "S-%d", 7919 * i % 10007);
        entries[i] = claim(id, NULL);
        /* Few enough descriptors for any limit: the owner's are the status and one more. */
        if (i % 10 != 0)
            CHECK_EQ(registry_publish(entries[i], "{}", 2, &err), 0);
        fd_close(fd_steal(&entries[i]->listen_fd));
        fd_close(fd_steal(&entries[i]->dir));
        fd_close(fd_steal(&entries[i]->top));
    }
    for (int i = 0; i < 500; i += 10)
        registry_entry_free(entries[i]);
    CHECK_EQ(registry_each(&reg, check_order, &n, &err), 0);
    CHECK_EQ(n, 500);
    CHECK_EQ(registry_sweep(&reg, &err), 50);
    CHECK_EQ(count_all().alive, 450);
    CHECK_EQ(count_all().dead, 0);
    for (int i = 0; i < 500; i++) {
        if (i % 10 != 0)
            registry_entry_free(entries[i]);
    }
}

static int stop_at_second(void *context, const struct registry_view *view)
{
    (void)view;
    return ++*(int *)context == 2 ? -ECANCELED : 0;
}

TEST(a_walk_stops_where_it_is_told_to)
{
    int n = 0;
    open_registry();
    AUTO(registry_entry_free) struct registry_entry *a = claim("S-a", NULL);
    AUTO(registry_entry_free) struct registry_entry *b = claim("S-b", NULL);
    AUTO(registry_entry_free) struct registry_entry *c = claim("S-c", NULL);

    CHECK_EQ(registry_each(&reg, stop_at_second, &n, &err), -ECANCELED);
    CHECK_EQ(n, 2);
}

TEST(a_directory_that_is_not_ours_alone_is_refused)
{
    struct registry other = REGISTRY_NONE;
    CHECK(test_mkdtemp(top));
    AUTO(fd_close) int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQ(symlinkat("/tmp", dir, "sandboxes"), 0);
    CHECK(registry_open_at(&other, dir, &err) < 0);
    CHECK_EQ(unlinkat(dir, "sandboxes", 0), 0);
    CHECK_EQ(mkdirat(dir, "sandboxes", 0700), 0);
    CHECK_EQ(fchmodat(dir, "sandboxes", 0750, 0), 0);
    CHECK_EQ(registry_open_at(&other, dir, &err), -EPERM);
    CHECK_EQ(fchmodat(dir, "sandboxes", 0700, 0), 0);
    if (geteuid() == 0) {
        CHECK_EQ(fchownat(dir, "sandboxes", 65534, 65534, 0), 0);
        CHECK_EQ(registry_open_at(&other, dir, &err), -EPERM);
        CHECK_EQ(fchownat(dir, "sandboxes", 0, 0, 0), 0);
    }
    CHECK_EQ(registry_open_at(&other, dir, &err), 0);
    registry_close(other);
}

TEST(an_ordinary_user_has_a_registry_too)
{
    open_registry_as_user();
    struct registry_entry *entry = claim("S-first", "site");
    AUTO(registry_entry_free) struct registry_entry *client = NULL;

    CHECK_EQ(registry_find(&reg, "site", &client, &err), 0);
    AUTO(fd_close) int sock = registry_connect(client, 10000, &err);
    CHECK(sock >= 0);
    let_go(entry);
    check_empty();
}
