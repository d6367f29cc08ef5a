#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154,SC2016  # cli.bash sets $status, $out and others
# carrel python: what goes in, what comes out, what is refused, and what a program may do to it.

load cli

setup() {
    command -v /usr/bin/python3 >/dev/null || skip "there is no /usr/bin/python3"
}

# py ARG...: carrel python with the result as JSON.
py() { carrel python --quiet --json "$@"; }

# meta NAME: a list of the result's meta, with spaces between.
meta() { json "\" \".join(r[\"meta\"][\"$1\"])"; }

write() { # write FILE: standard input becomes a file of the present identity's
    cat >"$T/$1"
    [ "$who" = root ] || chown "$(me id -u)" "$T/$1"
}

# ---- in and out ---------------------------------------------------------------------------------

values() {
    echo '{"numbers": [3, 4, 5], "name": "é"}' | write in.json
    py --inputs in.json -c 'result = {"sum": sum(inputs["numbers"]), "name": inputs["name"]}'
    [ "$status" -eq 0 ]
    holds 'r["result"] == {"sum": 12, "name": "é"} and r["ok"] and r["message"] == ""'
    holds 'r["result_error"] is None and r["error"] is None and r["reason"] == "exited"'
    py -c 'result = [inputs, __name__]'
    holds 'r["result"] == [{}, "__main__"]'
    py -c 'x = 1'
    holds 'r["result"] is None and r["result_error"] is None'
}
@test "inputs go in and a result comes out" { both values; }

live() {
    carrel python -c 'import sys; print("out"); print("err", file=sys.stderr); sys.exit(3)'
    [ "$status" -eq 3 ]
    [ "$out" = out ]
    [ "$err" = $'err\ncarrel: Execution failed: err' ]
    carrel python -c 'print(1)'
    [ "$status" -eq 0 ]
    [ "$out" = 1 ]
    [ -z "$err" ]
}
@test "output is passed on, and the status is the program's own" { both live; }

words() {
    echo 'import sys; result = [sys.argv, __file__, __name__]' | write prog.py
    py prog.py a --b
    holds 'r["result"] == [["prog.py", "a", "--b"], "prog.py", "__main__"]'
    carrel python prog.py --json -- --json ''
    holds 'r["result"][0] == ["prog.py", "--json", ""]'
    py -c 'import sys; result = [sys.argv, "__file__" in globals()]' x
    holds 'r["result"] == [["-c", "x"], False]'
    carrel_reads 'import sys; result = sys.argv' python --quiet --json - x
    holds 'r["result"] == ["-c", "x"]'
    carrel_reads 'result = 6 * 7' python --quiet --json
    holds 'r["result"] == 42'
}
@test "a file, code, standard input: each with its arguments" { both words; }

stdin_passes() {
    carrel_reads "spoken" python --stdin -c 'print(input().upper())'
    [ "$out" = SPOKEN ]
}
@test "--stdin is for the program when its code comes from elsewhere" { both stdin_passes; }

private_place() {
    py -c 'import os
open("made", "w").close()
result = [os.getcwd(), os.listdir("."), sorted(os.listdir(os.environ["HOME"])), len(os.listdir("/proc/self/fd"))]'
    # 0 1 2, the report, and the one that listdir itself opens
    holds 'r["result"] == ["/workspace", ["made"], [], 5]'
    mkdir "$T/dir"
    echo 'value = 7' | write dir/helper.py
    [ "$who" = root ] || chown "$(me id -u)" "$T/dir"
    py --workdir dir -c 'import helper; result = helper.value'
    holds 'r["result"] == 7'
    [ -z "$(find "$T/dir" -name '.carrel*')" ]
}
@test "the working directory is private, and nothing of ours is in it" { both private_place; }

isolated() {
    echo 'raise SystemExit("planted")' | write json.py
    py --workdir .:ro --env PYTHONPATH=/workspace --env PYTHONSTARTUP=/workspace/json.py -c 'result = 1'
    [ "$status" -eq 0 ]
    holds 'r["result"] == 1'
}
@test "files in the workspace and PYTHON variables do not reach what runs before the program" { both isolated; }

# ---- errors -------------------------------------------------------------------------------------

