# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Repositories in the tree, tracked as submodules or untracked, and a matching .gitmodules.
must_work=no # a .gitmodules like this is refused; without it all must work, see `lying`
plant='
git init -q module
git -C module -c user.name=x -c user.email=x@x commit -q --allow-empty -m x
git -C module config core.fsmonitor "$EVIL/module.fsmonitor"
git -C module config filter.m.clean "$EVIL/filter.module"
echo "* filter=m" >module/.gitattributes
echo x >module/file
git add module 2>/dev/null
printf "[submodule \"module\"]\n\tpath = module\n\turl = ext::%s/ext-url\n\tupdate = !%s/gitmodules-update\n" "$EVIL" "$EVIL" >.gitmodules
printf "[submodule \"cr\"]\n\tpath = \"cr\\r\"\n\turl = ./module\n[submodule \"up\"]\n\tpath = ../up\n\turl = ./module\n" >>.gitmodules
git config submodule.module.update "!$EVIL/config-update"
git config submodule.module.url ./module
git config protocol.allow always
ln -s module linked
git add .gitmodules linked
git commit -q -m "a submodule"
mkdir bare-inside && git init -q --bare bare-inside
git -C bare-inside config core.fsmonitor "$EVIL/bare.fsmonitor"
git -C bare-inside config alias.evil "!$EVIL/bare.alias"
git -C bare-inside config core.worktree "$PWD"
git init -q lying
git -C lying config core.fsmonitor "$EVIL/lying.fsmonitor"
echo x >lying/file
'
trigger='
git status
git diff
git add -A
git clone -q ext::"$EVIL/ext-clone" x
(cd bare-inside && git evil && git status)
git submodule update --init
'

# Untracked repositories, such as an agent that clones something leaves.
lying() {
    must_work=yes
    inside attack/2 -- "git init -q lying; git -C lying config core.fsmonitor $T/host/evil/lying.fsmonitor
        echo x >lying/file; git init -q --bare bare-inside; git -C bare-inside config core.fsmonitor $T/host/evil/bare.fsmonitor
        mkdir deep; git init -q deep/er; git -C deep/er config core.fsmonitor $T/host/evil/lying.fsmonitor
        git -C deep/er commit -q --allow-empty -m x; $ordinary"
    each_operation attack/2 nothing_fired
}
more() { check "$title, as $who: repositories that lie in the tree" lying; }
