"""Random use of living sandboxes by many clients, then a look for what is left.

usage: soak.py [--seconds N] [--seed N] [--clients N] [--carrel FILE] [--name TEXT] [--first N]

Each client makes, uses, forks, pauses, kills and destroys sandboxes, and cleans up, in an order that
the seed decides; keepers and inits are killed with SIGKILL on the way. A command may say that the sandbox
is gone, paused or busy; anything else it fails with is a failure here. Two sandboxes live from the
beginning to the end and are used by all clients; one of them is forked as well. Their keepers, and
the init that is never made anew, must not end with more descriptors than after their first use.
When time is up all are destroyed, `carrel cleanup` runs, and no process, mount, cgroup, registry
entry or layer may be left that was not there before.

It runs in a mount namespace with a /run/carrel of its own, so that other sandboxes are not
disturbed, and below a process that adopts whatever loses its parent: all that descends from that
one is ours, keepers and inits too, which carry nothing of us in their environment. Prints TAP
without a plan: its tests are numbered from --first on, and are as many as `checks` in tests/soak/run.
"""

import argparse
import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ALLOWED = re.compile(
    r"no living sandbox|has ended|has just ended|is paused|is being|sandbox ended|ended before it|"
    r"there is no sandbox|No such file|no process|is attached|forks ended|snapshot '|"
    r"is gone|waits in the queue|not found in the sandbox|No such process|Broken pipe"
)