uncaught() {
    carrel python --json --max-output 20 -c '1/0' # however little of it is shown
    holds 'r["message"] == "Execution failed: ZeroDivisionError: division by zero"'
    printf 'def f(x):\n    return 1 / x\n\nresult = "so far"\nf(0)\n' | write bad.py
    py bad.py
    [ "$status" -eq 1 ]
    holds 'r["message"] == "Execution failed: ZeroDivisionError: division by zero"'
    holds 'r["error"]["type"] == "ZeroDivisionError" and r["error"]["message"] == "division by zero"'
    holds 'r["error"]["line"] == 2 and r["result"] == "so far"'
    holds '"File \"bad.py\", line 5, in <module>\n    f(0)\n" in r["error"]["traceback"]'
    holds 'r["error"]["traceback"] == r["stderr"]'
    holds '"<string>" not in r["stderr"]'
}
@test "an exception comes back with type, message, traceback and line" { both uncaught; }

exits() {
    py -c 'raise SystemExit'
    [ "$status" -eq 0 ]
    py -c 'import sys; sys.exit("a reason")'
    [ "$status" -eq 1 ]
    holds 'r["error"] is None and r["message"] == "Execution failed: a reason"'
    py -c 'raise SystemExit(300)'
    [ "$status" -eq 44 ]
    holds 'r["message"] == "Execution failed: exit status 44"'
    py -c 'raise KeyboardInterrupt'
    [ "$status" -eq 130 ]
    holds 'r["reason"] == "signaled" and r["error"]["type"] == "KeyboardInterrupt"'
    py -c 'import os; result = 1; os._exit(5)'
    [ "$status" -eq 5 ]
    holds 'r["result"] is None and "ended the interpreter" in r["result_error"]'
    py -c 'import os, signal; os.kill(os.getpid(), signal.SIGSEGV)'
    [ "$status" -eq 139 ]
    holds 'r["reason"] == "signaled" and r["error"] is None'
    py -c 'def f(): f()
f()'
    [ "$status" -eq 1 ]
    holds 'r["error"]["type"] == "RecursionError"'
    py --memory 64M --best-effort memory -c 'x = bytearray(1 << 30)'
    holds 'r["reason"] == "memory_limit" or r["error"]["type"] == "MemoryError"'
}
@test "every way to end is told as python has it" { both exits; }

own_hook() {
    py -c 'import sys
sys.excepthook = lambda t, e, tb: print("mine:", e, file=sys.stderr)
raise ValueError("x")'
    [ "$status" -eq 1 ]
    holds 'r["stderr"] == "mine: x\n" and r["message"] == "Execution failed: mine: x"'
    py -c 'import sys, traceback
try:
    1 / 0
except ZeroDivisionError:
    result = traceback.format_exc()'
    holds '"    1 / 0\n" in r["result"]'
}
@test "hooks of the program are called, and tracebacks it makes have lines" { both own_hook; }

syntax() {
    printf 'x = 1\ny = (2,\n' | write bad.py # older versions than 3.10 see it at the end
    py bad.py
    [ "$status" -eq 1 ]
    holds 'r["reason"] == "syntax_error" and not r["ok"]'
    holds 'r["message"] == "Python syntax error: %s (line 2, column 5)" % "'"'(' was never closed"'"'
    holds 'r["error"]["type"] == "SyntaxError" and r["error"]["line"] == 2'
    py -c 'print("ran"); return 5'
    holds 'r["reason"] == "syntax_error" and r["stdout"] == ""'
    printf 'x = "a\0b"\n' | write nul.py
    py nul.py
    holds 'r["reason"] == "syntax_error" and "null byte" in r["message"]'
    printf 'x = "\xe9"\n' | write latin.py
    py latin.py
    holds 'r["reason"] == "syntax_error"'
    printf '# coding: latin-1\nresult = "\xe9"\n' | write latin.py
    py latin.py
    holds 'r["result"] == "é"'
    /usr/bin/python3 -c 'print("-" * 200000 + "1")' | write deep.py
    py deep.py
    holds 'r["reason"] == "syntax_error"'
}
@test "a syntax error has line and column, and nothing has run" { both syntax; }

