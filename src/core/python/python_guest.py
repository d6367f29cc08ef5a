# The part of `carrel python` that runs inside the sandbox, before and after the program.
#
#   PYTHON -I -X utf8 -c THIS BYTES NAME WORD [ARG...]
#
# NAME is what the program's file is called in tracebacks, WORD and ARGs become its sys.argv.
# Descriptor 3 has the task, of BYTES bytes: one line of JSON (what to do), then the code, then the
# inputs. What the import rules and the compiler say is one line to descriptor 4. carrel answers with
# one byte when it has read that line, and only then does the program run: it could take the line back
# from the pipe. The program's result goes to descriptor 4 as well, at the end.
#
# Modules that are only needed for a failure are imported then: starting fast counts.
import json
import os
import sys

LISTED = 256  # modules that findings name at most
NAME_MAX = 200  # characters of such a name
MESSAGE_MAX = 8 << 10
TRACEBACK_MAX = 32 << 10
BLOCKED_STATUS = 126
TASK = 3
REPORT = 4
ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without the time that importing ast takes

IMPORTERS = {
    "__import__",
    "builtins.__import__",
    "__builtins__.__import__",
    "importlib.__import__",
    "importlib.import_module",
}


def clean(text, most):
    """Text of any kind as JSON can carry it: no lone surrogates, not longer than asked."""
    return text[-most:].encode("utf-8", "replace").decode("utf-8")


# ---- what the code imports ----------------------------------------------------------------------


