/* The operations, on a directory that plays the sandbox: it is the root of all paths inside. */
#include "base/err.h"
#include "base/fd.h"
#include "core/files/files.h"
#include "core/files/files_watch.h"
#include "file_box.h"
#include "files/data.h"
#include "files/walk.h"
#include "harness.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>

static int copy_out(const char *from, const char *name, struct files_count *count)
{
    const struct files_end source = { .access = &box_access, .path = from };
    const struct files_end target = { .path = out_path(name) };

    return files_copy(&source, &target, NULL, count, &err);
}

static int copy_in(const char *name, const char *to, struct files_count *count)
{
    const struct files_end source = { .path = out_path(name) };
    const struct files_end target = { .access = &box_access, .path = to };

    return files_copy(&source, &target, NULL, count, &err);
}

FILES_TEST(a_file_goes_out_and_in_with_its_permissions_and_times)
{
    struct files_count count = { 0 };

    begin();
    (void)sh("cd $I; echo text >file; chmod 4751 file; touch -d @1000000000 file");
    CHECK_EQ(copy_out("/file", "copy", &count), 0);
    CHECK_STR(sh("cat $O/copy; stat -c '%a %Y' $O/copy"), "text\n751 1000000000\n");
    CHECK_EQ(count.files, 1);
    CHECK_EQ(count.bytes, 5);
    CHECK_EQ(copy_out("file", "", NULL), 0); /* into a directory, under its own name */
    CHECK_EQ(copy_in("copy", "/back", NULL), 0);
    CHECK_STR(sh("cd $I; cat $O/file back; stat -c '%a %Y' back; ls -A $I $O | grep -c '^\\.' "
                 "|| true"),
            "text\ntext\n751 1000000000\n0\n");
}

FILES_TEST(a_directory_is_copied_as_cp_and_docker_do)
{
    struct files_count count = { 0 };

    begin();
    (void)sh("cd $I; mkdir -p d/sub/deep d/empty; echo 1 >d/one; echo 2 >d/sub/deep/two;"
             "ln -s sub/deep/two d/link; chmod 500 d/sub/deep; touch -d @1000000000 d/sub;"
             "touch d/e; chmod 0 d/e; chmod 644 d/e");
    CHECK_EQ(copy_out("/d", "new", &count), 0); /* a new name: its contents are under it */
    CHECK_STR(sh("cd $O/new; cat one sub/deep/two link; stat -c '%a %Y' sub/deep sub | "
                 "sed 's/500 .*/500/'; ls"),
            "1\n2\n2\n500\n755 1000000000\ne\nempty\nlink\none\nsub\n");
    CHECK_EQ(count.files, 3);
    CHECK_EQ(count.directories, 4);
    CHECK_EQ(count.links, 1);
    (void)sh("mkdir $O/there");
    CHECK_EQ(copy_out("/d/", "there", NULL), 0);      /* into it */
    CHECK_EQ(copy_out("/d/sub/.", "there", NULL), 0); /* only what is in it */
    CHECK_STR(sh("cd $O/there; ls; ls d"), "d\ndeep\ne\nempty\nlink\none\nsub\n");
    CHECK_EQ(copy_out("/d", "there/d/one", NULL), -ENOTDIR);
    CHECK_EQ(copy_out("/d", "none/d", NULL), -ENOENT);
    CHECK_EQ(copy_out("/d/one", "none/", NULL), -ENOENT);
    CHECK_EQ(copy_out("/none", "none", NULL), -ENOENT);

    CHECK_EQ(copy_in("there", "/back", NULL), 0);
    CHECK_STR(sh("cd $I/back; find . | sort"),
            ".\n./d\n./d/e\n./d/empty\n./d/link\n./d/one\n./d/sub\n./d/sub/deep\n"
            "./d/sub/deep/two\n./deep\n./deep/two\n");
    CHECK_EQ(copy_in("there/d/one", "/back/d", NULL), 0); /* an existing file is replaced */
    CHECK_EQ(copy_in("there/d", "/back/d/one", NULL), -ENOTDIR);
    (void)sh("chmod -R u+w $I $O");
}