timeout_in_seconds() {
    py --timeout 300ms -c 'print("begun", flush=True)
while True: pass'
    [ "$status" -eq 124 ]
    holds 'r["message"] == "Code execution timed out after 0.3s" and r["reason"] == "timeout"'
    py --timeout 1s -c 'import threading, time
print("printed")
threading.Thread(target=time.sleep, args=(600,)).start()
result = 1'
    [ "$status" -eq 124 ]
    holds 'r["message"] == "Code execution timed out after 1s" and r["stdout"] == "printed\n"'
}
@test "a timeout is said in seconds, and what was printed is not lost" { both timeout_in_seconds; }

# ---- results that are none ----------------------------------------------------------------------

no_json() {
    local code
    for code in '{1, 2}' 'b"x"' 'float("nan")' 'float("inf")' 'object()' '10 ** 5000' '"\ud800"' \
        '{(1, 2): 3}' '__import__("dataclasses").make_dataclass("A", ["x"])(1)'; do
        py -c "result = $code"
        [ "$status" -eq 0 ]
        holds 'r["ok"] and r["result"] is None and len(r["result_error"]) > 20'
    done
    py -c 'result = []; result.append(result)'
    holds '"Circular" in r["result_error"]'
    py -c 'result = []
for i in range(300): result = [result]'
    holds '"nesting" in r["result_error"]'
    py -c 'result = "x" * (1 << 20)'
    holds 'r["result_error"] == "the result has 1048578 bytes of JSON, more than 1048576"'
    py -c 'class Bad(dict):
    def items(self): raise SystemExit(3)
result = Bad(a=1)'
    [ "$status" -eq 0 ]
    holds 'r["result"] is None and "3" in r["result_error"]'
    py -c 'result = 10 ** 4000'
    holds 'r["result"] == 10 ** 4000'
}
@test "what cannot be JSON is left out with the reason" { both no_json; }

hostile() {
    # It forks, closes everything, replaces what we left to it, and forges what it can reach.
    py -c 'import os
pid = os.fork()
result = "child" if pid == 0 else "parent"
if pid: os.waitpid(pid, 0)'
    holds 'r["result"] == "parent"'
    py -c 'import os
os.closerange(3, 100)
mine = [open("/tmp/%d" % i, "w+") for i in range(50)]
result = 1'
    [ "$status" -eq 0 ]
    holds 'r["result"] is None and "closed its files" in r["result_error"]'
    py -c 'import os
os.close(1); os.close(2); result = 2'
    holds 'r["result"] == 2'
    py -c 'import json, os, stat
for fd in range(3, 100):
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.write(fd, json.dumps({"result": "\x9b2J", "runs": False, "syntax": {"message": "no"}, "blocked": []}).encode())
    except OSError: pass
os._exit(0)'
    holds 'r["reason"] == "exited" and r["result"] == "\x9b2J" and "os" in r["meta"]["blocked_imports"]'
    [[ "$out" == *'"\u009b2J"'* ]]
    py -c 'import json
json.dumps = lambda *a, **k: "{\"a\": nonsense"
result = 1'
    holds 'r["result"] is None and "cannot be read" in r["result_error"]'
    # What was found before it ran is not in the pipe any more, also for its other end.
    py -c 'import os
fd = os.open("/proc/self/fd/4", os.O_RDONLY | os.O_NONBLOCK)
try: taken = os.read(fd, 65536)
except BlockingIOError: taken = b""
os.write(4, b"{\"runs\": false, \"blocked\": []}\n")
result = len(taken)'
    holds 'r["reason"] == "exited" and r["result"] is None and "os" in r["meta"]["blocked_imports"]'
    # More than a report has: it is cut off there.
    py --timeout 60s -c 'import os
try:
    while True: os.write(4, b"x" * 65536)
except BrokenPipeError: os._exit(0)'
    [ "$status" -eq 0 ]
    holds 'r["result"] is None and "cannot be read" in r["result_error"]'
    py -c 'import os, subprocess
result = subprocess.run(["ls", "/proc/self/fd"], stdout=subprocess.PIPE, close_fds=False).stdout.decode().split()'
    holds 'r["result"] == ["0", "1", "2", "3"]'
    py --timeout 20s -c 'import subprocess
subprocess.Popen(["sleep", "600"]); result = 3'
    holds 'r["result"] == 3 and r["reason"] == "exited"'
    py --disk 2M --best-effort disk -c 'f = open("/tmp/f", "wb")
while True: f.write(b"x" * 65536)'
    [ "$status" -eq 1 ]
    holds 'r["reason"] == "disk_limit" and r["error"]["type"] == "OSError" and r["error"]["line"] == 2'
}
@test "a program that turns against its report harms only its own result" { both hostile; }

