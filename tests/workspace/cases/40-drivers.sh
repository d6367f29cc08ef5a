# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Drivers for diff and merge, and the filter of interactive diffs.
plant='
git config diff.evil.textconv "$EVIL/textconv"
git config diff.other.command "$EVIL/diff-command"
git config merge.evil.driver "$EVIL/merge-driver"
git config merge.default evil
git config interactive.diffFilter "$EVIL/diff-filter"
printf "a.txt diff=evil merge=evil\nb.txt diff=other\n" >.gitattributes
echo more >>b.txt
'
trigger='
git diff
git log -p -1
printf "q\n" | git -c color.ui=always add -p
git commit -qam x
git merge -q conflict -m merged
'
