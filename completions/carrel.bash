# shellcheck shell=bash
# Completion of carrel's command line for bash. tests/unit/manual_test compares it with --help.

_carrel_options() { # _carrel_options COMMAND: its options, one word each
    case $1 in
    run)
        echo "-c --timeout --cpu --memory --disk --pids --files --io-read --io-write --max-output --env --env-file" \
            "--cwd --mount --workdir --git-writable --cow --workspace --repo --base --fork --task --run --dirty" \
            "--include --history --setup --setup-key --tree --on-success --on-failure" \
            "--policy --profile --journal --store-code" \
            "--root --image --no-entrypoint --network --user --ids --hostname --stdin --tty --json --format" \
            "--output --quiet --runtime --require --best-effort --help"
        ;;
    python)
        echo "--inputs --python --venv --imports --block-import --allow-import --trusted"
        _carrel_options run
        ;;
    create)
        echo "--name --label --lease --idle --from"
        # Those of run that are about the sandbox and not about one program.
        _carrel_options run | tr ' ' '\n' |
            grep -vxE -e '-c|--(stdin|tty|format|output|max-output)'
        ;;
    exec)
        echo "--detach -c --timeout --env --env-file --cwd --user"
        _carrel_options attach
        ;;
    attach) echo "--max-output --stdin --tty --json --format --output --quiet --help" ;;
    ps | inspect) echo "--json --help" ;;
    signal | pause | resume) echo "--help" ;;
    renew) echo "--lease --idle --help" ;;
    update) echo "--memory --cpu --pids --io-read --io-write --help" ;;
    destroy) echo "--all --force --help" ;;
    cp | import) echo "--max-entries --max-bytes --user --json --help" ;;
    export) echo "--max-entries --max-bytes --user --help" ;;
    ls) echo "-l --user --json --help" ;;
    cat) echo "--user --help" ;;
    write) echo "--append --no-replace --mode --user --help" ;;
    rm) echo "-r -f --user --help" ;;
    mv) echo "--no-replace --user --help" ;;
    mkdir) echo "-p --mode --user --help" ;;
    stat) echo "--follow --user --json --help" ;;
    watch) echo "-r --count --user --json --help" ;;
    snapshot | snapshots) echo "--json --help" ;;
    fork) echo "-n --label --inherit-env --json --help" ;;
    health) echo "--json --help" ;;
    cleanup) echo "--all --force --json --help" ;;
    list) echo "--all --label --json --help" ;;
    runs) echo "--older-than --keep --dry-run --json --help" ;;
    test) echo "--runtime --json --help" ;;
    workspace)
        echo "--all --stat --name-status --uncommitted --color --message -m --squash --merge" \
            "--force --older-than --dry-run --at --repo --reason --json --help"
        ;;
    policy | "policy show") echo "--policy --profile --json --help" ;;
    "policy check") echo "--json --help" ;;
    "policy init") echo "--help" ;;
    journal) echo "--follow --key --output --force --json --help" ;;
    "journal show") echo "--follow --key --json --help" ;;
    "journal verify") echo "--key --json --help" ;;
    "journal export") echo "--key --output --force --json --help" ;;
    "journal "*) echo "--json --help" ;;
    image) echo "--tag --insecure --json --help" ;;
    "image import") echo "--tag --json --help" ;;
    "image pull") echo "--insecure --json --help" ;;
    "image "*) echo "--json --help" ;;
    "workspace list") echo "--all --json --help" ;;
    "workspace diff") echo "--stat --name-status --uncommitted --color --json --help" ;;
    "workspace log") echo "--color --json --help" ;;
    "workspace commit") echo "--message -m --json --help" ;;
    "workspace apply") echo "--squash --merge --repo --json --help" ;;
    "workspace merge" | "workspace cherry-pick") echo "--repo --json --help" ;;
    "workspace discard") echo "--force --json --help" ;;
    "workspace prune") echo "--all --older-than --dry-run --json --help" ;;
    "workspace open") echo "--at --json --help" ;;
    "workspace lock") echo "--reason --json --help" ;;
    "workspace resume" | "workspace shell") _carrel_options run ;;
    "workspace "*) echo "--json --help" ;;
    esac
}