static int asks_left; /* until the sandbox ends, and its files are removed */

static int ask_dying(struct file_access *self, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *e)
{
    if (asks_left > 0) {
        int r = ask(self, request, answer, e);
        if (--asks_left == 0)
            (void)sh("rm -r $I/d");
        return r;
    }
    return err_set(e, -ESRCH, "the sandbox has ended");
}

static int see(const struct files_entry *entry, void *context, struct carrel_error *e)
{
    (void)entry;
    (void)context;
    (void)e;
    return 0;
}

TEST(what_went_with_the_sandbox_does_not_count_as_gone_before)
{
    const struct file_access_ops ops = { .ask = ask_dying };
    struct files_count count = { 0 };

    begin();
    box_access.ops = &ops;
    (void)sh("cd $I; mkdir d; echo 1 >d/a; echo 2 >d/b");
    asks_left = 1;
    CHECK_EQ(copy_out("/d", "d", &count), -ESRCH);
    CHECK_STR(err.message, "copy '/d': the sandbox has ended");
    (void)sh("cd $I; mkdir d; echo 1 >d/a; echo 2 >d/b");
    asks_left = 1;
    CHECK_EQ(files_list(&box_access, "/d", false, see, NULL, &err), -ESRCH);
    asks_left = 1;
    (void)sh("cd $I; mkdir d; echo 1 >d/a");
    AUTO(fd_close) int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK_EQ(files_read_whole(&box_access, "/d/a", out, NULL, &err), -ESRCH);
}

FILES_TEST(links_that_lead_out_of_the_tree_do_not_reach_the_host)
{
    struct files_count count = { 0 };

    begin();
    (void)sh("cd $I; mkdir -p d/sub; echo >d/f; ln -s /etc/passwd d/absolute;"
             "ln -s ../secret d/up; ln -s ../f d/sub/fine; ln -s ../../x d/sub/two;"
             "ln -s . d/self; ln -s self/../../x d/tricky; ln -s f d/good");
    CHECK_EQ(copy_out("/d", "d", &count), 0);
    CHECK_STR(sh("cd $O/d; find . -type l | sort"), "./good\n./self\n./sub/fine\n");
    CHECK_EQ(count.stray_links, 4);
    /* Into a sandbox all links are copied: there they refer to the sandbox. */
    (void)sh("ln -s /etc/passwd $O/d/abs");
    CHECK_EQ(copy_in("d", "/again", NULL), 0);
    CHECK_STR(sh("readlink $I/again/abs"), "/etc/passwd\n");
}

TEST(a_link_stays_inside_only_by_steps_that_cannot_be_links)
{
    CHECK(walk_is_link_inside("a", 0));
    CHECK(walk_is_link_inside("a/b/../c", 0) == false);
    CHECK(walk_is_link_inside("./a//b/", 0));
    CHECK(walk_is_link_inside("..", 1));
    CHECK(walk_is_link_inside("../..", 1) == false);
    CHECK(walk_is_link_inside("../../a", 2));
    CHECK(walk_is_link_inside("..", 0) == false);
    CHECK(walk_is_link_inside(".././..", 1) == false);
    CHECK(walk_is_link_inside("...", 0));
    CHECK(walk_is_link_inside("/", 9) == false);
    CHECK(walk_is_link_inside("", 0) == false);
}

