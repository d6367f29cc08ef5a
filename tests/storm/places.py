"""The places where carrel on the host opens what a run may exchange: each is a command and the names
that are exchanged while it runs. storm.py runs them.

In the words of a command, {p} is a git repository, {folder} a folder without git, {out} a directory
for results, {box} a living sandbox, {n} a new number, and {carrel} the program; paths of names are
below the directory that holds repository and folder.
"""

from dataclasses import dataclass, field

# Prints every file below the current directory, what git has, and what is mounted; writes everywhere.
LOOK = ("find . -type f -not -path '*/.git/*' -not -name .git -not -name '*.tar' -exec cat {{}} + 2>/dev/null;"
        "git log -p --all 2>/dev/null; cat /proc/self/mountinfo;"
        "for d in . dir dir/sub; do echo made >$d/made; done 2>/dev/null; true")
PROGRAM = "10s"  # a program that opens the FIFO inside waits as long as it likes
GIT = ["p", "p/dir", "p/a.txt", "p/.git", "p/.git/objects", "p/.git/refs", "p/.git/info", "p/.git/HEAD",
       "p/.git/config", "p/.git/index"]

# What else an earlier program may have left at a name, where text leads elsewhere.
REDIRECTS = {"p/.git": "gitdir: {outside}/p/.git\n",
             "p/.git/config": "[core]\n\trepositoryformatversion = 0\n\tworktree = {outside}/p\n",
             "p/venv/pyvenv.cfg": "home = {outside}/p/venv/bin\n"}


@dataclass
class Place:
    name: str
    command: list  # what is run while NAME is another file now and then
    names: list  # of files and directories that are exchanged, one for a while
    before: list = field(default_factory=list)  # commands without a storm, before each command
    after: list = field(default_factory=list)  # commands that show what it did
    cwd: str = ""
    is_held: bool = False  # carrel refuses it while a sandbox can write there: then it is always refused
    statuses: tuple = (0, 124, 125)
    is_silent: bool = False  # the command prints nothing of the files
    is_control: bool = False  # not carrel: the storm must lead it outside


def run(*words, program=("-c", LOOK)):
    return ["{carrel}", "run", "--quiet", "--timeout", PROGRAM, *words, *program]


def kept_run():
    """A clean work tree, and a run whose changes were kept as run R{n}."""
    return [["git", "-C", "{p}", "reset", "-q", "--hard"], ["git", "-C", "{p}", "clean", "-qfd"],
            run("--repo", "{p}", "--run", "R{n}",
                program=("-c", "echo {n} >>dir/file; echo {n} >new; mkdir -p d; >d/{n}"))]