# Candidates for the value of an option; fails for an option that takes none.
_carrel_value() { # _carrel_value OPTION WORD
    local before list

    case $1 in
    --history) mapfile -t COMPREPLY < <(compgen -W "full cut" -- "$2") ;;
    --tree) mapfile -t COMPREPLY < <(compgen -W "auto overlay copy" -- "$2") ;;
    --on-success) mapfile -t COMPREPLY < <(compgen -W "keep commit apply discard" -- "$2") ;;
    --on-failure) mapfile -t COMPREPLY < <(compgen -W "keep discard" -- "$2") ;;
    --journal) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$2") ;;
    --store-code) mapfile -t COMPREPLY < <(compgen -W "never on_error always" -- "$2") ;;
    --imports) mapfile -t COMPREPLY < <(compgen -W "off warn block" -- "$2") ;;
    --format) mapfile -t COMPREPLY < <(compgen -W "text json" -- "$2") ;;
    --color) mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$2") ;;
    --network) mapfile -t COMPREPLY < <(compgen -W "none host" -- "$2") ;;
    --ids) mapfile -t COMPREPLY < <(compgen -W "own sub" -- "$2") ;;
    --runtime) mapfile -t COMPREPLY < <(compgen -W "local process" -- "$2") ;;
    --user) mapfile -t COMPREPLY < <(compgen -W "root agent nobody" -- "$2") ;;
    --require | --best-effort)
        # A list with commas: only its last part is completed.
        list="memory pids cpu disk files io_read io_write"
        [ "$1" = --best-effort ] ||
            list="userns mountns pidns netns ipcns utsns cgroupns idmap rootfs proc dev
                no_new_privs capabilities seccomp landlock no_nesting rlimits memory pids cpu
                disk session environment descriptors"
        before=
        [[ $2 != *,* ]] || before=${2%,*},
        compopt -o nospace 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -P "$before" -W "$list" -- "${2##*,}")
        ;;
    --from)
        mapfile -t COMPREPLY < <(compgen -W "$(_carrel_snapshots)" -- "$2")
        ;;
    --image)
        mapfile -t COMPREPLY < <(compgen -W "none $(_carrel_images)" -- "$2")
        ;;
    --workdir | --root | --mount | --repo | --at | --venv)
        compopt -o filenames -o nospace 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$2")
        ;;
    --env-file | --output | --setup-key | --policy | --key | --inputs | --python)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$2")
        ;;
    --env)
        compopt -o nospace 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -e -S = -- "$2")
        ;;
    -c | --timeout | --cpu | --memory | --disk | --pids | --files | --max-output | --cwd | --hostname | \
        --io-read | --io-write | \
        --base | --fork | --task | --run | --include | --setup | --message | -m | --older-than | --reason | \
        --profile | --tag | --keep | --block-import | --allow-import | --name | --label | --lease | --idle | -n)
        COMPREPLY=()
        ;;
    *) return 1 ;;
    esac
}

# carrel workspace SUBCOMMAND ...: names of workspaces come from carrel itself.
_carrel_workspace() { # _carrel_workspace WORD
    local subcommand=${COMP_WORDS[2]} before=${COMP_WORDS[COMP_CWORD - 1]} list

    if [ "$COMP_CWORD" -eq 2 ]; then
        list="list show status diff log patch commit apply merge cherry-pick discard open close
            move shell resume lock unlock repair prune"
        [[ $1 != -* ]] || list=$(_carrel_options workspace)
    elif [[ $before == -* ]] && _carrel_value "$before" "$1"; then
        return
    elif [[ $1 == -* ]]; then
        list=$(_carrel_options "workspace $subcommand")
    else
        list=$("${COMP_WORDS[0]}" workspace list 2>/dev/null | sed -n '2,$s/ .*//p')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$1")
}

# carrel policy SUBCOMMAND ...
_carrel_policy() { # _carrel_policy WORD
    local subcommand=${COMP_WORDS[2]} before=${COMP_WORDS[COMP_CWORD - 1]} list

    if [ "$COMP_CWORD" -eq 2 ]; then
        list="show check init"
        [[ $1 != -* ]] || list=$(_carrel_options policy)
    elif [[ $before == -* ]] && _carrel_value "$before" "$1"; then
        return
    elif [[ $1 == -* ]]; then
        list=$(_carrel_options "policy $subcommand")
    elif [ "$subcommand" = check ] || [ "$subcommand" = init ]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$1")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$1")
}

_carrel_images() {
    "${COMP_WORDS[0]}" image list 2>/dev/null | sed -n '2,$s/ .*//p'
}

_carrel_snapshots() {
    "${COMP_WORDS[0]}" snapshots 2>/dev/null | sed -n '2,$s/ .*//p'
}

# carrel image SUBCOMMAND ...
_carrel_image() { # _carrel_image WORD
    local subcommand=${COMP_WORDS[2]} before=${COMP_WORDS[COMP_CWORD - 1]} list=

    if [ "$COMP_CWORD" -eq 2 ]; then
        list="import pull list inspect rm"
        [[ $1 != -* ]] || list=$(_carrel_options image)
    elif [[ $before == -* ]] && _carrel_value "$before" "$1"; then
        return
    elif [[ $1 == -* ]]; then
        list=$(_carrel_options "image $subcommand")
    elif [ "$subcommand" = import ]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$1")
        return
    elif [[ $subcommand == @(inspect|rm) ]]; then
        list=$(_carrel_images)
    fi
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$1")
}