FILES_TEST(no_link_on_the_host_is_followed)
{
    begin();
    (void)sh("cd $I; mkdir d; echo new >d/file; echo new >file;"
             "cd $O; mkdir -p real/d victim; echo old >victim/file; ln -s ../victim real/v;"
             "ln -s victim way; ln -s $O/victim/file real/d/file; ln -s victim/file name");
    CHECK_EQ(copy_out("/file", "name", NULL), -ELOOP);
    CHECK_EQ(copy_out("/file", "way", NULL), -ELOOP);
    CHECK_EQ(copy_out("/d", "real", NULL), 0); /* the existing link is replaced */
    CHECK_STR(sh("cd $O; cat victim/file real/d/file; test ! -L real/d/file"), "old\nnew\n");
    CHECK_EQ(copy_out("/file", "way/", NULL), -ELOOP);
    CHECK_EQ(copy_out("/file", "way/file", NULL), -ELOOP); /* nor one on the way */
    CHECK(strstr(err.message, "/way'; carrel does not follow links there"));
    CHECK_EQ(copy_out("/file", "way/more", NULL), -ELOOP);
    CHECK_EQ(copy_in("way/file", "/x", NULL), -ELOOP);
    CHECK_EQ(copy_in("name", "/x", NULL), -ELOOP);
    CHECK_STR(sh("cat $O/victim/*; test ! -e $I/x"), "old\n");
    /* A directory that is a link is an error, and not followed. */
    (void)sh("cd $O; mkdir second; ln -s ../victim second/d; echo old >victim/file");
    CHECK(copy_out("/d", "second", NULL) < 0);
    CHECK_STR(sh("cat $O/victim/file"), "old\n");
}

FILES_TEST(what_is_no_file_is_neither_copied_nor_replaced)
{
    struct files_count count = { 0 };

    begin();
    (void)sh("cd $I; mkdir d; mkfifo d/fifo; echo >d/file; mkfifo $O/fifo");
    CHECK_EQ(copy_out("/d", "d", &count), 0);
    CHECK_EQ(count.skipped, 1);
    CHECK_STR(sh("ls $O/d"), "file\n");
    CHECK_EQ(copy_out("/d/fifo", "x", NULL), -EINVAL);
    CHECK_EQ(copy_out("/d/file", "fifo", NULL), -EEXIST);
    CHECK_STR(sh("stat -c %F $O/fifo"), "fifo\n");
    CHECK_EQ(copy_in("fifo", "/x", NULL), -EINVAL);
    (void)sh("rm $O/d/file; mkfifo $O/d/file");
    CHECK_EQ(copy_out("/d", "", NULL), -EEXIST);
    CHECK(strstr(err.message, "'d/file'"));
}

TEST(a_sparse_file_stays_sparse)
{
    struct files_count count = { 0 };

    begin();
    (void)sh("cd $I; truncate -s 1T big; printf end | dd of=big bs=1 seek=1000000000000 "
             "conv=notrunc status=none; printf begin | dd of=big conv=notrunc status=none");
    CHECK_EQ(copy_out("/big", "big", &count), 0);
    CHECK(count.bytes < 1 << 20);
    CHECK_STR(
            sh("stat -c %s $O/big; head -c 5 $O/big; tail -c +1000000000001 $O/big | head -c 3;"
               "test $(stat -c %b $O/big) -lt 4096"),
            "1099511627776\nbeginend");
}

static void append(void)
{
    (void)sh("echo more >>$I/file");
}

static int fd_of_file;
static pthread_t writer;
static volatile int is_over;

static void *write_on(void *unused)
{
    for (int i = 0; !is_over; i++) {
        char c = (char)('a' + i % 26);
        CHECK_EQ(pwrite(fd_of_file, &c, 1, 0), 1);
    }
    return unused;
}

TEST(a_file_that_changed_once_is_copied_again_and_one_that_goes_on_changing_is_refused)
{
    begin();
    (void)sh("cd $I; echo one >file; head -c 40000000 /dev/zero | tr '\\0' x >big");
    meddle = append;
    CHECK_EQ(copy_out("/file", "file", NULL), 0);
    CHECK_STR(sh("cat $O/file"), "one\nmore\n");

    AUTO(fd_close) int fd = openat(box_access.fd, "big", O_RDWR | O_CLOEXEC);
    fd_of_file = fd;
    CHECK_EQ(pthread_create(&writer, NULL, write_on, NULL), 0);
    CHECK_EQ(copy_out("/big", "big", NULL), -EBUSY);
    is_over = 1;
    CHECK_EQ(pthread_join(writer, NULL), 0);
    CHECK_STR(sh("ls -A $O"), "file\n"); /* and nothing of it was created */
}

