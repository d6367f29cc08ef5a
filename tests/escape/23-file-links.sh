# shellcheck shell=bash disable=SC2034,SC2154
# A program leaves links to the host's files in its workspace; then the file commands are used on
# them. If followed on the host, each would reach a file of the host.
prepare() {
    me mkdir "$T/work" "$T/outside"
    echo secret | me tee "$T/outside/file" >/dev/null
    stay --workdir "$T/work"
    inside "ln -s $T/outside/file final; ln -s $T/outside middle; ln -s ../outside relative
        mkdir real; echo inside >real/file; ln -s real inner; ln -s real/file good"
}
clean_up() { leave; }

is_untouched() {
    [ "$(ls -A "$T/outside")" = file ] && [ "$(cat "$T/outside/file")" = secret ]
}

bare() {
    local w=$T/work
    [ "$(me cat "$w/final")" = secret ] && echo "SUCCEEDED read-final"
    [ "$(me cat "$w/middle/file")" = secret ] && echo "SUCCEEDED read-middle"
    [ "$(me cat "$w/relative/file")" = secret ] && echo "SUCCEEDED read-relative"
    [ "$(me ls "$w/middle/")" = file ] && echo "SUCCEEDED list"
    me stat "$w/middle/file" >/dev/null && echo "SUCCEEDED stat"
    me sh -c 'echo secret >"$1/final"' - "$w" && echo "SUCCEEDED write-final"
    me sh -c 'echo x >"$1/middle/new"' - "$w" && echo "SUCCEEDED write-middle"
    me rm "$w/middle/new" && echo "SUCCEEDED remove"
    me mkdir "$w/middle/dir" && echo "SUCCEEDED mkdir"
    me mv "$w/middle/dir" "$w/middle/moved" && echo "SUCCEEDED move"
    me rmdir "$w/middle/moved"
    me cp -r "$w/middle/" "$T/copied" && echo "SUCCEEDED copy-out"
    me cp "$w/real/file" "$w/middle/in" && me rm "$w/middle/in" && echo "SUCCEEDED copy-in"
    me tar -C "$w/middle/" -cf "$T/x.tar" . && echo "SUCCEEDED export"
}

control() {
    [ "$(live cat "$stays:inner/file")" = inside ] && echo "WORKS read-middle"
    [ "$(live cat "$stays:good")" = inside ] && echo "WORKS read-final"
    [ "$(live ls "$stays:inner")" = file ] && echo "WORKS list"
    echo new | live write "$stays:inner/new" && live rm "$stays:inner/new" && echo "WORKS write"
    [ ! -e "$T/work/real/new" ]
}

attack() {
    refused read-final cat "$stays:final"
    refused read-middle cat "$stays:middle/file"
    refused read-relative cat "$stays:relative/file"
    refused list ls "$stays:middle/"
    refused stat stat --follow "$stays:middle/file"
    refused write-final write "$stays:final" <<<changed
    refused write-middle write "$stays:middle/new" <<<changed
    refused remove rm "$stays:middle/file"
    refused remove-tree rm -r "$stays:middle/."
    refused mkdir mkdir -p "$stays:middle/dir"
    refused move mv "$stays:real" "$stays:middle/moved"
    refused move-out mv "$stays:middle/file" "$stays:taken"
    refused copy-out cp "$stays:middle" "$T/taken"
    refused copy-in cp "$T/outside/file" "$stays:middle/in"
    refused export export "$stays:middle"
    refused import import "$stays:middle" </dev/null
    is_untouched || echo "SUCCEEDED changed $(ls -A "$T/outside")"
}

more() {
    # The links of the directory itself are left out, and not followed.
    live cp "$stays:." "$T/all" 2>/dev/null
    check "$title, as $who: a copy of all of it has nothing of the host" \
        [ "$(find "$T/all" | sed "s|$T/all||" | sort | tr '\n' ' ')" = " /good /inner /real /real/file " ]
    check "$title, as $who: the host's files are as they were" is_untouched
}
