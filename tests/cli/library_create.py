"""Creates a sandbox from an interpreter with many threads, through libcarrel, and looks at its keeper.

usage: library_create.py LIBRARY
"""
import ctypes
import os
import sys
import threading


class Error(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int),
        ("origin", ctypes.c_int),
        ("reason", ctypes.c_char * 24),
        ("message", ctypes.c_char * 480),
    ]


class Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("run", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("labels", ctypes.c_void_p),
        ("from_", ctypes.c_char_p),
        ("lease_ms", ctypes.c_uint64),
        ("idle_ms", ctypes.c_uint64),
        ("receipt", ctypes.c_void_p),
    ]


def keeper_of(sandbox):
    """The process that has the sandbox's entry in the registry open."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fds = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        if any(f.endswith("/status/" + sandbox) for f in fds) and int(pid) != os.getpid():
            return pid, fds
    raise SystemExit("no keeper")


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.carrel_sandbox_id.restype = ctypes.c_char_p
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(50)]
    for thread in threads:
        thread.start()
    os.pipe()
    with open("marker", "w") as marker:
        os.set_inheritable(marker.fileno(), True)
        options = Options(size=ctypes.sizeof(Options))
        error = Error()
        handle = ctypes.c_void_p()
        code = library.carrel_sandbox_create(ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error))
        stop.set()
        if code < 0:
            raise SystemExit(error.message.decode())
        pid, fds = keeper_of(library.carrel_sandbox_id(handle).decode())
        with open(f"/proc/{pid}/maps") as maps:
            assert "python" not in maps.read(), "python is mapped"
        with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
            assert cmdline.read().startswith(b"carrel-keeper"), "its name"
        assert not any("marker" in fd or "pipe:" in fd for fd in fds), fds
        with open(f"/proc/{pid}/status") as status:
            assert "Threads:\t1\n" in status.read(), "threads"
        try:
            os.waitpid(-1, os.WNOHANG)
            raise SystemExit("a child is left")
        except ChildProcessError:
            pass
        code = library.carrel_sandbox_destroy(handle, None, ctypes.byref(error))
        library.carrel_sandbox_free(handle)
        if code < 0:
            raise SystemExit(error.message.decode())
    print("created and destroyed")


main()
