/* Files of a sandbox as a tar, and hostile archives. */
#include "base/err.h"
#include "base/fd.h"
#include "core/files/files_tar.h"
#include "file_box.h"
#include "harness.h"
#include <errno.h>

static struct files_count count;

/* Exports `path` of the sandbox into the file "tar" outside. */
static int export_with(const char *path, const struct files_limits *limits)
{
    AUTO(fd_close)
    int fd = open(out_path("tar"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    count = (struct files_count){ 0 };
    return files_export(&box_access, path, fd, limits, &count, &err);
}

static int export(const char *path)
{
    return export_with(path, NULL);
}

static int import_with(const char *path, const struct files_limits *limits)
{
    AUTO(fd_close) int fd = open(out_path("tar"), O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    count = (struct files_count){ 0 };
    return files_import(&box_access, path, fd, limits, &count, &err);
}

static int import(const char *path)
{
    return import_with(path, NULL);
}

FILES_TEST(what_was_exported_is_there_after_an_import)
{
    begin();
    (void)sh("cd $I; mkdir -p d/sub/deep; echo 1 >d/one; echo 2 >d/sub/deep/two;"
             "ln -s sub/deep d/link; chmod 4750 d/one; touch -d @1000000000 d/one d/sub;"
             "ln d/one d/again; chmod 555 d/sub/deep; printf '' >d/empty; mkdir there;"
             "head -c 3000000 /dev/urandom >d/large");
    CHECK_EQ(export("/d"), 0);
    CHECK_STR(sh("cd $O; tar tf tar | sort; mkdir x; tar xf tar -C x; stat -c %a x/one"),
            ".\nagain\nempty\nlarge\nlink\none\nsub\nsub/deep\nsub/deep/two\n750\n");
    CHECK_EQ(count.files, 5);
    CHECK_EQ(import("/there"), 0);
    CHECK_STR(sh("cd $I; diff -r d there; readlink there/link; stat -c '%a %Y' there/one "
                 "there/sub; stat -c %a there/sub/deep; ls -A there | wc -l"),
            "sub/deep\n750 1000000000\n755 1000000000\n555\n6\n");
    for (int i = 0; i < 3; i++) {
        (void)sh(i == 0   ? "cd $O; gzip -c tar >t"
                 : i == 1 ? "cd $O; zstd -qc tar >t"
                          : "cd $O; xz -c tar >t");
        (void)sh("cd $O; cp tar plain; mv t tar; chmod -R u+w $I/there; rm -r $I/there;"
                 "mkdir $I/there");
        CHECK_EQ(import("there"), 0);
        (void)sh("cd $I; diff -r d there; mv $O/plain $O/tar");
    }
    CHECK_EQ(import("there"), 0); /* over existing files */
    (void)sh("cd $I; diff -r d there; chmod -R u+w .");
}

FILES_TEST(an_export_has_files_directories_and_links_that_stay_in_it)
{
    begin();
    (void)sh("cd $I; mkdir -p d/sub; mkfifo d/fifo; ln -s /etc/passwd d/out; ln -s ../d d/up;"
             "ln -s ../one d/sub/fine; echo >d/one; echo >\"d/$(printf 'a\\nb')\";"
             "echo >\"d/-rf\"; echo >\"d/$(printf '\\377')\"");
    CHECK_EQ(export("/d"), 0);
    CHECK_STR(sh("cd $O; tar tf tar --quoting-style=escape | sort"),
            "-rf\n.\n\\377\na\\nb\none\nsub\nsub/fine\n");
    CHECK_EQ(count.skipped, 1);
    CHECK_EQ(count.stray_links, 2);
    CHECK_EQ(export("/d/one"), 0); /* a single file */
    CHECK_STR(sh("tar tf $O/tar"), "one\n");
    CHECK_EQ(export("/d/fifo"), -EINVAL);
    CHECK_EQ(export("/none"), -ENOENT);
}

FILES_TEST(an_export_keeps_its_limits)
{
    begin();
    (void)sh("cd $I; mkdir d; truncate -s 1T d/big; mkdir e; touch e/1 e/2 e/3");
    CHECK_EQ(export("/d"), -EFBIG); /* a hole is written as zeroes there */
    CHECK(strstr(err.message, "'big'"));
    CHECK_STR(sh("test $(stat -c %s $O/tar) -lt 100000 && echo small"), "small\n");
    CHECK_EQ(export_with("/e", &(struct files_limits){ .entries = 2 }), -EFBIG);
    CHECK_EQ(export_with("/e", &(struct files_limits){ .entries = 3 }), 0);
}

/* Creates "tar" by a line of shell, and checks the victim and the tree afterwards. */
static void check_contained(const char *make)
{
    (void)sh("cd $I; mkdir -p box; echo old >victim; cd $O; echo old >victim");
    (void)sh(make);
    (void)import("/box");
    CHECK_STR(sh("cat $I/victim $O/victim; find $I $O -newer $O/tar -not -path \"$I/box*\" "
                 "-type f"),
            "old\nold\n");
}

FILES_TEST(an_archive_cannot_write_outside_of_its_directory)
{
    begin();
    check_contained("cd $O; echo new >f; tar -cPf tar --transform 's|^f$|../victim|' f");
    CHECK(strstr(err.message, "'..'"));
    check_contained("cd $O; echo new >f; tar -cPf tar --transform 's|^f$|a/../../victim|' f");
    check_contained("cd $O; echo new >f; tar -cPf tar --transform \"s|^f$|$O/victim|\" f");
    check_contained("cd $O; mkdir -p one two/l; ln -sfn .. one/l; echo new >two/l/victim;"
                    "tar -cf tar -C one l -C ../two l/victim");
    CHECK(strstr(err.message, "'l/victim'"));
    check_contained("cd $O; rm -rf one; mkdir -p one; ln -sfn $O one/l;"
                    "tar -cf tar -C one l -C ../two l/victim");
    check_contained("cd $O; rm -rf f g; echo new >f; ln f g;"
                    "tar -cPf tar --transform 'flags=h;s|^f$|../victim|' f g");
    check_contained("cd $O; rm -rf one/l; ln -sfn ../victim one/l; rm -rf two; mkdir two;"
                    "echo new >two/l; tar -cf tar -C one l -C ../two l"); /* replaced */
    CHECK_STR(sh("cat $I/box/l"), "new\n");
}

FILES_TEST(what_is_there_already_does_not_lead_out_either)
{
    begin();
    (void)sh("cd $I; mkdir -p box elsewhere; ln -s ../elsewhere box/d; ln -s ../victim box/f;"
             "echo old >victim; cd $O; mkdir d; echo new >d/x; echo new >f");
    (void)sh("cd $O; tar cf tar d");
    CHECK(import("/box") < 0);
    (void)sh("cd $O; tar cf tar f");
    CHECK_EQ(import("/box"), 0);
    CHECK_STR(sh("cd $I; ls elsewhere; cat victim box/f; test ! -L box/f"), "old\nnew\n");
}

FILES_TEST(what_is_no_file_is_left_out_of_an_import)
{
    begin();
    (void)sh("mkdir $I/box; cd $O; mkdir t; mkfifo t/fifo; echo >t/file; chmod 6755 t/file;"
             "tar cf tar -C t .");
    CHECK_EQ(import("/box"), 0);
    CHECK_EQ(count.skipped, 1);
    CHECK_STR(sh("cd $I/box; ls; stat -c %a file"), "file\n755\n");
}

FILES_TEST(an_import_keeps_its_limits_and_refuses_what_is_no_archive)
{
    begin();
    (void)sh("mkdir $I/box; echo >$I/file; cd $O; mkdir t; echo >t/1; echo >t/2; tar cf tar -C "
             "t .");
    CHECK_EQ(import_with("/box", &(struct files_limits){ .entries = 2 }), -EFBIG);
    CHECK_EQ(import_with("/box", &(struct files_limits){ .bytes = 1 }), -EFBIG);
    CHECK_EQ(import("/none"), -ENOENT);
    CHECK_EQ(import("/file"), -ENOTDIR);
    (void)sh("cd $O; head -c 100000 /dev/urandom >tar");
    CHECK_EQ(import("/box"), -EBADMSG);
    (void)sh("cd $O; head -c 2000000 /dev/urandom >t/big; tar cf tar -C t .;"
             "truncate -s 1000000 tar");
    CHECK(import("/box") < 0);
    CHECK_STR(sh("cd $I/box; ls -A | grep -c carrel || true"), "0\n"); /* no half files */
    (void)sh("cd $O; truncate -s 1G t/hole; tar cf tar -C t hole");
    CHECK_EQ(import("/box"), 0);
    CHECK_STR(sh("cd $I/box; stat -c %s hole; test $(stat -c %b hole) -lt 100 && echo hole"),
            "1073741824\nhole\n");
}
