#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# --network: none is nothing but loopback; host is the host's.

load cli

# A listener on the host's loopback, as the ordinary world has them. Sets $port.
listen() {
    # A file of its own, for carrel() overwrites .out.
    /usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.'"$1"')
s.bind((sys.argv[1], 0))
s.listen()
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"hello from the host")
    c.close()' "$2" >"$T/port" 3>&- &
    _cli_pids+=($!)
    until_true test -s "$T/port"
    port=$(cat "$T/port")
}

ask='import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
print(s.recv(100).decode())'

none() {
    listen AF_INET 127.0.0.1
    carrel run -- /usr/bin/python3 -c "$ask" 127.0.0.1 "$port"
    [ "$status" -ne 0 ]
    [[ "$err" == *"Connection refused"* ]]
    carrel run --network none -- /usr/bin/python3 -c "$ask" 127.0.0.1 "$port"
    [ "$status" -ne 0 ]
    carrel run --network host -- /usr/bin/python3 -c "$ask" 127.0.0.1 "$port"
    [ "$out" = "hello from the host" ]
}
@test "a listener on the host's loopback is reached with host only" { both none; }

only_lo() {
    carrel run -c 'sed "1,2d; s/:.*//; s/ //g" /proc/net/dev'
    [ "$out" = lo ]
    carrel run -- /usr/bin/python3 -c '
import socket
for i, name in socket.if_nameindex(): print(name)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.connect(("192.0.2.1", 53)); print("has a route")
except OSError as e:
    print(e.errno)'
    [ "$out" = $'lo\n101' ]
}
@test "none: there is only lo, and no route" { both only_lo; }

# As many libraries ask: only for families that are configured, which a loopback address does not count for.
localhost_by_name() {
    carrel run -- getent ahostsv4 localhost
    [[ $status -eq 0 && $out == 127.0.0.1* ]]
    carrel run -- /usr/bin/python3 -c '
import socket
print(socket.getaddrinfo("localhost", 80, socket.AF_INET, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)[0][4])
for address in ("10.0.2.2", "10.0.0.1"):
    try:
        socket.create_connection((address, 80), 5); print("has a route")
    except OSError as e:
        print(e.errno)'
    [ "$out" = $'(\'127.0.0.1\', 80)\n101\n101' ]
}
@test "none: localhost is found with AI_ADDRCONFIG" { both localhost_by_name; }

lo_is_up() {
    carrel run -- /usr/bin/python3 -c '
import socket
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    try:
        server = socket.socket(family)
    except OSError as e:
        print("ok"); continue      # a kernel without IPv6
    server.bind((address, 0)); server.listen()
    client = socket.create_connection(server.getsockname()[:2], timeout=5)
    peer, _ = server.accept()
    peer.sendall(b"x"); assert client.recv(1) == b"x"
    print("ok")
print(socket.gethostbyname("localhost"))'
    [ "$out" = $'ok\nok\n127.0.0.1' ]
    # The same port as on the host is free.
    listen AF_INET 127.0.0.1
    carrel run -- /usr/bin/python3 -c 'import socket, sys
s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1]))); print("free")' "$port"
    [ "$out" = free ]
}
@test "none: loopback is up and private" { both lo_is_up; }

two_sandboxes() {
    me mkdir w
    background run --workdir "$T/w" -- /usr/bin/python3 -c '
import socket
s = socket.socket(); s.bind(("127.0.0.1", 7777)); s.listen(); open("ready", "w")
s.accept()'
    until_true test -e "$T/w/ready"
    carrel run -- /usr/bin/python3 -c "$ask" 127.0.0.1 7777
    [ "$status" -ne 0 ]
    kill -TERM "$pid"
}
@test "none: two sandboxes do not see each other" { both two_sandboxes; }

names() {
    carrel run --json --network host -- true
    holds '"netns" not in r["protections"]'
    carrel run --json -- true
    holds '"netns" in r["protections"]'
    carrel run --network host -c 'sed "1,2d; s/:.*//; s/ //g" /proc/net/dev | sort'
    [ "$out" = "$(sed '1,2d; s/:.*//; s/ //g' /proc/net/dev | sort)" ]
}
@test "host: the interfaces are the host's, and the result does not claim otherwise" { both names; }

# A process has one listener at most: init cannot be asked, and no other process makes the socket.
under_a_listener() {
    me sh -c 'cat >under.py' <<'PY'
import ctypes, os, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
allow = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(allow)))
libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
seccomp = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
NEW_LISTENER = 8
if libc.syscall(seccomp, 1, NEW_LISTENER, program) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
sys.exit(subprocess.call(sys.argv[1:]))
PY
    local ask='import socket
try:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
    print("made")
except OSError as why:
    print(why.strerror)'
    carrel run --quiet -- /usr/bin/python3 -c "$ask"
    [ "$out" = made ]
    out=$(me /usr/bin/python3 under.py "$CARREL" run --quiet -- /usr/bin/python3 -c "$ask")
    [ "$out" = "Function not implemented" ]
}
@test "under a filter with a listener there are sandboxes, without netlink sockets" { both under_a_listener; }
