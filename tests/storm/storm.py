"""Lets carrel open names while a program exchanges them, then looks for what must not have happened.

usage: storm.py [--seconds N] [--seed N] [--place NAME] [--name NAME] [--carrel FILE] [--exchange FILE]
                [--title TEXT] [--first N] [--count]

For each place of places.py a program in a living sandbox gives NAME to a directory, a link to it, a link to a directory outside, a FIFO and a file in turn, as
fast as it can. `outside` has the same files as the tree, but with another word, which may not appear
in any output, result, workspace, nor in the tree; nothing outside may change. carrel may succeed or
refuse in one line, and never waits for a FIFO. A place that is held is always refused, since git on
the host works there by paths.

A place fails also if its command fails without a storm. Prints TAP without a plan, numbered from
--first on; with --count only how many tests there are. What is exchanged when depends on the seed, and on the machine.
"""

import argparse
import contextlib
import hashlib
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter

from places import PLACES, REDIRECTS

INSIDE = "inside-the-tree"
MOST_SECONDS = 30  # for one command
SHOWN = 12


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_folder(top, word):
    for name in ("a.txt", "dir/file", "dir/sub/deep"):
        write(f"{top}/{name}", word + "\n")


def make_tree(top, word):
    """A repository and a folder. Each file that a place reads has the word."""
    make_folder(f"{top}/folder", word)
    p = f"{top}/p"
    make_folder(p, word)
    write(f"{p}/.gitignore", "private*\nrootfs\nvenv\nimage.tar\nopened-*\n")
    write(f"{p}/dir/vars", f"WORD={word}\n")
    write(f"{p}/dir/inputs.json", f'{{"word": "{word}"}}\n')
    write(f"{p}/dir/code.py", f"print('{word}')\n")
    write(f"{p}/dir/out.json", "")
    write(f"{p}/dir/file-out", "")
    write(f"{p}/dir/private/key", word)
    # An unknown key is shown in the message.
    write(f"{p}/policy/carrel.yaml", "sandbox: {limits: {timeout: 200s}}\n" if word == INSIDE else f"{word}: 1\n")
    write(f"{p}/rootfs/etc/word", word)
    linked = subprocess.run(["ldd", "/bin/true"], capture_output=True, text=True, check=True)
    for name in ["/bin/true", *re.findall(r"/\S+", linked.stdout)]:
        os.makedirs(os.path.dirname(f"{p}/rootfs{name}"), exist_ok=True)
        shutil.copy(name, f"{p}/rootfs{name}")
    with tarfile.open(f"{p}/dir/image.tar", "w") as tar:
        tar.add(f"{p}/rootfs", ".")
    write(f"{p}/venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3\n")
    write(f"{p}/venv/lib/word", word)
    os.makedirs(f"{p}/venv/bin")
    os.symlink("/usr/bin/python3", f"{p}/venv/bin/python")
    git = ["git", "-C", p, "-c", "user.name=n", "-c", "user.email=e@e"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", word]):
        subprocess.run(git + words, check=True, stdin=subprocess.DEVNULL)
    write(f"{p}/dir/file", word + "\nnot committed\n")


def fingerprint(top):
    """All that is below: names, modes, owners, contents."""
    found = {}
    for folder, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            digest = ""
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    digest = hashlib.md5(file.read()).hexdigest()
            found[path] = (oct(st.st_mode), st.st_uid, st.st_gid, digest)
    return found


class Storm:
    """One place: its directories, its sandbox, and what was found."""

    def __init__(self, args, place):
        self.args, self.place = args, place
        self.rng = random.Random(f"{args.seed} {place.name}")
        self.dir = tempfile.mkdtemp(prefix="carrel-storm.")
        os.chmod(self.dir, 0o755)
        self.top, self.outside = f"{self.dir}/top", f"{self.dir}/outside"
        self.word = "CANARY" + secrets.token_hex(8)
        self.box = f"storm-{os.getpid()}"
        self.cwd = -1
        self.n = 0
        self.name = "none"  # that is exchanged
        self.failures = []
        self.copied = set()
        self.results = Counter()
        self.messages = Counter()  # of refusals
        self.env = dict(os.environ, XDG_STATE_HOME=f"{self.dir}/state", XDG_CONFIG_HOME=f"{self.dir}/config",
                        HOME=self.dir, LC_ALL="C", GIT_CONFIG_NOSYSTEM="1")
        for name in ("CARREL_POLICY", "CARREL_TASK", "PYTHONPATH"):
            self.env.pop(name, None)
        if os.geteuid() != 0:
            self.env["XDG_RUNTIME_DIR"] = f"{self.dir}/run"
            os.mkdir(self.env["XDG_RUNTIME_DIR"], 0o700)
        write(f"{self.dir}/results/from-results", INSIDE)
        write(f"{self.dir}/config/git/config", "[user]\nname = n\nemail = e@e\n")
        make_tree(self.outside, self.word)
        self.marks = [self.word.encode(), f"{os.path.basename(self.dir)}/outside/".encode()]
        self.make_top()
        self.before = fingerprint(self.outside)

    def make_top(self):
        """Keeps the directory itself: the sandbox has it mounted."""
        subprocess.run(["rm", "-rf", f"{self.top}/p", f"{self.top}/folder", f"{self.top}/.storm"], check=True)
        make_tree(self.top, INSIDE)
        os.mkdir(f"{self.top}/.storm")
        # Held, for a shell does not follow its directory either when that is renamed.
        if self.cwd >= 0:
            os.close(self.cwd)
        self.cwd = os.open(f"{self.top}/{self.place.cwd}", os.O_PATH | os.O_DIRECTORY)

    def words(self, command):
        values = {"p": f"{self.top}/p", "folder": f"{self.top}/folder", "out": f"{self.dir}/results",
                  "box": self.box, "n": self.n, "carrel": self.args.carrel}
        return [word.format(**values) for word in command]

    def call(self, command):
        """Returns (status, stdout, stderr); the status is None if it did not end."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                self.words(command), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.env,
                cwd=f"/proc/{os.getpid()}/fd/{self.cwd}", start_new_session=True)
            try:
                status = process.wait(MOST_SECONDS)
            except subprocess.TimeoutExpired:
                status = None
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            out.seek(0)
            err.seek(0)
            return status, out.read(), err.read()

    def must(self, command):
        status, out, err = self.call(command)
        if status != 0:
            raise RuntimeError(f"{' '.join(self.words(command))}: {status}: {err.decode(errors='replace').strip()}")
        return out

    def fail(self, text):
        self.failures.append(f"{self.name}: {text}")

    # --- the storm ---

    def make_others(self, name):
        """The files that take turns, beside the tree: a copy, links, a FIFO, another kind of file, text
        that leads outside. Returns their names, the most dangerous one twice."""
        others, path = f"{self.top}/.storm", f"{self.top}/{name}"
        subprocess.run(["rm", "-rf", others], check=True)
        os.mkdir(others)
        subprocess.run(["cp", "-a", path, f"{others}/copy"], check=True)
        os.symlink(f"{others}/copy", f"{others}/link")
        os.symlink(f"{self.outside}/{name}", f"{others}/out")
        os.mkfifo(f"{others}/fifo")
        if os.path.isdir(path):
            write(f"{others}/other", INSIDE)
        else:
            os.mkdir(f"{others}/other")
        if name in REDIRECTS:
            write(f"{others}/redirect", REDIRECTS[name].format(outside=self.outside))
        return ["out", "link", "out", "fifo", "other"] + ["redirect"] * (name in REDIRECTS)

    def start(self, name):
        names = [name] + [f".storm/{other}" for other in self.make_others(name)]
        seed = self.rng.randrange(1 << 31)
        command = [self.args.carrel, "exec", "--quiet", "--timeout", "1h", self.box, "--", "/storm/exchange",
                   str(seed), ".storm/stop", *names]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=self.env, cwd=self.top)
        if process.stdout.readline() != f"seed {seed}\n".encode():
            raise RuntimeError(f"the storm at {name} does not begin")
        return process

    def stop(self, process):
        write(f"{self.top}/.storm/stop", "")
        count = process.stdout.read()
        if process.wait() != 0 or not count.strip().isdigit():
            raise RuntimeError("the storm did not end as it should")
        self.results["exchanges"] += int(count)

    @contextlib.contextmanager
    def storming(self, name):
        process = self.start(name)
        try:
            yield
        finally:
            self.stop(process)

    # --- what must not happen ---

    def look(self):
        status, out, err = self.call(self.place.command)
        text = err.decode(errors="replace").strip()
        if status is None:
            self.fail(f"no answer within {MOST_SECONDS} s")
        elif status not in self.place.statuses:
            self.fail(f"status {status}: {text[-400:]}")
        elif self.place.is_held and status == 0:
            self.fail("it is not refused while a sandbox may write there")
        elif status == 125 and len(re.findall("^carrel: ", text, re.MULTILINE)) != 1:
            self.fail(f"not one line of carrel's: {text[-400:]}")
        self.results["done" if status == 0 else "refused"] += 1
        if status:
            message = re.sub("'[^']*'|\\b[0-9a-f]{12,}\\b", "'...'", text)
            self.messages[message[:130]] += 1
        for command in self.place.after if status == 0 else []:
            out += self.call(command)[1]
        for mark in self.marks:
            if mark in out or (mark == self.marks[0] and mark in err):
                text = out + b"\n" + err
                at = text.index(mark)
                self.fail(f"READ outside: {text[max(at - 60, 0):at + 40].decode(errors='replace')!r}")
        self.look_outside()

    def look_outside(self):
        now = fingerprint(self.outside)
        for path in sorted(set(now) | set(self.before)):
            if now.get(path) != self.before.get(path):
                how = "made" if path not in self.before else "changed" if path in now else "removed"
                self.fail(f"WROTE outside: {how} {path[len(self.dir):]}")
        self.before = now

    def look_for_word(self):
        """In results, records, workspaces and the tree: no link is followed."""
        places = [f"{self.dir}/state", f"{self.dir}/results", self.top]
        found = subprocess.run(
            ["grep", "-rlF", "-D", "skip", self.word, *places], capture_output=True, text=True, check=False)
        for path in found.stdout.splitlines()[:3]:
            if path not in self.copied:
                self.copied.add(path)
                self.fail(f"COPIED from outside to {path[len(self.dir):]}")

    # --- one place ---

    def prepare(self):
        self.n += 1
        for command in self.place.before:
            self.must(command)

    def once(self, name):
        """The command in a storm of its own, after others without one."""
        self.prepare()
        with self.storming(name):
            self.look()

    def many(self, name, seconds):
        end = time.monotonic() + seconds
        with self.storming(name):
            while True:
                self.n += 0 if self.place.is_held else 1
                self.look()
                if self.failures if self.place.is_control else time.monotonic() >= end:
                    break
                if time.monotonic() >= end + MOST_SECONDS:
                    break

    def storm(self, name, seconds):
        self.name = name
        if not self.place.before or self.place.is_held:
            self.many(name, seconds)
        else:
            end = time.monotonic() + seconds
            self.once(name)
            while time.monotonic() < end:
                self.make_top()
                self.once(name)
        self.look_for_word()

    def begin(self):
        tools = os.path.dirname(self.args.exchange)
        self.must(["{carrel}", "create", "--name", "{box}", "--workdir", self.top, "--mount", f"{tools}:/storm"])

    def go(self):
        self.prepare()
        if not self.place.is_held:
            self.begin()
        out = b"".join(self.must(command) for command in [self.place.command, *self.place.after])
        if not self.place.is_silent and INSIDE.encode() not in out:
            self.fail("without a storm it does not print what is inside")
        if self.place.is_held:
            self.prepare()
            self.begin()
        names = [self.args.name] if self.args.name else self.place.names
        for name in names:
            if not self.place.is_held:  # else it stays what the run began with
                self.make_top()
            self.storm(name, self.args.seconds / len(names))

    def end(self):
        self.call(["{carrel}", "destroy", "--force", "{box}"])
        self.call(["{carrel}", "cleanup"])
        # The kernel shuts a directory of each overlay.
        subprocess.run(["find", self.dir, "-type", "d", "!", "-perm", "-700", "-exec", "chmod", "700", "{}", ";"],
                       check=False)
        subprocess.run(["rm", "-rf", self.dir], check=False)


def run_place(args, place):
    storm = Storm(args, place)
    try:
        storm.go()
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        storm.fail(str(error))
    finally:
        storm.end()
    if place.is_control:
        storm.failures = [] if any("READ" in text for text in storm.failures) else ["no storm led it outside"]
    return storm


def report(args, number, place, storm):
    print(f"{'not ok' if storm.failures else 'ok'} {number} - {args.title}{place.name}")
    print(f"# {storm.results['done']} done, {storm.results['refused']} refused, {storm.results['exchanges']} exchanges;",
          f"again: make storm STORM_SEED={args.seed} STORM_PLACE={place.name}")
    for text, count in storm.messages.most_common(SHOWN):
        print(f"#   {count} times {text!r}")
    for text, count in list(Counter(storm.failures).items())[:SHOWN]:
        print(f"#   FAILED {count} times: {text!r}")
    sys.stdout.flush()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="storms at the places where carrel opens files")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--place", default="")
    parser.add_argument("--name", default="")
    parser.add_argument("--title", default="")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--carrel", default=os.path.join(here, "../../build/carrel"))
    parser.add_argument("--exchange", default=os.path.join(here, "../../build/tests/storm/exchange"))
    args = parser.parse_args()
    args.carrel, args.exchange = os.path.realpath(args.carrel), os.path.realpath(args.exchange)

    places = [place for place in PLACES if args.place in ("", place.name)]
    if args.count:
        print(len(places))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was begun is ended
    failed = False
    for number, place in enumerate(places, args.first):
        storm = run_place(args, place)
        report(args, number, place, storm)
        failed = failed or bool(storm.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