PLACES = [
    Place("control", ["timeout", "1", "cat", "{p}/dir/file"], ["p", "p/dir", "p/dir/file"], is_control=True,
          statuses=(0, 1, 124)),
    Place("mount", run("--mount", "{p}/dir:/workspace/dir:rw"), ["p", "p/dir"]),
    Place("mount-relative", run("--mount", "p/dir:/workspace/dir:rw"), ["p", "p/dir"]),
    Place("mount-file", run("--mount", "{p}/dir/file:/workspace/file"), ["p/dir", "p/dir/file"]),
    Place("root", run("--root", "{p}/rootfs", program=("/bin/true",)), ["p", "p/rootfs", "p/rootfs/lib"], is_silent=True,
          statuses=(0, 124, 125, 126, 127)),
    Place("workdir", run("--workdir", "{p}/dir"), ["p", "p/dir"]),
    Place("workdir-git", run("--workdir", "{p}"), ["p", "p/.git"]),
    Place("cow", run("--workdir", "{folder}", "--cow"), ["folder", "folder/dir", "folder/a.txt"],
          is_held=True),
    Place("dirty", run("--repo", "{p}", "--dirty"), GIT, is_held=True),
    Place("repo", run("--repo", "{p}"), GIT, is_held=True),
    Place("repo-found", run("--workspace"), ["p", "p/dir", "p/.git"], cwd="p/dir", is_held=True),
    Place("include", run("--repo", "{p}", "--include", "private*"), ["p", "p/dir", "p/dir/private", "p/.gitignore"],
          is_held=True),
    Place("setup", run("--repo", "{p}", "--setup", "cat dir/file >/tmp/x; cat /tmp/x", "--setup-key", "dir/file"),
          ["p", "p/dir", "p/dir/file", "p/.git"], is_held=True),
    Place("output", run("--output", "{p}/dir/out.json", program=("true",)), ["p", "p/dir", "p/dir/out.json"],
          is_silent=True),
    Place("env-file", run("--env-file", "{p}/dir/vars", program=("env",)), ["p", "p/dir", "p/dir/vars"]),
    Place("policy", run("--policy", "{p}/policy/carrel.yaml", program=("true",)),
          ["p", "p/policy", "p/policy/carrel.yaml"], is_silent=True),
    Place("policy-found", run(program=("true",)), ["p/policy", "p/policy/carrel.yaml"], cwd="p/policy", is_silent=True),
    Place("inputs", ["{carrel}", "python", "--quiet", "--timeout", PROGRAM, "--inputs", "{p}/dir/inputs.json",
                     "-c", "print(inputs)"],
          ["p", "p/dir", "p/dir/inputs.json"]),
    Place("script", ["{carrel}", "python", "--quiet", "--timeout", PROGRAM, "{p}/dir/code.py"],
          ["p", "p/dir", "p/dir/code.py"],
          statuses=(0, 124, 125, 126)),
    Place("venv", ["{carrel}", "python", "--quiet", "--timeout", PROGRAM, "--venv", "{p}/venv", "-c",
                   "print(open('/proc/self/mountinfo').read(), open('{p}/venv/lib/word').read())"],
          ["p", "p/venv", "p/venv/lib", "p/venv/pyvenv.cfg", "p/venv/bin", "p/venv/bin/python"],
          statuses=(0, 1, 124, 125, 126, 127)),
    Place("commit",
          ["{carrel}", "workspace", "commit", "R{n}", "-m", "m"], GIT, before=kept_run(), cwd="p", is_silent=True,
          is_held=True),
    Place("open", ["{carrel}", "workspace", "open", "--at", "{p}/opened-{n}", "R{n}"],
          ["p", "p/.git", "p/.git/objects"],
          before=kept_run(), cwd="p", is_silent=True, is_held=True),
    Place("apply", ["{carrel}", "workspace", "apply", "R{n}"], GIT, before=kept_run(), cwd="p", is_held=True,
          statuses=(0, 1, 125), is_silent=True),
    Place("cp-in", ["{carrel}", "cp", "{p}/dir", "{box}:/tmp/in-{n}"], ["p", "p/dir", "p/dir/file", "p/dir/sub"],
          after=[["{carrel}", "exec", "{box}", "-c", "cat /tmp/in-{n}/* 2>/dev/null; true"]]),
    Place("cp-in-file", ["{carrel}", "cp", "{p}/dir/file", "{box}:/tmp/file-{n}"], ["p", "p/dir", "p/dir/file"],
          after=[["{carrel}", "exec", "{box}", "--", "cat", "/tmp/file-{n}"]]),
    Place("cp-out", ["{carrel}", "cp", "{box}:/etc/hosts", "{p}/dir/file-out"],
          ["p", "p/dir", "p/dir/file-out"], is_silent=True),
    Place("cp-out-tree", ["{carrel}", "cp", "{box}:/workspace/folder/.", "{p}/dir"],
          ["p", "p/dir", "p/dir/sub"], is_silent=True),
    Place("export", ["{carrel}", "export", "{box}:/workspace/p/dir"], ["p", "p/dir", "p/dir/sub", "p/dir/file"]),
    Place("import", ["sh", "-c", "tar -C {out} -c . | '{carrel}' import {box}:/workspace/p/dir"],
          ["p", "p/dir"], is_silent=True),
    Place("image", ["{carrel}", "image", "import", "{p}/rootfs", "i"],
          ["p", "p/rootfs", "p/rootfs/etc"], is_silent=True),
    Place("image-tar", ["{carrel}", "image", "import", "{p}/dir/image.tar", "i"],
          ["p", "p/dir", "p/dir/image.tar"], is_silent=True),
]