# carrel journal SUBCOMMAND ...: runs come from carrel itself.
_carrel_journal() { # _carrel_journal WORD
    local subcommand=${COMP_WORDS[2]} before=${COMP_WORDS[COMP_CWORD - 1]} list=

    if [ "$COMP_CWORD" -eq 2 ]; then
        list="list show verify export keygen"
        [[ $1 != -* ]] || list=$(_carrel_options journal)
    elif [[ $before == -* ]] && _carrel_value "$before" "$1"; then
        return
    elif [[ $1 == -* ]]; then
        list=$(_carrel_options "journal $subcommand")
    elif [[ $subcommand == @(show|verify|export) ]]; then
        list=$("${COMP_WORDS[0]}" journal list 2>/dev/null | sed -n '2,$s/ .*//p')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$1")
}

# carrel COMMAND SANDBOX ...: sandboxes come from carrel itself, the program of exec from the host.
_carrel_living() { # _carrel_living WORD
    local command=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD - 1]} list="" i

    for ((i = 2; i < COMP_CWORD; i++)); do
        if [ "${COMP_WORDS[i]}" = "--" ]; then
            compopt -o filenames 2>/dev/null
            if [ "$i" -eq "$((COMP_CWORD - 1))" ]; then
                mapfile -t COMPREPLY < <(compgen -c -- "$1")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$1")
            fi
            return
        fi
    done
    if [[ $before == -* ]] && _carrel_value "$before" "$1"; then
        return
    elif [[ $1 == -* ]]; then
        list=$(_carrel_options "$command")
    elif [ "$command" = snapshot ] && [ "$before" = rm ]; then
        list=$(_carrel_snapshots)
    elif [ "$command" != create ]; then
        list=$("${COMP_WORDS[0]}" list --json 2>/dev/null |
            grep -oE '"(id|name)":"[^"]*"' | cut -d'"' -f4)
        [ "$command" != snapshot ] || [ "$COMP_CWORD" -ne 2 ] || list+=" rm"
    fi
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$1")
}

# carrel COMMAND SANDBOX:PATH ...: bash takes the colon for a word, or ends one with it.
_carrel_files() { # _carrel_files WORD
    local command=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD - 1]} box path list

    box='' path='' list=''
    if [[ $before == -* ]] && _carrel_value "$before" "$1"; then
        return
    elif [[ $1 == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_carrel_options "$command")" -- "$1")
        return
    elif [ "$1" = ":" ]; then
        box=$before
    elif [ "$before" = ":" ]; then
        box=${COMP_WORDS[COMP_CWORD - 2]} path=$1
    fi
    compopt -o nospace 2>/dev/null
    if [ -n "$box" ]; then
        [[ $path != */* ]] || list=${path%/*}/
        mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" ls "$box:$list" 2>/dev/null |
            sed "s|^|$list|" | grep -F -- "$path")
        return
    fi
    list=$("${COMP_WORDS[0]}" list --json 2>/dev/null |
        grep -oE '"(id|name)":"[^"]*"' | cut -d'"' -f4)
    mapfile -t COMPREPLY < <(compgen -S : -W "$list" -- "$1")
    if [ "$command" = cp ]; then
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$1")
    fi
}

_carrel() {
    local commands="run python create exec attach ps signal inspect renew pause resume update
        snapshot snapshots fork destroy cp ls cat write rm mv mkdir stat watch export import
        list workspace runs image policy journal health test cleanup help version"
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]:-} i

    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$word")
        return
    fi
    if [ "$command" = help ]; then
        [ "$COMP_CWORD" -ne 2 ] || mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
        return
    fi
    if [ "$command" = workspace ]; then
        _carrel_workspace "$word"
        return
    fi
    if [[ " create exec attach ps signal inspect renew pause resume update snapshot fork destroy " == *" $command "* ]]; then
        _carrel_living "$word"
        return
    fi
    if [[ " cp ls cat write rm mv mkdir stat watch export import " == *" $command "* ]]; then
        _carrel_files "$word"
        return
    fi
    if [ "$command" = policy ]; then
        _carrel_policy "$word"
        return
    fi
    if [ "$command" = image ]; then
        _carrel_image "$word"
        return
    fi
    if [ "$command" = journal ]; then
        _carrel_journal "$word"
        return
    fi
    # The words so far: options with their values, then the program.
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) break ;;
        -*)
            # bash takes "--name=value" for three words.
            [ "${COMP_WORDS[i + 1]:-}" != "=" ] || ((i++))
            if _carrel_value "${COMP_WORDS[i - (${#COMP_WORDS[i]} == 1)]}" "${word#=}"; then
                ((++i < COMP_CWORD)) || return 0
            fi
            COMPREPLY=()
            ;;
        *) break ;;
        esac
    done
    if [ "$i" -lt "$COMP_CWORD" ]; then
        [[ $command == run || $command == python ]] || return 0
        compopt -o filenames 2>/dev/null
        if [ "$i" -eq "$((COMP_CWORD - 1))" ] && [ "${COMP_WORDS[i]}" = "--" ]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$word")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
        fi
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_carrel_options "$command")" -- "$word")
    elif [ "$command" = run ]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
    elif [ "$command" = python ]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}

complete -F _carrel carrel
