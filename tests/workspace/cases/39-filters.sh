# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# clean, smudge and process, by tracked attributes and by the git dir's own.
plant='
git config filter.evil.clean "$EVIL/filter.clean"
git config filter.evil.smudge "$EVIL/filter.smudge"
git config filter.long.process "$EVIL/filter.process"
git config filter.long.clean "$EVIL/filter.long-clean"
git config filter.info.clean "$EVIL/filter.info-clean"
git config filter.info.smudge "$EVIL/filter.info-smudge"
echo "*.txt filter=evil" >.gitattributes
mkdir -p long
echo "* filter=long" >long/.gitattributes
echo "*.md filter=info" >"$(git rev-parse --git-path info/attributes)" || {
    mkdir -p "$(git rev-parse --git-path info)"
    echo "*.md filter=info" >"$(git rev-parse --git-path info/attributes)"; }
echo text >doc.md
echo text >evil.txt
'
trigger='
git status
git add evil.txt doc.md
git commit -q -m x
rm evil.txt doc.md
git checkout -- evil.txt doc.md
echo text >long/file
git add long/file
git diff
'

# The user has a filter; the run names it for files that it creates. carrel must not run it on them,
# and must not write them without it either.
own_filter() {
    must_work=no
    me git config --global filter.own.clean "$T/host/evil/filter.own-clean"
    me git config --global filter.own.smudge "$T/host/evil/filter.own-smudge"
    inside attack/2 -- "echo '*.own filter=own' >.gitattributes; echo x >x.own; $ordinary"
    opened_git=()
    each_operation attack/2 nothing_fired
}
# A required filter that fails: the run's result may be refused, but not by running it here.
broken_filter() {
    must_work=no
    inside attack/3 -- "git config filter.b.process $T/host/evil/filter.process; git config filter.b.required true
        echo '*.b filter=b' >.gitattributes; echo x >x.b; $ordinary" || true
    each_operation attack/3 nothing_fired
}
more() {
    check "$title, as $who: a required filter that is broken" broken_filter
    plant='$EVIL/filter.own-clean $EVIL/filter.own-smudge' evil "$T/host"
    check "$title, as $who: the user's own filter, named by the run" own_filter
}