FILES_TEST(limits_are_kept)
{
    const struct files_end target = { .path = outside };
    const struct files_end source = { .access = &box_access, .path = "/d" };

    begin();
    (void)sh("cd $I; mkdir -p d; for i in 1 2 3 4 5; do echo 12345 >d/$i; done");
    CHECK_EQ(files_copy(&source, &target, &(struct files_limits){ .entries = 5 }, NULL, &err),
            -EFBIG);
    CHECK_EQ(files_copy(&source, &target, &(struct files_limits){ .bytes = 29 }, NULL, &err),
            -EFBIG);
    CHECK_EQ(files_copy(&source, &target, &(struct files_limits){ .entries = 6, .bytes = 30 },
                     NULL, &err),
            0);
    (void)sh("cd $I; p=deep; for i in $(seq 205); do p=$p/d; done; mkdir -p $p");
    CHECK_EQ(copy_out("/deep", "deep", NULL), -ELOOP);
    CHECK(strstr(err.message, "deeper than 200"));
    /* Far away the sandbox itself removes it, and needs no descriptor for each directory. */
    CHECK_EQ(files_remove_tree(&box_access, "/deep", &err), is_far ? 0 : -ELOOP);
}

TEST(a_copy_into_itself_ends)
{
    const struct files_end from = { .access = &box_access, .path = "/a" };
    const struct files_end to = { .access = &box_access, .path = "/a/b" };
    const struct files_end contents = { .access = &box_access, .path = "/a/." };

    begin();
    (void)sh("cd $I; mkdir -p a/x; echo >a/x/file");
    CHECK_EQ(files_copy(&from, &to, NULL, NULL, &err), 0);
    CHECK_STR(sh("cd $I/a; find . | sort"), ".\n./b\n./b/x\n./b/x/file\n./x\n./x/file\n");
    CHECK_EQ(files_copy(&contents, &to, NULL, NULL, &err), 0);
    CHECK_EQ(files_copy(&from, &to, NULL, NULL, &err), 0); /* b exists: b/a */
    CHECK_STR(sh("cd $I/a; find . -type d | sort"),
            ".\n./b\n./b/a\n./b/a/b\n./b/a/b/x\n./b/a/x\n./b/x\n./x\n");
}

FILES_TEST(names_of_any_bytes_come_along_and_messages_stay_harmless)
{
    begin();
    (void)sh("cd $I; mkdir d; for n in \"$(printf 'a\\nb')\" -rf \"$(printf '\\033[2J')\" "
             "\"$(printf '\\377')\"; do echo >\"d/$n\"; done");
    CHECK_EQ(copy_out("/d", "d", NULL), 0);
    CHECK_STR(sh("diff -r $I/d $O/d && ls -A $O/d | wc -l"), "5\n");
    (void)sh("cd $O/d; rm -- \"$(printf '\\033[2J')\"; mkdir \"$(printf '\\033[2J')\"");
    CHECK_EQ(copy_out("/d", "", NULL), -EISDIR);
    CHECK(strstr(err.message, "'d/\\x1b[2J'"));
}

FILES_TEST(directories_are_made_with_their_parents)
{
    begin();
    CHECK_EQ(files_make_dir(&box_access, "/a/b", 0700, false, &err), -ENOENT);
    CHECK_EQ(files_make_dir(&box_access, "/a//b/c/", 0700, true, &err), 0);
    CHECK_EQ(files_make_dir(&box_access, "a/b/c/d", 0700, true, &err), 0);
    CHECK_EQ(files_make_dir(&box_access, "/a/b", 0700, true, &err), 0);
    CHECK_EQ(files_make_dir(&box_access, "/a/b", 0700, false, &err), -EEXIST);
    CHECK_STR(sh("cd $I; stat -c '%n %a' a a/b a/b/c; touch f"), "a 755\na/b 755\na/b/c 700\n");
    CHECK_EQ(files_make_dir(&box_access, "/f", 0700, true, &err), -EEXIST);
    CHECK_EQ(files_make_dir(&box_access, "/f/x", 0700, true, &err), -ENOTDIR);
}