# ---- import rules -------------------------------------------------------------------------------

blocked() { # blocked CODE MODULE
    carrel python --imports block --json -c "print('ran'); $1"
    [ "$status" -eq 126 ]
    holds 'r["reason"] == "blocked_import" and not r["ok"] and r["stdout"] == ""'
    [ "$(json 'r["message"]')" = "Security policy blocked import: $2" ]
    [ "$err" = "carrel: Security policy blocked import: $2" ]
}
all_forms() {
    blocked 'import os' os
    blocked 'import math, os.path as p' os.path
    blocked 'from os import path' os
    blocked 'from subprocess import *' subprocess
    blocked 'from . import socket' .socket
    blocked 'from ..socket import x' ..socket
    blocked $'\ndef f():\n    try:\n        import shutil\n    except ImportError: pass' shutil
    blocked $'\nTYPE_CHECKING = False\nif TYPE_CHECKING:\n    import pathlib' pathlib
    blocked '__import__("ctypes")' ctypes
    blocked '__import__(name="ctypes.util")' ctypes.util
    blocked $'\nimport builtins as b\nb.__import__("socket")' socket
    blocked $'\nload = __import__\nagain = load\nagain("socket")' socket
    py --imports block --block-import json -c 'import json.decoder, jsonx'
    [ "$(meta blocked_imports)" = json.decoder ]
    py --imports block --allow-import importlib --block-import ctypes -c 'import importlib as i
from importlib import import_module as im
i.import_module("ctypes"); im(".util", "ctypes"); im(name=".x", package="ctypes.y")'
    [ "$(meta blocked_imports)" = "ctypes ctypes.util ctypes.y.x" ]
}
@test "imports are found wherever and however they are written" { both all_forms; }

not_blocked() {
    py --imports block -c 'import math, re, json, datetime; osmosis = "import os"; result = "__import__"'
    [ "$status" -eq 0 ]
    [ "$(meta imports)" = "math re json datetime" ]
    [ -z "$(meta blocked_imports)" ]
}
@test "what the rules do not name runs" { both not_blocked; }

modes() {
    me timeout 60 "$CARREL" python -c 'import os, socket; print("ran")' >"$T/.out" 2>"$T/.err"
    [ "$(cat "$T/.out")" = ran ]
    grep -q '^carrel: note: .*the import rules would block: os, socket$' "$T/.err"
    py -c 'import os, socket'
    [ "$(meta blocked_imports)" = "os socket" ]
    py --imports off -c 'import os'
    [ -z "$(meta blocked_imports)" ]
    [ "$(meta imports)" = os ]
    py --imports block --trusted -c 'import os; result = 1'
    holds 'r["result"] == 1'
    status=0
    me env SANDBOX_BLOCK_DANGEROUS_IMPORTS=true "$CARREL" python -c 'import os' 2>"$T/.err" || status=$?
    [ "$status" -eq 126 ]
    grep -q '^carrel: Security policy blocked import: os$' "$T/.err"
    status=0
    me env SANDBOX_BLOCK_DANGEROUS_IMPORTS=perhaps "$CARREL" python -c 'import os' 2>"$T/.err" || status=$?
    [ "$status" -eq 125 ]
    grep -q SANDBOX_BLOCK_DANGEROUS_IMPORTS "$T/.err"
}
@test "warn is the default; off, block and --trusted; the variable blocks" { both modes; }

allow_list() {
    py --imports block --allow-import math,os.path -c 'import math; from os import path; import os.path'
    [ "$status" -eq 0 ]
    py --imports block --allow-import math -c 'import math, re'
    [ "$(meta blocked_imports)" = re ]
    py --imports block --allow-import os --block-import os.path -c 'from os import getcwd, path'
    [ "$(meta blocked_imports)" = os.path ]
}
@test "with a list of what is allowed all else is blocked" { both allow_list; }

