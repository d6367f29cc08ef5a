# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Every setting that is a program.
plant='
git config core.fsmonitor "$EVIL/core.fsmonitor"
git config core.editor "$EVIL/core.editor"
git config core.pager "$EVIL/core.pager"
git config core.sshCommand "$EVIL/core.sshCommand"
git config core.askPass "$EVIL/core.askPass"
git config core.gitProxy "$EVIL/core.gitProxy"
git config core.alternateRefsCommand "$EVIL/core.alternateRefsCommand"
git config credential.helper "!$EVIL/credential.helper"
git config gpg.program "$EVIL/gpg.program"
git config ssh.variant simple
git config diff.external "$EVIL/diff.external"
git config sequence.editor "$EVIL/sequence.editor"
git config alias.evil "!$EVIL/alias"
git config alias.st "!$EVIL/alias-st"
git config pager.status "$EVIL/pager.status"
git config pager.diff "$EVIL/pager.diff"
git config trailer.sign.command "$EVIL/trailer.command"
git config trailer.sign.ifmissing add
'
trigger='
git status
git diff
git st
git commit -q --allow-empty
git commit -q -S --allow-empty -m signed
git rebase -i --autostash HEAD~1
git rebase --abort
git evil
git fetch ssh://localhost/nowhere
git fetch git://localhost/nowhere
printf "protocol=https\nhost=localhost\n\n" | git credential fill
printf "subject\n\nbody\n" | git interpret-trailers
script -qec "git -p log -1" /dev/null
script -qec "git status" /dev/null
script -qec "git diff --no-ext-diff" /dev/null
git init -q "${EVIL%/*}/other"
echo "${EVIL%/*}/other/.git/objects" >>"$(git rev-parse --git-path objects/info/alternates)"
git rev-list --alternate-refs --
'
each_fires=yes
opened_git+=("st" "evil")
more() {
    check "$title, as $who: with signing switched on" signed
}
signed() {
    inside attack/2 -- "git config commit.gpgSign true; git config tag.gpgSign true; git config log.showSignature true
        git config merge.verifySignatures true; git config gpg.program $T/host/evil/gpg.program; $ordinary
        git -c commit.gpgSign=false commit -qam x" || true
    each_operation attack/2 nothing_fired
}
