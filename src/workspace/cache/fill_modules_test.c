#include "workspace/view_fixture.h"

TEST(submodules_are_checked_out_as_far_as_they_are_there)
{
    begin_with("git config --global protocol.file.allow always; "
               "for r in inner middle absent; do git init -q $r; (cd $r; echo $r >file; "
               "git add -A; git commit -qm $r); done; "
               "(cd middle; git submodule -q add ../inner deep/inner; git commit -qm sub); "
               "git init -q repo; cd repo; echo 1 >one; git submodule -q add ../middle "
               "'lib/mid dle'; "
               "git submodule -q add ../absent absent; git add -A; git commit -qm first; "
               "git submodule -q update --init --recursive; "
               "git submodule -q deinit -f absent; rm -rf .git/modules/absent");
    const char *commit = commit_of("HEAD");
    AUTO(checkout_free) struct checkout *checkout = make(commit);

    CHECK(checkout->has_gitlinks);
    CHECK_STR(checkout->gitlinks[0], "absent");
    CHECK_STR(checkout->gitlinks[1], "lib/mid dle");
    CHECK(!checkout->gitlinks[2]);
    CHECK(checkout->module_objects[0] && checkout->module_objects[1]);
    CHECK(!checkout->module_objects[2]);
    VIEW(checkout, commit,
            "test -z \"$(git status --porcelain)\"; test -z \"$(git diff-files)\"; "
            "test -z \"$(ls -A absent)\"; ! git submodule status --recursive | grep -q "
            "'^[+U]'; "
            "cd 'lib/mid dle'; test -z \"$(git status --porcelain)\"; git log | grep -q "
            "middle; "
            "cd deep/inner; test \"$(cat file)\" = inner; test -z \"$(git diff-files)\"; "
            "echo more >>file; git commit -qam more; cd ../..; "
            "test \"$(git status --porcelain)\" = ' M deep/inner'");
    end();
}