policy_rules() {
    echo 'python: {imports: {mode: block, block: [json]}, allow_trusted: false}' | write carrel.yaml
    py -c 'import os, json'
    [ "$(meta blocked_imports)" = "os json" ] || [ "$(meta blocked_imports)" = json ]
    carrel python --trusted -c 'pass'
    is_one_error 125 '*--trusted is not allowed: python.allow_trusted is false in *carrel.yaml:1:*'
}
@test "a policy file decides too, and may refuse --trusted" { both policy_rules; }

# ---- interpreters -------------------------------------------------------------------------------

venv() {
    me /usr/bin/python3 -m venv --without-pip "$T/home/.venvs/one" || skip "python3-venv is not installed"
    local site
    site=$(echo "$T"/home/.venvs/one/lib/python3*/site-packages)
    echo 'value = "from the venv"' | write "${site#"$T"/}/only_here.py"
    echo secret | write home/secret
    py --venv home/.venvs/one -c 'import only_here, os, sys
where = os.path.dirname(os.path.dirname(sys.prefix))
result = [only_here.value, sys.prefix, os.listdir(where), os.access(sys.prefix, os.W_OK)]'
    [ "$status" -eq 0 ]
    holds "r['result'] == ['from the venv', '$T/home/.venvs/one', ['.venvs'], False]"
    carrel python --venv home -c 'pass'
    is_one_error 125 "*'home' is not a virtual environment: it has no readable pyvenv.cfg*"
    carrel python --venv home/.venvs/one --python python3 -c 'pass'
    is_one_error 125 '*--venv and --python cannot be combined'
    py --venv home/.venvs/one --runtime process -c 'import only_here; result = only_here.value'
    holds 'r["result"] == "from the venv"'
}
@test "a virtual environment below a home is shown, and nothing beside it" { both venv; }

# An installation of its own: the system's library and program under another prefix, which has two
# names, as version managers make them.
other_installation() {
    local version
    version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [ -e "/usr/lib/python$version/os.py" ] || skip "python's library is not in /usr/lib"
    mkdir -p "$T/opt/py-1/bin" "$T/opt/py-1/lib"
    cp -L /usr/bin/python3 "$T/opt/py-1/bin/python$version"
    cp -rL "/usr/lib/python$version" "$T/opt/py-1/lib/" 2>/dev/null || true
    ln -s "python$version" "$T/opt/py-1/bin/python3"
    ln -s py-1 "$T/opt/py"
    [ "$who" = root ] || chown -R "$(me id -u)" "$T/opt"
    py --python "$T/opt/py/bin/python3" -c 'import os, sys; result = [sys.base_prefix, sorted(os.listdir("'"$T"'/opt"))]'
    [ "$status" -eq 0 ]
    holds "r['result'][1] == ['py', 'py-1'] and r['result'][0].startswith('$T/opt/py')"
    holds "\"mounted for Python: '$T/opt/py' is $T/opt/py-1, '$T/opt/py-1'\" in r['note']"
    me "$T/opt/py/bin/python3" -m venv --without-pip "$T/v"
    py --venv v -c 'import os, sys; result = [sys.prefix, os.path.dirname(os.__file__)]'
    [ "$status" -eq 0 ]
    holds "r['result'][0] == '$T/v' and r['result'][1].startswith('$T/opt/py')"
}
@test "an installation outside of /usr is shown under all its names" { both other_installation; }

strange_interpreters() {
    carrel python --python no-such-python -c 'pass'
    is_one_error 127 "*'no-such-python'*"
    carrel python --python echo --json -c 'pass'
    [ "$status" -eq 125 ]
    holds 'r["reason"] == "infrastructure" and not r["ok"]'
    holds '"ended before the program began" in r["message"]'
}
@test "what is no Python 3 is not taken for a program that ran" { both strange_interpreters; }

# ---- what is refused before anything runs -------------------------------------------------------