FILES_TEST(a_tree_is_removed_without_following_its_links)
{
    begin();
    (void)sh("cd $I; mkdir -p d/e/f keep; echo >keep/it; ln -s ../keep d/link; echo >d/e/x;"
             "ln -s /keep l; ln -s d way");
    CHECK_EQ(files_remove(&box_access, "/d", &err), -ENOTEMPTY);
    CHECK_EQ(files_remove(&box_access, "/d/e/f", &err), 0);
    CHECK_EQ(files_remove_tree(&box_access, "/d", &err), 0);
    CHECK_EQ(files_remove_tree(&box_access, "/l", &err), 0);
    CHECK_EQ(files_remove(&box_access, "/way", &err), 0);
    CHECK_EQ(files_remove_tree(&box_access, "/none", &err), -ENOENT);
    CHECK_STR(sh("cd $I; find . | sort"), ".\n./keep\n./keep/it\n");
}

FILES_TEST(things_are_moved_into_directories_and_over_files)
{
    begin();
    (void)sh("cd $I; mkdir d; echo 1 >one; echo 2 >two; echo 3 >three");
    CHECK_EQ(files_move(&box_access, "/one", "/two", true, &err), -EEXIST);
    CHECK_EQ(files_move(&box_access, "/one", "/two", false, &err), 0);
    CHECK_EQ(files_move(&box_access, "/two", "/d", true, &err), 0);
    CHECK_EQ(files_move(&box_access, "/three", "/d/", true, &err), 0);
    CHECK_EQ(files_move(&box_access, "/none", "/d", true, &err), -ENOENT);
    CHECK_EQ(files_move(&box_access, "/d", "/d/sub", false, &err), -EINVAL);
    CHECK_STR(sh("cd $I; cat d/two d/three; ls"), "1\n3\nd\n");
}

