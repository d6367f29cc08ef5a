# shellcheck shell=bash
# repositories.sh - repositories for tests, the same bytes every time. To be sourced by lib.sh.
#
#   make_small DIR        two dozen files of every kind, three commits, branches, a tag
#   make_many DIR N       the same and N files in directories of five hundred; nothing is checked out, which
#                         would take longer than everything else
#   make_special DIR      the same with line ends, filters, an ident, an encoding, pointers of LFS
#                         and a submodule (whose origin is DIR.sub)
#
# Commits are written by git fast-import: fifty thousand files take a second.

_when=1700000000 # every date; a day apart where order matters

_blob() { printf 'M %s inline %s\ndata <<END_OF_DATA\n%s\nEND_OF_DATA\n\n' "$1" "$2" "$3"; }

_commit() { # _commit REF DAY MESSAGE [FROM]: its mark is the day
    printf 'commit %s\nmark :%d\ncommitter Maker <maker@example.org> %d +0000\n' \
        "$1" "$2" $((_when + $2 * 86400))
    printf 'data <<END_OF_DATA\n%s\nEND_OF_DATA\n\n' "$3"
    [ -z "${4:-}" ] || printf 'from %s\n' "$4"
}

_small_files() {
    local i
    _blob 100644 README "a repository for tests"
    _blob 100644 a.txt "$(seq -f 'line %g of a' 1 40)"
    _blob 100644 b.txt "$(seq -f 'line %g of b' 1 40)"
    _blob 100644 dir/c.txt "text in a directory"
    _blob 100644 dir/sub/d.txt "text below a directory"
    _blob 100644 dir/sub/e.txt "more text below a directory"
    _blob 100755 tool.sh "#!/bin/sh
echo tool"
    printf 'M 120000 inline link\ndata 5\na.txt\n'
    printf 'M 120000 inline dangling\ndata 12\nnowhere/here\n'
    printf 'M 100644 inline empty\ndata 0\n'
    _blob 100644 .gitignore "*.o
/build/
!keep.o"
    _blob 100644 keep.o "not ignored"
    _blob 100644 "with space.txt" "a name with a space"
    _blob 100644 'grün/日本.txt' "a name beyond ASCII"
    _blob 100644 -dash "a name that looks like an option"
    _blob 100644 '"new\nline"' "a name of two lines"
    _blob 100644 Case.txt "upper"
    _blob 100644 case.txt "lower"
    _blob 100644 old/one "one"
    _blob 100644 old/two "two"
    for i in 1 2 3 4 5 6; do
        _blob 100644 "a/very/deep/path/that/goes/on/for/a/while/$i" "deep $i"
    done
    _blob 100644 crlf.dat $'dos line\r\nanother\r'
    printf 'M 100644 inline binary\ndata 8\n\000\001\002\003\376\377\000\n\n'
}

_small_history() {
    _commit refs/heads/main 2 "second"
    _blob 100644 a.txt "$(seq -f 'line %g of a' 1 40 | sed 's/^line 20 .*/line 20, changed by main/')"
    _commit refs/heads/main 3 "third"
    _blob 100644 b.txt "$(seq -f 'line %g of b' 1 41)"
    printf 'D old/two\n'
    _commit refs/heads/topic 4 "topic: a file of its own" :2
    _blob 100644 topic.txt "made on a branch"
    _commit refs/heads/topic 5 "topic: the end of b"
    _blob 100644 b.txt "$(seq -f 'line %g of b' 1 40 | sed 's/^line 3 .*/line 3, changed by topic/')"
    _commit refs/heads/conflict 6 "conflict: the same line" :2
    _blob 100644 a.txt "$(seq -f 'line %g of a' 1 40 | sed 's/^line 30 .*/line 30, changed by conflict/')"
    printf 'reset refs/tags/v1\nfrom :1\n\n'
}

_import() { # _import DIR: from stdin
    me git init -q -b main "$1"
    me git -C "$1" fast-import --quiet
}

make_small() {
    {
        _commit refs/heads/main 1 "first"
        _small_files
        _small_history
    } | _import "$1"
    me git -C "$1" reset -q --hard main
}

make_many() {
    {
        _commit refs/heads/main 1 "first"
        _small_files
        awk -v n="$2" 'BEGIN {
            for (i = 0; i < n; i++) {
                text = "file " i " of many\n"
                printf "M 100644 inline many/d%04d/f%05d.txt\ndata %d\n%s\n", i / 500, i, length(text), text
            }
        }'
        _small_history
    } | _import "$1"
}

_special_files() {
    _blob 100644 .gitattributes "*.win text eol=crlf
*.unix text eol=lf
*.auto text=auto
*.up filter=upper
*.rot filter=rotate
*.id ident
*.u16 working-tree-encoding=UTF-16LE eol=lf
*.bin filter=lfs diff=lfs merge=lfs -text
export-me export-subst
secret export-ignore"
    _blob 100644 text.win "dos in the tree
unix in the repository"
    _blob 100644 text.unix "unix everywhere"
    _blob 100644 text.auto "as it comes"
    _blob 100644 word.up "lower case in the repository"
    _blob 100644 word.rot "rotated in the tree"
    # shellcheck disable=SC2016  # git's own dollar
    _blob 100644 who.id 'this is $Id$'
    _blob 100644 text.u16 "wide in the tree"
    # shellcheck disable=SC2016
    _blob 100644 export-me 'hash $Format:%H$'
    _blob 100644 secret "not in archives"
    local i
    for i in 1 2 3; do
        _blob 100644 "media/$i.bin" "version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e239$i
size 1234$i"
    done
}

# carrel runs filters of the user's configuration only; the plain side reads none but the
# repository's own.
special_config() {
    local where
    for where in --local --global; do
        me git -C "$1" config $where filter.upper.clean "tr A-Z a-z"
        me git -C "$1" config $where filter.upper.smudge "tr a-z A-Z"
        me git -C "$1" config $where filter.rotate.clean "sed s/TREE/repository/g"
        me git -C "$1" config $where filter.rotate.smudge "sed s/repository/TREE/g"
    done
    me git -C "$1" config protocol.file.allow always
}

make_special() {
    local sub
    me git init -q -b main "$1.sub"
    {
        _commit refs/heads/main 1 "submodule: first"
        _blob 100644 inner.txt "in the submodule"
        _commit refs/heads/main 2 "submodule: second"
        _blob 100644 inner.txt "in the submodule, later"
        _blob 100644 more/inner.txt "deeper in the submodule"
    } | me git -C "$1.sub" fast-import --quiet
    sub=$(me git -C "$1.sub" rev-parse main~1)

    me git init -q -b main "$1"
    special_config "$1"
    {
        _commit refs/heads/main 1 "first"
        _small_files
        _special_files
        _blob 100644 .gitmodules "[submodule \"sub\"]
	path = sub
	url = $1.sub"
        printf 'M 160000 %s sub\n' "$sub"
        _small_history
    } | me git -C "$1" fast-import --quiet
    me git -C "$1" reset -q --hard main
    me git -C "$1" -c protocol.file.allow=always submodule --quiet update --init
}