def nodes_of(tree):
    """All nodes. Not recursive: code may be nested more deeply than we may call."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            for child in value if isinstance(value, list) else (value,):
                if hasattr(child, "_fields"):
                    waiting.append(child)


def dotted(node):
    """"a.b.c" for a name or an attribute of names, else None."""
    parts = []
    while type(node).__name__ == "Attribute":
        parts.append(node.attr)
        node = node.value
    if type(node).__name__ != "Name":
        return None
    return ".".join([node.id] + parts[::-1])


def aliases_of(nodes):
    """Names that stand for something imported, or for another name."""
    aliases = {}
    for node in nodes:
        kind = type(node).__name__
        if kind == "Import":
            for one in node.names:
                if one.asname:
                    aliases[one.asname] = one.name
        elif kind == "ImportFrom" and not node.level:
            for one in node.names:
                aliases[one.asname or one.name] = "%s.%s" % (node.module, one.name)
        elif kind == "Assign" and dotted(node.value):
            for target in node.targets:
                if type(target).__name__ == "Name" and target.id != dotted(node.value):
                    aliases[target.id] = dotted(node.value)
    return aliases


def is_importer(node, aliases):
    name = dotted(node)
    for _ in range(8):  # an alias of an alias; never a circle
        if name is None or name in IMPORTERS:
            return name is not None
        first, dot, rest = name.partition(".")
        if first not in aliases:
            return False
        name = aliases[first] + dot + rest
    return False


def constant(node):
    value = node.value if hasattr(node, "value") else getattr(node, "s", None)  # s: up to 3.7
    return value if isinstance(value, str) else None


def called_name(node):
    """The module that a call of an importer names, if it is written there."""
    given = {word.arg: constant(word.value) for word in node.keywords}
    values = [constant(value) for value in node.args]
    name = values[0] if values else given.get("name")
    if name and name.startswith("."):
        package = values[1] if len(values) > 1 else given.get("package")
        if package:
            return package + "." + name.lstrip(".")
    return name


def imports_of(tree):
    """(module, names taken from it) in the order of the code."""
    nodes = list(nodes_of(tree))
    aliases = aliases_of(nodes)
    found = []
    for node in nodes:
        kind = type(node).__name__
        if kind == "Import":
            parts = [(one.name, []) for one in node.names]
        elif kind == "ImportFrom":
            module = "." * (node.level or 0) + (node.module or "")
            parts = [(module, [one.name for one in node.names if one.name != "*"])]
        elif kind == "Call" and is_importer(node.func, aliases):
            parts = [(name, []) for name in [called_name(node)] if name]
        else:
            continue
        found += [(node.lineno, node.col_offset, module, names) for module, names in parts]
    found.sort(key=lambda one: one[:2])
    return [(module, names) for _, _, module, names in found]


def is_listed(module, modules):
    """The module itself or a package above it. Where a relative one leads is not known here:
    what is written counts."""
    module = module.lstrip(".")
    return any(module == one or module.startswith(one + ".") for one in modules)


def inner_names(module, names):
    """"from a import b" may mean the module a.b."""
    return [module + ("" if module.endswith(".") else ".") + name for name in names]


def imported_names(module, names):
    return [module] if module.strip(".") else inner_names(module, names)


def blocked_names(module, names, rules):
    inner = inner_names(module, names)
    if is_listed(module, rules["block"]):
        return [module]
    found = [name for name in inner if is_listed(name, rules["block"])]
    if found or rules["allow"] is None or is_listed(module, rules["allow"]):
        return found
    if inner and all(is_listed(name, rules["allow"]) for name in inner):
        return []
    return imported_names(module, names)


def unique(names):
    return list(dict.fromkeys(clean(name[:NAME_MAX], NAME_MAX) for name in names))[:LISTED]


# ---- before the program -------------------------------------------------------------------------


def read_task(most):
    parts = []
    while most > 0:
        parts.append(os.read(TASK, min(most, 1 << 20)))
        most -= len(parts[-1])
        if not parts[-1]:
            sys.exit("carrel: the task ended early")
    head, _, rest = b"".join(parts).partition(b"\n")
    task = json.loads(head.decode())
    return task, rest[: task["code_bytes"]], rest[task["code_bytes"] :]


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data) :]


def syntax_details(error):
    if not isinstance(error, SyntaxError):
        why = describe(error) or type(error).__name__
        return {"message": why, "line": None, "column": None}
    message = clean(str(error.msg)[:MESSAGE_MAX], MESSAGE_MAX)
    return {"message": message, "line": error.lineno, "column": error.offset or None}


def check(code, name, rules):
    """What carrel is told before anything runs, and the compiled program (None: it must not)."""
    version = "%d.%d.%d" % sys.version_info[:3]
    findings = {"python": version, "imports": [], "blocked": [], "runs": False}
    try:
        tree = compile(code, name, "exec", ONLY_AST, True)
        found = imports_of(tree)
        program = compile(tree, name, "exec", 0, True)
    # Too deep for the compiler, a NUL in the code, a coding that does not exist: as it is for
    # python itself, these are errors of the code.
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        findings["syntax"] = syntax_details(error)
        findings["error"] = dict(describe_error(error, None, name), line=findings["syntax"]["line"])
        return findings, None, error
    findings["imports"] = unique(name for one in found for name in imported_names(*one))
    if rules["mode"] != "off":
        findings["blocked"] = unique(name for one in found for name in blocked_names(*one, rules))
    findings["runs"] = rules["mode"] != "block" or not findings["blocked"]
    return findings, program if findings["runs"] else None, None


class Source:
    """A loader for code that shows lines of the program: tracebacks, warnings, inspect."""

    def __init__(self, code):
        self.code = code

    def get_source(self, name):
        from importlib.util import decode_source

        return decode_source(self.code)

    def is_package(self, name):
        return False


def new_main(code, inputs):
    main = type(sys)("__main__")
    main.__builtins__ = __builtins__
    main.__loader__ = Source(code)
    main.inputs = inputs
    sys.modules["__main__"] = main
    return main


# ---- after the program --------------------------------------------------------------------------


def result_of(main, most):
    """JSON of what the program called `result`, and why there is none."""
    try:
        value = vars(main).get("result")
        data = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        return None, "the result holds half of a surrogate pair, which is no character"
    except BaseException as error:  # objects of the program's own may raise anything
        return None, "the result is not JSON: " + (describe(error) or type(error).__name__)
    if len(data) > most:
        return None, "the result has %d bytes of JSON, more than %d" % (len(data), most)
    return data, None


def describe(error):
    try:
        text = str(error)
    except BaseException:
        text = "<no text>"
    return clean(text[:MESSAGE_MAX], MESSAGE_MAX)


def type_name(kind):
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return "%s.%s" % (kind.__module__, kind.__qualname__)


def describe_error(error, trace, name):
    try:
        kind = clean(type_name(type(error)), NAME_MAX)
    except BaseException:  # its class has an idea of its own of what a name is
        kind = "Exception"
    line = None
    at = trace
    while at is not None:
        if at.tb_frame.f_code.co_filename == name:
            line = at.tb_lineno
        at = at.tb_next
    try:
        import traceback

        text = "".join(traceback.format_exception(type(error), error, trace))
    except BaseException:  # no memory left, or an error that cannot be shown
        text = ""
    return {
        "type": kind,
        "message": describe(error),
        "traceback": clean(text, TRACEBACK_MAX),
        "line": line,
    }


def show(error, trace):
    """As python would, but with lines of a file that is not there."""
    try:
        if sys.excepthook is not sys.__excepthook__:
            sys.excepthook(type(error), error, trace)
            return
        import traceback

        traceback.print_exception(type(error), error, trace)
    except BaseException:
        try:
            sys.__excepthook__(type(error), error, None)
        except BaseException:
            pass  # standard error is gone


def is_same_file(fd, known):
    """Programs may close every descriptor, and open files of their own in its place."""
    try:
        now = os.fstat(fd)
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == (known.st_dev, known.st_ino)


def write_report(main, error, most):
    data, why = result_of(main, most)
    rest = json.dumps({"result_error": why, "error": error})
    try:
        write_all(REPORT, b'{"result":' + (data or b"null") + b"," + rest[1:].encode())
    except OSError:
        pass  # carrel has read too much already


def run(program, main, name, most):
    """Runs the program; ends as python would have ended."""
    owner = os.getpid()
    known = os.fstat(REPORT)
    raised = None
    details = None
    try:
        exec(program, vars(main))
    except SystemExit as error:
        raised = error
    except BaseException as error:
        raised = error
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        show(error, trace)
        details = describe_error(error, trace, name)
    # A process that the program forked is not the one that answers.
    if os.getpid() == owner and is_same_file(REPORT, known):
        write_report(main, details, most)
    return raised


def find(code, name, task):
    """The check, and its findings where carrel has read them."""
    findings, program, error = check(code, name, task)
    write_all(REPORT, json.dumps(findings).encode() + b"\n")
    if not os.read(TASK, 1):
        sys.exit("carrel: the findings were not read")
    os.close(TASK)
    if error is not None:
        show(error, None)
        sys.exit(1)
    if program is None:
        sys.exit(BLOCKED_STATUS)
    return program


def start():
    size, name, word = sys.argv[1:4]
    os.set_inheritable(REPORT, False)
    task, code, inputs = read_task(int(size))
    program = find(code, name, task)
    try:
        main = new_main(code, json.loads(inputs.decode()))
    except ValueError as error:  # a number longer than this python reads
        sys.exit("carrel: the inputs cannot be read: %s" % error)
    if name == word:
        main.__file__ = name
    sys.argv[:] = sys.argv[3:]
    sys.path.insert(0, os.getcwd())
    for stream in sys.stdout, sys.stderr:
        if hasattr(stream, "reconfigure"):  # what was printed is seen also when we are ended
            stream.reconfigure(line_buffering=True)
    return run(program, main, name, task["result_bytes"])


raised = start()
if raised is not None:
    # Shown already, unless it is SystemExit, which python handles as ever.
    sys.excepthook = lambda *_: None
    raise raised
