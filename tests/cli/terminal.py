"""A person at a terminal, for tests of carrel run --tty, and of other commands that have it.

usage: terminal.py CASE CARREL [COMMAND...]

Each case starts carrel on a new pseudo-terminal, types, and checks what comes back. It ends with
0, or with an assertion that shows all that was on the screen.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

DEADLINE = 20  # seconds; for hangs only
CARREL = sys.argv[2]
COMMAND = sys.argv[3:] or ["run", "--quiet"]


class Terminal:
    def __init__(self, *words, rows=24, cols=80):
        self.screen = b""
        self.master, self.slave = os.openpty()
        self.resize(rows, cols, tell=False)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.login_tty(self.slave) if hasattr(os, "login_tty") else login(self.slave)
            os.close(self.master)
            os.execv(CARREL, [CARREL, *COMMAND, *words])

    def resize(self, rows, cols, tell=True):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text)

    def read_some(self, wait):
        if not select.select([self.master], [], [], wait)[0]:
            return False
        try:
            more = os.read(self.master, 65536)
        except OSError:  # EIO: the last user has closed it
            return False
        self.screen += more
        return bool(more)

    def expect(self, text):
        end = time.monotonic() + DEADLINE
        while text not in self.screen:
            assert time.monotonic() < end, f"never saw {text!r}, but {self.screen!r}"
            self.read_some(0.1)

    def end(self):
        """The wait status. We hold the slave, so that the modes can still be asked for."""
        end = time.monotonic() + DEADLINE
        while True:
            self.read_some(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"carrel did not end; on the screen: {self.screen!r}")
        while self.read_some(0.05):
            pass
        return os.waitstatus_to_exitcode(status)

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before


def login(fd):
    os.setsid()
    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(fd, number)


def case_is_a_terminal():
    t = Terminal("--tty", "-c", 'for i in 0 1 2; do test -t $i && echo is $i; done; tty; echo "<$TERM>"')
    assert t.end() == 0, t.screen
    assert t.screen.count(b"is ") == 3, t.screen
    assert b"/dev/pts/0" in t.screen, t.screen
    assert b"<>" not in t.screen, t.screen
    t = Terminal("-c", "test -t 0 || test -t 1 || test -t 2 || echo none")
    assert t.end() == 0 and b"none" in t.screen, t.screen


def case_exit_status():
    for words, want in ((["-c", "exit 7"], 7), (["-c", "kill -9 $$"], 137), (["--", "frobnicate"], 127)):
        t = Terminal("--tty", *words)
        assert t.end() == want, t.screen
        assert t.is_restored()


def case_size():
    t = Terminal("--tty", "-c", "stty size", rows=33, cols=77)
    assert t.end() == 0
    assert b"33 77" in t.screen, t.screen
    t = Terminal("--tty", "-c", 'trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done',
                 "--timeout", "60s")
    t.expect(b"ready")
    t.resize(12, 34)
    t.expect(b"12 34")
    t.type(b"\x03")
    t.end()


def case_size_of_visitor():
    """The program was started without us: its terminal becomes as large as ours."""
    t = Terminal("--tty", rows=33, cols=77)
    t.expect(b"33 77")
    t.type(b"\x03")
    t.end()


def case_typing():
    t = Terminal("--tty", "-c", 'read line; echo "got <$line>"; cat; echo "end of file"')
    until_raw(t)
    t.type(b"hello there\r")
    t.expect(b"got <hello there>")
    t.type(b"more\r")
    t.expect(b"more\r\nmore")  # the echo of one terminal, and what cat said
    t.type(b"\x04")
    t.expect(b"end of file")
    assert t.end() == 0
    assert t.screen.count(b"hello there") == 2, t.screen  # not echoed by both terminals
    assert t.is_restored()


def case_interrupt():
    t = Terminal("--tty", "-c", 'trap "echo caught" INT; echo ready; while :; do sleep 0.05; done')
    t.expect(b"ready")
    t.type(b"\x03")
    t.expect(b"caught")
    t.type(b"\x1c")  # SIGQUIT ends it
    assert t.end() == 131, t.screen
    assert t.is_restored()
    t = Terminal("--tty", "--", "sleep", "1000")
    until_raw(t)
    t.type(b"\x03")
    assert t.end() == 130, t.screen
    assert t.is_restored()


def until_raw(t):
    """carrel has taken the terminal over, and the program has its own."""
    end = time.monotonic() + DEADLINE
    while termios.tcgetattr(t.slave)[3] & termios.ICANON:
        assert time.monotonic() < end, "never became raw"
        t.read_some(0.02)
    # What is typed from now on is kept until the program's terminal is there.


def case_without_tty_interrupt():
    """Without --tty the caller's terminal stays as it is, and Ctrl-C is for carrel."""
    t = Terminal("-c", 'echo ready; trap "" INT; sleep 1000')
    t.expect(b"ready")
    assert t.is_restored()
    t.type(b"\x03")
    assert t.end() == 130, t.screen


def case_restored_after_signal():
    for sig, want in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        t = Terminal("--tty", "-c", "echo ready; sleep 1000")
        t.expect(b"ready")
        assert not t.is_restored()
        os.kill(t.pid, sig)
        assert t.end() == want, t.screen
        assert t.is_restored()


def case_restored_after_timeout():
    t = Terminal("--tty", "--timeout", "300ms", "-c", "stty raw -echo; sleep 1000")
    assert t.end() == 124, t.screen
    assert t.is_restored()


def case_hang_up():
    """The person closes the window."""
    t = Terminal("--tty", "-c", 'trap "" HUP; echo ready; sleep 1000')
    t.expect(b"ready")
    os.close(t.slave)
    os.close(t.master)
    end = time.monotonic() + DEADLINE
    while True:
        pid, _ = os.waitpid(t.pid, os.WNOHANG)
        if pid:
            return
        assert time.monotonic() < end, "carrel outlived its terminal"
        time.sleep(0.02)


def case_much_output():
    t = Terminal("--tty", "-c", "seq 1 50000; echo the end")
    t.expect(b"the end")
    assert t.end() == 0
    lines = t.screen.replace(b"\r", b"").split(b"\n")
    assert lines[:50000] == [b"%d" % i for i in range(1, 50001)]


def case_piped_terminal():
    """--tty when carrel itself has none: the program still gets one."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(w, 1)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.execv(CARREL, [CARREL, *COMMAND, "--tty", "-c", "tty; stty size"])
    os.close(w)
    text = b""
    while True:
        more = os.read(r, 65536)
        if not more:
            break
        text += more
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text
    assert b"/dev/pts/0" in text and b"24 80" in text, text


globals()["case_" + sys.argv[1]]()