class Soak:
    def __init__(self, args, state):
        self.args = args
        self.state = state
        self.lock = threading.Lock()
        self.ids = []
        self.lasting = {}  # permanent sandboxes -> keeper, init, descriptors of both
        self.counts = {}
        self.failures = []
        self.end = 0
        self.env = dict(os.environ, XDG_STATE_HOME=state, LC_ALL="C")
        self.env.pop("CARREL_POLICY", None)

    def note(self, name):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1

    def fail(self, text):
        with self.lock:
            self.failures.append(text)

    def carrel(self, *words, data=None, may_fail=True, timeout=120):
        """Runs carrel; returns (status, stdout). Notes what must not happen."""
        try:
            done = subprocess.run(
                [self.args.carrel, *words], input=data, capture_output=True, env=self.env,
                timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            self.fail(f"{' '.join(words)}: no answer within {timeout} s")
            return 124, b""
        errors = done.stderr.decode(errors="replace").strip()
        if done.returncode < 0:
            self.fail(f"{' '.join(words)}: ended by signal {-done.returncode}: {errors}")
        elif done.returncode in (125, 126, 127) and not (may_fail and ALLOWED.search(errors)):
            self.fail(f"{' '.join(words)}: {done.returncode}: {errors}")
        return done.returncode, done.stdout

    def pick(self, rng):
        with self.lock:
            return rng.choice(self.ids) if self.ids else None

    def forget(self, box):
        with self.lock:
            if box in self.ids:
                self.ids.remove(box)

    # --- what a client does ---

    def create(self, rng):
        words = ["create", "--lease", rng.choice(["3s", "10s", "60s"]), "--disk", "64M", "--best-effort", "disk"]
        if rng.random() < 0.3:
            words += ["--label", f"k={rng.randrange(4)}"]
        if rng.random() < 0.2:
            words += ["--idle", "2s"]
        status, out = self.carrel(*words, may_fail=False)
        if status == 0:
            with self.lock:
                self.ids.append(out.decode().strip())

    def execute(self, rng, box):
        line = rng.choice([
            "true", "exit 3", "echo hello", "head -c 100000 /dev/zero",
            f"head -c {rng.randrange(1, 4)}000000 /dev/urandom >/workspace/f{rng.randrange(8)}",
            "rm -rf /workspace/d; mkdir -p /workspace/d/e; echo x >/workspace/d/e/f",
            "sleep 0.2 & echo $!", "kill -9 $$", "cat /proc/1/environ; ls /proc >/dev/null",
        ])
        self.carrel("exec", "--timeout", "20s", box, "-c", line)

    def detach(self, rng, box):
        status, out = self.carrel("exec", "--detach", "--timeout", "5s", box, "-c",
                                  rng.choice(["sleep 1; echo done", "echo now; exit 4"]))
        if status == 0 and rng.random() < 0.7:
            self.carrel("attach", box, out.decode().strip())

    def write(self, rng, box):
        data = rng.randbytes(rng.randrange(1, 200000))
        status, _ = self.carrel("write", f"{box}:/workspace/w{rng.randrange(4)}", data=data)
        if status == 0:
            self.carrel("ls", f"{box}:/workspace")

    def fork(self, rng, box):
        status, out = self.carrel("fork", box, "-n", str(rng.randrange(1, 4)))
        with self.lock:
            self.ids += out.decode().split()
        return status

    def pause(self, rng, box):
        self.carrel("pause", box)
        if rng.random() < 0.8:
            self.carrel("resume", box)

    def look(self, rng, box):
        self.carrel(rng.choice(["ps", "inspect"]), box)
        self.carrel("list", may_fail=False)

    def renew(self, rng, box):
        self.carrel("renew", box, "--lease", rng.choice(["1s", "5s", "60s"]))

    def kill(self, rng, box):
        """SIGKILL for the keeper or for its init, which is its child."""
        status, out = self.carrel("inspect", box)
        found = re.search(rb'"pid":(\d+)', out)
        if status != 0 or not found:
            return
        keeper = int(found.group(1))
        target = keeper
        if rng.random() < 0.5:
            target = init_of(keeper) or keeper
        try:
            with open(f"/proc/{target}/comm", encoding="utf-8", errors="replace") as file:
                if not file.read().startswith("carrel"):
                    return  # the pid was reused
            os.kill(target, signal.SIGKILL)
        except OSError:
            pass
        self.forget(box)

    def destroy(self, rng, box):
        self.forget(box)
        self.carrel("destroy", *(["--force"] if rng.random() < 0.1 else []), box)

    def cancel(self, rng, box):
        """A client that is killed while its program runs."""
        client = subprocess.Popen([self.args.carrel, "exec", box, "--", "sleep", "30"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env)
        time.sleep(rng.random() * 0.1)
        client.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
        client.wait()

    def clean(self, rng, _):
        """While all else runs: it removes nothing that is in use, and never fails."""
        self.carrel("cleanup", may_fail=False)

    def seal(self, rng, box):
        """A snapshot, and a sandbox from it that outlives it."""
        name = f"s{rng.randrange(1 << 60)}"
        status, _ = self.carrel("snapshot", box, name)
        if status != 0:  # killed right after it was ready, before it could report
            self.carrel("snapshot", "rm", name)
            return
        status, out = self.carrel("create", "--from", name, "--lease", "10s", may_fail=False)
        if status == 0:
            with self.lock:
                self.ids.append(out.decode().strip())
        self.carrel("snapshot", "rm", name, may_fail=False)

    # --- permanent sandboxes ---

    WAYS = ["execute", "detach", "write", "cancel", "look", "fork", "pause"]

    def settle(self, name):
        """Makes it, and takes every way to use it once: what is kept for the next use is there then."""
        self.carrel("create", "--name", name, "--lease", f"{int(self.args.seconds) + 900}s", may_fail=False)
        _, out = self.carrel("inspect", name, may_fail=False)
        keeper = int(re.search(rb'"pid":(\d+)', out).group(1))
        for way in self.WAYS:
            self.use(random.Random(way), name, way)
        init = init_of(keeper)
        self.lasting[name] = (keeper, init, fewest_descriptors(keeper), fewest_descriptors(init))

    def use(self, rng, name, way):
        if way == "pause":  # never without resume: it would be unusable from then on
            self.carrel("pause", name)
            self.carrel("resume", name)
        elif way != "fork":
            getattr(self, way)(rng, name)
        elif name == "forked":
            status, out = self.carrel("fork", name)
            if status == 0:
                self.carrel("destroy", out.decode().strip())

    def last(self, rng, _):
        self.use(rng, rng.choice(list(self.lasting)), rng.choice(self.WAYS))

    def more_descriptors(self):
        """Those of the lasting that have more than in the beginning, or are others or gone."""
        more = []
        for name, (keeper, init, *before) in self.lasting.items():
            now = init_of(keeper)
            counts = [descriptors(keeper), descriptors(now)]
            if min(counts) < 0 or (now != init and name != "forked"):
                more.append(f"{name}: not there as in the beginning: init {init}, {now}; descriptors {before}, {counts}")
            elif counts[0] > before[0] or counts[1] > before[1]:
                more.append(f"{name}: keeper and init had {before} descriptors, have {counts}")
        return more

    STEPS = [("execute", 30), ("detach", 8), ("write", 10), ("fork", 4), ("pause", 5), ("look", 6),
             ("renew", 4), ("kill", 4), ("destroy", 12), ("cancel", 6), ("last", 12),
             ("clean", 3), ("seal", 4)]

    def client(self, number):
        rng = random.Random(self.args.seed * 1000003 + number)
        names = [name for name, _ in self.STEPS]
        weights = [weight for _, weight in self.STEPS]
        while time.monotonic() < self.end:
            box = self.pick(rng)
            with self.lock:
                n = len(self.ids)
            name = "create" if box is None or (n < 12 and rng.random() < 0.15) else None
            try:
                if name:
                    self.create(rng)
                elif n > 40:
                    name = "destroy"
                    self.destroy(rng, box)
                else:
                    name = rng.choices(names, weights)[0]
                    getattr(self, name)(rng, box)
            except Exception as error:  # a client that dies would end the test early, and silently
                self.fail(f"{name}: {error!r}")
                return
            self.note(name)


def private_run():
    """A mount namespace with an empty /run/carrel; an ordinary user has a directory of its own."""
    if os.geteuid() != 0:
        os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="carrel-soak-run.")
        return os.environ["XDG_RUNTIME_DIR"]
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newns, ms_rec, ms_private = 0x20000, 0x4000, 1 << 18
    os.makedirs("/run/carrel", mode=0o700, exist_ok=True)
    if (libc.unshare(clone_newns) != 0 or libc.mount(b"none", b"/", None, ms_rec | ms_private, None)
            or libc.mount(b"tmpfs", b"/run/carrel", b"tmpfs", 0, b"mode=0700")):
        raise OSError(ctypes.get_errno(), "a mount namespace of our own")
    return "/run/carrel"


def cgroups(lock):
    """The groups that sandboxes of this /run/carrel have."""
    prefix = f"{lock.st_dev:x}.{lock.st_ino:x}-"
    found = []
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(top) == "carrel":
            found += [os.path.join(top, name) for name in dirs if name.startswith(prefix)]
            dirs.clear()
    return found


def ours():
    """All that descends from the process above us, but for ourselves and the dead."""
    above = os.getppid()
    parents, names = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                head, _, tail = file.read().rpartition(")")
        except OSError:
            continue
        if tail.split()[0] not in "ZX":
            names[int(pid)] = head
        parents[int(pid)] = int(tail.split()[1])
    family = {above}
    while True:
        found = {pid for pid, parent in parents.items() if parent in family} - family
        if not found:
            return [names[pid] for pid in sorted(family - {above, os.getpid()}) if pid in names]
        family |= found


def init_of(keeper):
    """A keeper's only child; 0 if it has none."""
    try:
        with open(f"/proc/{keeper}/task/{keeper}/children", encoding="ascii") as file:
            return int((file.read().split() + ["0"])[0])
    except OSError:
        return 0


def descriptors(pid):
    """How many it has, but for layers: a keeper holds those that its forks have sealed. An ordinary
    user may count those of an init, but not look at them. -1: it is gone, or has just closed one."""
    folder = f"/proc/{pid}/fd"
    try:
        return sum("/carrel/layers/" not in os.readlink(f"{folder}/{name}") for name in os.listdir(folder))
    except PermissionError:
        return os.stat(folder).st_size
    except OSError:
        return -1


def fewest_descriptors(pid):
    """Of a few looks, for it may be at work: a keeper has directories open while it counts files."""
    looks = []
    for _ in range(10):
        looks.append(descriptors(pid))
        time.sleep(0.02)
    return min((n for n in looks if n >= 0), default=-1)


def entries(path):
    try:
        return sorted(name for name in os.listdir(path) if not name.startswith("."))
    except FileNotFoundError:
        return []


def wait_for(check, seconds=20):
    """What ends by itself may take a moment; the answer is what is left then."""
    end = time.monotonic() + seconds
    while check() and time.monotonic() < end:
        time.sleep(0.05)
    return check()


def adopt(work, run):
    """Does the work in a child, and becomes the parent of orphaned descendants."""
    libc = ctypes.CDLL(None)
    set_child_subreaper, set_pdeathsig = 36, 1
    libc.prctl(set_child_subreaper, 1)
    child = os.fork()
    if child == 0:
        libc.prctl(set_pdeathsig, signal.SIGTERM)
        status = 1
        try:
            status = work()
        finally:
            sys.stdout.flush()
            os._exit(status)
    while True:
        pid, status = os.wait()
        if pid == child:
            if os.geteuid() != 0:
                shutil.rmtree(run)
            return os.waitstatus_to_exitcode(status)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="soak of living sandboxes")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--name", default="")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--carrel", default=os.environ.get("CARREL", os.path.join(here, "../../build/carrel")))
    args = parser.parse_args()
    args.carrel = os.path.realpath(args.carrel)

    run = private_run()
    return adopt(lambda: soak_in(args, run), run)