refusals() {
    carrel python missing.py
    is_one_error 127 "carrel: 'missing.py': No such file or directory"
    carrel python .
    is_one_error 126 "carrel: '.': is a directory; expected a regular file"
    me sh -c 'rm -f way code.fifo; mkfifo code.fifo; ln -s /etc/passwd way'
    carrel python code.fifo
    is_one_error 125 "carrel: 'code.fifo': is a FIFO; expected a regular file"
    carrel python way
    is_one_error 125 "carrel: 'way': is a link; carrel does not follow links there*"
    carrel python --inputs way -c 'pass'
    is_one_error 125 "carrel: --inputs: 'way': is a link; carrel does not follow links there*"
    carrel python --inputs code.fifo -c 'pass'
    is_one_error 125 "carrel: --inputs: 'code.fifo': is a FIFO; expected a regular file"
    printf '{"a": 1,\n "b": }' | write bad.json
    carrel python --inputs bad.json -c 'pass'
    is_one_error 125 'carrel: --inputs: bad.json: line 2, column 7: *'
    echo '[1]' | write list.json
    carrel python --inputs list.json -c 'pass'
    is_one_error 125 'carrel: --inputs: list.json: expected a JSON object*'
    carrel python --inputs none.json -c 'pass'
    is_one_error 125 "carrel: --inputs: 'none.json': No such file or directory"
    carrel python --json --inputs list.json -c 'pass'
    holds 'r["reason"] == "infrastructure" and r["meta"] is None'
    carrel python --json missing.py
    [ "$status" -eq 127 ]
    holds 'r["reason"] == "infrastructure"'
    head -c 17000000 /dev/zero | write big.py
    carrel python big.py
    is_one_error 125 "carrel: 'big.py' is larger than 16777216 bytes"
}
@test "files that cannot be read and inputs that are none: one line" { both refusals; }

on_a_terminal() {
    me timeout 20 script -qec "$CARREL python" /dev/null >"$T/.out" 2>&1 </dev/null && status=0 || status=$?
    cat "$T/.out"
    [ "$status" -eq 125 ]
    grep -q "no code; expected 'carrel python FILE'" "$T/.out"
}
@test "without code and on a terminal it says what it expected" {
    command -v script >/dev/null || skip "there is no script(1)"
    both on_a_terminal
}

# ---- the other runtime, and the text for models -------------------------------------------------

without_isolation() {
    mkdir "$T/dir"
    [ "$who" = root ] || chown "$(me id -u)" "$T/dir"
    py --runtime process --workdir dir -c 'import os; result = os.getcwd(); open("made", "w")'
    holds "r['result'] == '$T/dir'"
    [ "$(ls -A "$T/dir")" = made ]
    py --runtime process -c 'x = ('
    holds 'r["reason"] == "syntax_error"'
    py --runtime process --imports block -c 'import os'
    [ "$status" -eq 126 ]
}
@test "the runtime without isolation gives the same answers" { both without_isolation; }

text_form() {
    carrel python --format text -c 'print("hello"); result = {"a": 1}'
    [ "$status" -eq 0 ]
    [ "$(sed -E 's/[0-9.]+s\)/Ns)/' <<<"$out")" = $'status: ok (exit 0, Ns)\nresult: {"a": 1}\nstdout:\nhello' ]
    carrel run --format text -c 'echo out; printf "\033[31mred\n" >&2; exit 3'
    [ "$status" -eq 3 ]
    [ "$(sed -E 's/[0-9.]+s\)/Ns)/' <<<"$out")" = $'status: failed (exit 3, Ns)\nstdout:\nout\nstderr:\n\\x1b[31mred' ]
    local budget
    for budget in 1 20 64 200 1000 5000; do
        carrel python --format text --max-output "$budget" -c 'import sys
print("é€" * 100000); print("e" * 100000, file=sys.stderr); result = "r" * 100000'
        [ "$(wc -c <"$T/.out")" -le "$budget" ]
        iconv -f UTF-8 -t UTF-8 "$T/.out" >/dev/null
    done
    grep -q 'bytes in all; cut' "$T/.out"
    carrel run --format text -- /no/such/program
    [ "$status" -eq 127 ]
    [[ "$out" == "status: infrastructure: "* ]]
    carrel run --format json -- true
    holds 'r["ok"]'
}
@test "--format text is short, safe, and never more than asked" { both text_form; }