FILES_TEST(a_file_is_read_written_and_appended_to)
{
    begin();
    (void)sh("printf 'some text' >$O/from");
    AUTO(fd_close) int in = open(out_path("from"), O_RDONLY | O_CLOEXEC);
    CHECK_EQ(files_write(&box_access, "/new", in, O_TRUNC | O_EXCL, 0640, &err), 0);
    CHECK_EQ(files_write(&box_access, "/new", in, O_TRUNC | O_EXCL, 0640, &err), -EEXIST);
    CHECK_EQ(lseek(in, 0, SEEK_SET), 0);
    CHECK_EQ(files_write(&box_access, "/new", in, O_APPEND, 0640, &err), 0);
    CHECK_STR(sh("cat $I/new"), "some textsome text");
    AUTO(fd_close) int out = open(out_path("to"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQ(files_read(&box_access, "/new", out, &err), 0);
    CHECK_EQ(files_read_whole(&box_access, "new", out, NULL, &err), 0);
    CHECK_STR(sh("cat $O/to"), "some textsome textsome textsome text");
    CHECK_EQ(files_read(&box_access, "/", out, &err), -EISDIR);
    CHECK_EQ(files_read(&box_access, "/none", out, &err), -ENOENT);
}

TEST(that_a_file_changed_is_found_out_afterwards)
{
    struct stat st;

    begin();
    (void)sh("echo one >$I/file");
    AUTO(fd_close) int fd = openat(box_access.fd, "file", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(fstat(fd, &st), 0);
    CHECK_EQ(data_check_same(fd, &st, &err), 0);
    append();
    CHECK_EQ(data_check_same(fd, &st, &err), -EBUSY);
}

static const char *type_name(uint32_t mode)
{
    return S_ISREG(mode)    ? "file"
           : S_ISDIR(mode)  ? "directory"
           : S_ISLNK(mode)  ? "link"
           : S_ISFIFO(mode) ? "fifo"
                            : "other";
}

static int note(const struct files_entry *entry, void *context, struct carrel_error *e)
{
    (void)e;
    buf_addf(context, "%s %s %s\n", entry->name,
            entry->stat ? type_name(entry->stat->mode) : "?",
            entry->target ? entry->target : "-");
    return 0;
}

FILES_TEST(a_directory_is_listed_in_order)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);

    begin();
    (void)sh("cd $I; mkdir d d/sub; echo >d/b; echo >d/a; ln -s /x d/c; mkfifo d/f");
    CHECK_EQ(files_list(&box_access, "/d", true, note, &text, &err), 0);
    CHECK_STR(text.data, "a file -\nb file -\nc link /x\nf fifo -\nsub directory -\n");
    buf_clear(&text);
    CHECK_EQ(files_list(&box_access, "/d", false, note, &text, &err), 0);
    CHECK_STR(text.data, "a ? -\nb ? -\nc ? -\nf ? -\nsub ? -\n");
    buf_clear(&text);
    CHECK_EQ(files_list(&box_access, "/d/a", true, note, &text, &err), 0);
    CHECK_EQ(files_list(&box_access, "/d/f", true, note, &text, &err), 0);
    CHECK_STR(text.data, "/d/a file -\n/d/f fifo -\n");
    CHECK_EQ(files_list(&box_access, "/none", true, note, &text, &err), -ENOENT);
}

static struct carrel_watch *open_watch(const char *path, bool is_deep)
{
    struct file_access access = box_access;
    struct carrel_watch *watch = NULL;

    CHECK_EQ(files_watch_open(&access, path, is_deep, &watch, &err), 0);
    return watch;
}

/* Waits for the next event. */
static const struct carrel_watch_event *hear(struct carrel_watch *watch)
{
    struct pollfd fd = { .fd = carrel_watch_fd(watch), .events = POLLIN };
    const struct carrel_watch_event *event = NULL;
    int r;

    while ((r = carrel_watch_next(watch, &event, &err)) == 0)
        CHECK_EQ(poll(&fd, 1, -1), 1);
    CHECK_EQ(r, 1);
    return event;
}

/* The events that the line causes, one line each, up to one with "/end" or the last one. */
static const char *watch(const char *path, bool is_deep, const char *line)
{
    static struct buf text;
    AUTO(carrel_watch_free) struct carrel_watch *handle = open_watch(path, is_deep);
    const struct carrel_watch_event *event = hear(handle);

    buf_finish(text);
    text = BUF_INIT(1 << 20);
    CHECK_EQ(event->kind, CARREL_WATCH_READY);
    (void)sh(line);
    while ((event = hear(handle))->kind != CARREL_WATCH_END) {
        buf_addf(&text, "%s %s%s%s%s\n", carrel_watch_kind_name(event->kind), event->path,
                event->is_directory ? "/" : "", event->to ? " " : "",
                event->to ? event->to : "");
        if (strstr(event->path, "/end"))
            return text.data;
    }
    CHECK_EQ(carrel_watch_next(handle, &event, &err), -ESHUTDOWN);
    return text.data;
}

TEST(changes_in_a_directory_are_told)
{
    begin();
    (void)sh("cd $I; mkdir -p d/sub e; echo >d/there; echo >away");
    CHECK_STR(watch("/d", false,
                      "cd $I/d; echo x >new; chmod 600 there; mv there moved; echo >sub/unseen;"
                      "mv ../away .; mv away ..; mkdir dir; rm new; mkdir end"),
            "create /d/new\nwrite /d/new\nchmod /d/there\nrename /d/there /d/moved\n"
            "create /d/away\nremove /d/away\ncreate /d/dir/\nremove /d/new\ncreate /d/end/\n");
}

TEST(changes_in_subdirectories_are_told_under_the_names_they_have_then)
{
    begin();
    (void)sh("cd $I; mkdir -p d/a/b out; ln -s ../out d/link");
    CHECK_STR(watch("d", true,
                      "cd $I/d; echo >a/b/file; mv a c; rm c/b/file; echo >link/unseen;"
                      "mv c/b ../out; echo >../out/b/unseen; echo >c/seen; >end"),
            "create d/a/b/file\nwrite d/a/b/file\nrename d/a/ d/c\nremove d/c/b/file\n"
            "remove d/c/b/\ncreate d/c/seen\nwrite d/c/seen\ncreate d/end\n");
}

TEST(what_is_made_in_a_new_directory_is_told_at_least_once)
{
    begin();
    (void)sh("mkdir $I/d");
    const char *told = watch("/d", true,
            "cd $I/d; mkdir -p x/y/z; echo >x/y/z/file; echo >x/other; mkdir t; >t/end");
    CHECK(strstr(told, "create /d/x/\n"));
    CHECK(strstr(told, "create /d/x/y/\n"));
    CHECK(strstr(told, "create /d/x/y/z/\n"));
    CHECK(strstr(told, "create /d/x/y/z/file\n"));
    CHECK(strstr(told, "create /d/x/other\n"));
}

TEST(a_watch_ends_with_what_it_watches)
{
    begin();
    (void)sh("cd $I; mkdir d; echo >file");
    CHECK_STR(watch("/d", true, "rmdir $I/d"), "remove /d/\n");
    CHECK_STR(watch("/file", true, "echo x >>$I/file; rm $I/file"),
            "write /file\nchmod /file\nremove /file\n");
    struct carrel_watch *none = NULL;
    CHECK_EQ(files_watch_open(&box_access, "/none", false, &none, &err), -ENOENT);
    CHECK(!none && box_access.ops); /* it is still ours */
}

TEST(a_watch_does_not_wait)
{
    const struct carrel_watch_event *event;

    begin();
    (void)sh("mkdir $I/d");
    AUTO(carrel_watch_free) struct carrel_watch *handle = open_watch("/d", false);
    CHECK_EQ(hear(handle)->kind, CARREL_WATCH_READY);
    CHECK_EQ(carrel_watch_next(handle, &event, &err), 0);
    (void)sh(">$I/d/file");
    CHECK_EQ(hear(handle)->kind, CARREL_WATCH_CREATE);
    CHECK_EQ(carrel_watch_next(handle, &event, NULL), 0);
}

TEST(a_new_directory_with_very_many_entries_overflows)
{
    unsigned n = 0;

    begin();
    (void)sh("cd $I; mkdir d big; cd big; seq 1 20000 | xargs touch");
    AUTO(carrel_watch_free) struct carrel_watch *handle = open_watch("/d", true);
    CHECK_EQ(hear(handle)->kind, CARREL_WATCH_READY);
    (void)sh("mv $I/big $I/d");
    while (hear(handle)->kind == CARREL_WATCH_CREATE)
        n++;
    CHECK_EQ(n, 16383);
    (void)sh("mkdir $I/d/later");
    CHECK_STR(hear(handle)->path, "/d/later");
}

TEST(what_needs_descriptors_is_refused_far_away_by_name)
{
    const struct files_end from = { .access = &box_access, .path = "/a" };
    const struct files_end to = { .access = &box_access, .path = "/b" };
    struct carrel_watch *none = NULL;

    is_far = true;
    begin();
    (void)sh("echo >$I/a");
    CHECK_EQ(files_watch_open(&box_access, "/a", false, &none, &err), -ENOTSUP);
    CHECK_STR(err.message, "runtime fake: cannot watch files: it has no descriptors of files");
    CHECK_EQ(files_copy(&from, &to, NULL, NULL, &err), -ENOTSUP);
    CHECK(strstr(err.message, "runtime fake"));
}

TEST(a_file_that_goes_on_changing_is_refused_far_away_too)
{
    is_far = true;
    begin();
    (void)sh("head -c 40000000 /dev/zero | tr '\\0' x >$I/big");
    AUTO(fd_close) int fd = openat(box_access.fd, "big", O_RDWR | O_CLOEXEC);
    fd_of_file = fd;
    CHECK_EQ(pthread_create(&writer, NULL, write_on, NULL), 0);
    int r = copy_out("/big", "big", NULL);
    AUTO(fd_close) int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int whole = files_read_whole(&box_access, "/big", out, NULL, &err);
    is_over = 1;
    CHECK_EQ(pthread_join(writer, NULL), 0);
    CHECK_EQ(r, -EBUSY);
    CHECK_EQ(whole, -EBUSY);
}

static int give_stream(const char *text)
{
    int ends[2];

    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(fd_write_all(ends[1], text, strlen(text)), 0);
    fd_close(ends[1]);
    return ends[0];
}

FILES_TEST(a_stream_becomes_a_file_when_it_is_complete)
{
    const struct files_end to = { .access = &box_access, .path = "/d/file" };
    const struct files_end dir = { .access = &box_access, .path = "/d" };
    struct files_count count = { 0 };

    begin();
    (void)sh("cd $I; mkdir d; echo old >victim; ln -s ../victim d/file");
    AUTO(fd_close) int in = give_stream("text");
    CHECK_EQ(files_copy_stream(in, &to, NULL, &count, &err), 0);
    CHECK_STR(sh("cd $I; cat victim d/file; stat -c ' %a' d/file; ls -A d"),
            "old\ntext 644\nfile\n");
    CHECK_EQ(count.bytes, 4);
    AUTO(fd_close) int more = give_stream("more");
    CHECK_EQ(files_copy_stream(more, &dir, NULL, &count, &err), -EISDIR);
    CHECK_EQ(files_copy_stream(more, &to, &(struct files_limits){ .bytes = 3 }, &count, &err),
            -EFBIG);
    CHECK_STR(sh("cd $I/d; ls -A; cat file"), "file\ntext");
}

static int use_each(int step)
{
    const struct files_end stream_to = { .access = &box_access, .path = "/d/stream" };
    struct files_count count = { 0 };
    AUTO(fd_close) int in = give_stream("text");
    AUTO(fd_close) int out = open("/dev/null", O_WRONLY | O_CLOEXEC);

    switch (step) {
    case 0:
        return copy_out("/d", "copy", &count);
    case 1:
        return copy_in("from", "/d", &count);
    case 2:
        return files_list(&box_access, "/d", true, see, NULL, &err);
    case 3:
        return files_read_whole(&box_access, "/d/a", out, NULL, &err);
    case 4:
        return files_write(&box_access, "/d/w", in, O_TRUNC, 0644, &err);
    case 5:
        return files_copy_stream(in, &stream_to, NULL, &count, &err);
    case 6:
        return files_remove_tree(&box_access, "/d", &err);
    default:
        return 1;
    }
}

TEST(each_request_for_a_far_file_may_fail)
{
    struct fake_fault fault = { FAKE_FILE, 1, FAULT_BEFORE, -EIO };
    int r;

    is_far = true;
    begin();
    (void)sh("cd $O; mkdir from; echo >from/x");
    for (int step = 0; step < 7; step++)
        for (fault.nth = 1;; fault.nth++) {
            (void)sh("cd $I; mkdir -p d/sub; echo 1 >d/a; ln -sfn a d/l; rm -rf $O/copy");
            fake_inject(&fault);
            r = use_each(step);
            if (fake_calls(FAKE_FILE) < fault.nth) {
                CHECK_EQ(r, 0);
                CHECK(fault.nth > 1);
                break;
            }
            if (r != -EIO)
                test_fail(__FILE__, __LINE__, "step %d, call %u: %d", step, fault.nth, r);
            fake_inject(NULL);
            CHECK_STR(sh("cd $I; ls -A d | grep -c carrel || true"), "0\n");
        }
}

TEST(a_connection_that_is_lost_ends_a_far_copy_without_a_signal)
{
    struct fake_fault fault = { FAKE_FILE, 2, FAULT_LOST, -EIO };

    is_far = true;
    begin();
    (void)sh("cd $I; mkdir d; head -c 3000000 /dev/zero >d/large; cd $O; mkdir -p from;"
             "head -c 3000000 /dev/zero >from/large");
    fake_inject(&fault);
    CHECK(copy_out("/d", "copy", NULL) < 0);
    CHECK(copy_in("from", "/", NULL) < 0);
}