def soak_in(args, run):
    mounts = open("/proc/self/mountinfo", encoding="utf-8").read().count("\n")
    number = args.first - 1

    def check(name, left):
        nonlocal number
        number += 1
        print(("not ok" if left else "ok"), number, "-", args.name + name, flush=True)
        for line in list(left)[:20]:
            print("#  ", line, flush=True)
        return not left

    good = True
    with tempfile.TemporaryDirectory(prefix="carrel-soak.") as state:
        soak = Soak(args, state)
        soak.settle("used")
        soak.settle("forked")
        soak.end = time.monotonic() + args.seconds
        threads = [threading.Thread(target=soak.client, args=(i,)) for i in range(args.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("# seed", args.seed, " ".join(f"{k}:{v}" for k, v in sorted(soak.counts.items())))
        good &= check("every command did what it should, or said that the sandbox is gone", soak.failures)
        soak.failures.clear()
        good &= check("what was used for all the time has no more descriptors than in the beginning",
                      wait_for(soak.more_descriptors))
        keeper, init, *_ = soak.lasting["used"]
        seen = ours()
        good &= check("keepers and inits are seen while they live", [
            name for name in (f"{keeper} (carrel-keeper", f"{init} (carrel-init") if name not in seen])
        soak.carrel("destroy", "--all")
        # Before cleanup: a sandbox that lost keeper or init ends without help.
        good &= check("no process is left that only cleanup would end", wait_for(ours))
        for name in entries(state + "/carrel/snapshots"):
            # Killed while it was created again: its files were kept, and the name tells it.
            if name.startswith("lost-S-"):
                soak.carrel("snapshot", "rm", name.removesuffix(".json"), may_fail=False)
        soak.carrel("cleanup", may_fail=False)
        lock = os.stat(os.path.join(run, "lock" if os.geteuid() == 0 else "carrel/lock"))
        registry = os.path.join(run, "sandboxes" if os.geteuid() == 0 else "carrel/sandboxes")
        good &= check("all of them can be destroyed, and cleaned up after", soak.failures)
        good &= check("no process is left", wait_for(ours))
        good &= check("no cgroup is left", wait_for(lambda: cgroups(lock)))
        good &= check("no entry of the registry is left", entries(registry + "/status") + entries(registry + "/names")
                      + [name for name in entries(registry) if name.startswith("S-")])
        good &= check("no layer is left", entries(state + "/carrel/layers"))
        soak.failures.clear()
        status, out = soak.carrel("journal", "verify", may_fail=False, timeout=600)
        bad = [line for line in out.decode(errors="replace").split("\n") if "BAD" in line]
        good &= check("no journal is damaged", soak.failures + bad + ([] if status in (0, 3) else [f"status {status}"]))
    now = open("/proc/self/mountinfo", encoding="utf-8").read().count("\n")
    good &= check("no mount is left", [] if now == mounts else [f"{mounts} before, {now} now"])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
