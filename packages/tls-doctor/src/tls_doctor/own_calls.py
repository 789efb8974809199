"""The program's own calls, as they stand in its files."""

from __future__ import division, print_function

import linecache
import re

#: What is given to a password, a token or a key, and what looks like one. (A report may be sent.)
_SECRETS = re.compile(
    r"""(\b\w*(?:pass|token|secret|key|auth|credential)\w*(?<!file)\s*=\s*)[rbu]{0,2}(["']).*?\2"""
    r"""|()(["'])(?=[^"']*\d)[\w+=-]{16,}\4""",
    re.I,
)
#: The name of an option, or of a header, whose value is one.
_SECRET_NAME = re.compile(
    r"pass(?:$|w|phrase)|token|secret|(?:^|api|[-_])key$|auth|credential|cookie", re.I
)
_PASSWORD_IN_URL = re.compile(r"(?<=://)([^/@:\s]*:)[^/@\s]*(?=@)")
#: What calls are named that send, and wait for a reply.
_WAITING = "get post put patch delete head options request send urlopen execute fetch".split()
#: Functions of Python itself, which wait for nobody.
_BUILTINS = "bool dict float int len list next print repr set sorted str sum tuple".split()
#: Of several classes of a library that a program makes, the one that is kept ends so; if none is
#: called the first, the second.
KEPT = "Client", "Connection"


def call_at(place, names):
    """Return the text of a call of one of some functions on a line of a program, "file.py:3".

    names: of those functions; None: those of any class. The text is in one line, with its
    arguments; None if there is none, or it cannot be read.
    """
    path, _, number = place.rpartition(":")
    lines = linecache.getlines(path)[int(number) - 1 : int(number) + 20]
    text = "".join(lines)
    first = len(lines[0]) if lines else 0
    for match in re.finditer(r"[A-Za-z_][\w.]*(?=\()", text):
        name = match.group().rpartition(".")[2]
        if match.start() >= first or not (name[:1].isupper() if names is None else name in names):
            continue
        if re.search(r"\b(?:def|class)\s+$", text[: match.start()]):  # what is defined there
            continue
        depth, quote = 0, None
        for end in range(match.end(), len(text)):
            letter = text[end]
            if quote:
                quote = None if letter == quote else quote
            elif letter in "\"'":
                quote = letter
            elif letter == "#":
                break
            depth += 0 if quote else (letter in "([{") - (letter in ")]}")
            if depth == 0 and not quote:
                return without_secrets(" ".join(text[match.start() : end + 1].split()))
    return None


def with_argument(call, keyword, value, without=()):
    """Return the text of a call with an argument, in the place of those of some other keywords."""
    start, arguments, depth, quote = call.index("(") + 1, [""], 0, None
    for letter in call[start:-1]:
        if quote:
            quote = None if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        depth += 0 if quote else (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0 and not quote:
            arguments.append("")
        else:
            arguments[-1] += letter
    left_out = (keyword,) + tuple(without)
    kept = [argument.strip() for argument in arguments]
    kept = [argument for argument in kept if argument.partition("=")[0].strip() not in left_out]
    kept = [argument for argument in kept if argument]
    return "%s%s)" % (call[:start], ", ".join(kept + ["%s=%s" % (keyword, value)]))


def call_of_library(place, library, maker=None, only=False):
    """Return the text of the call by which a program makes its client of a library.

    It is looked for in the whole file of a line, "file.py:3", by the names that the file imports.
    maker: the name of the library's class, if it is known. None if there is none, or several that
    nothing tells apart; with `only`, also if there are several of one name.
    """
    import ast

    path, tree = path_and_tree(place)
    imported = names_from(tree, library)
    calls, nested, of_others = {}, set(), []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        words = dotted(node.func)
        if not words or words[0] not in imported:
            # What a session of the library makes: its name is the program's.
            of_others += [(maker, maker, node)] if words[1:] and words[-1] == maker else []
            continue
        name = words[-1] if len(words) > 1 else imported[words[0]]
        if not (name[:1].isupper() or name == maker):
            continue
        nested |= set(id(inner) for inner in ast.walk(node) if inner is not node)
        calls.setdefault(id(node), (words[-1], name, node))
    if maker:
        several = [call for call in calls.values() if call[1] in (maker, "Async" + maker)]
        several = several or (of_others if imported else [])
    else:  # what is called a client; or no argument of another
        several = []
        for end in KEPT:
            several = several or [call for call in calls.values() if call[1].endswith(end)]
        several = several or [call for key, call in calls.items() if key not in nested]
        several = several or list(made_for(place, tree, imported))
    if len(set(name for _, name, _ in several)) != 1 or (only and len(several) > 1):
        return None
    word, _, node = min(several, key=lambda call: call[2].lineno)
    return call_at("%s:%d" % (path, node.lineno), [word])


def made_for(place, tree, imported):
    """Yield what a function of a library makes, if its methods are called on a line.

    As (name, name, node), of `api = library.api(URL)` for a line with api.get().
    """
    import ast

    path, _, number = place.rpartition(":")
    line = linecache.getline(path, int(number))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        words, target = dotted(node.value.func), getattr(node.targets[0], "id", None)
        of_library = words and words[0] in imported and len(words) < 3
        if of_library and target and re.search(r"\b%s\." % target, line):
            yield words[-1], words[-1], node.value


def call_that_waits(place, by_await=True):
    """Return the text of the one call on a line that may wait for a reply.

    By its usual names, or because the line has no other. None where there is none or several, and,
    with `by_await`, where the line could not wait for it by `await`.
    """
    import ast

    path, tree = path_and_tree(place)
    number, inner = int(place.rpartition(":")[2]), None
    for node in ast.walk(tree):
        if hasattr(node, "decorator_list") and not isinstance(node, ast.ClassDef):
            lines = [getattr(child, "lineno", 0) for child in ast.walk(node)]
            if node.lineno <= number <= max(lines) and (not inner or node.lineno > inner.lineno):
                inner = node
    line = "".join(linecache.getlines(path)[number - 1 : number])
    names = re.findall(r"\.(%s)\(" % "|".join(_WAITING), line) or names_called(tree, number)
    can_await = type(inner).__name__ == "AsyncFunctionDef" and "await " not in line
    if (by_await and not can_await) or len(names) != 1:
        return None
    return call_at(place, names)


def names_called(tree, number):
    """Return the names of the functions that a line calls, without those of Python itself."""
    import ast

    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [(dotted(node.func) or [""])[-1] for node in calls if node.lineno == number]
    return [name for name in names if name not in _BUILTINS]


def settings_after(place):
    """Return what a program sets on a context that it makes on a line, as lines to add to that.

    "; context.load_cert_chain(...)", say: the context is the one that these lines make.
    """
    import ast

    path, tree = path_and_tree(place)
    number, texts = int(place.rpartition(":")[2]), []
    for owner in ast.walk(tree):
        body = getattr(owner, "body", None)
        for index, node in enumerate(body if isinstance(body, list) else []):
            targets = getattr(node, "targets", [])
            if isinstance(node, ast.Assign) and node.lineno == number and len(targets) == 1:
                name = getattr(targets[0], "id", None)
                is_call = isinstance(node.value, ast.Call)
                texts += [statement_text(path, late) for late in body[index + 1 :]
                          if name and is_call and sets_on(late, name)]  # fmt: skip
                if texts:
                    return "".join("; context" + text[len(name) :] for text in texts)
    return ""


def path_and_tree(place):
    """Return (the path of a line of a program, the syntax tree of its file)."""
    import ast

    path = place.rpartition(":")[0]
    try:
        # (Python 2.7 wants no declaration of an encoding in a text.)
        text = re.sub(r"coding[:=]", "coding", "".join(linecache.getlines(path)))
        return path, ast.parse(text)
    except (SyntaxError, ValueError):  # another Python's
        return path, ast.parse("")


def names_from(tree, library):
    """Return the names that a file imports from a library: {as they are called: what they are}."""
    import ast

    names = {}
    for node in ast.walk(tree):
        is_from = isinstance(node, ast.ImportFrom) and not node.level
        if is_from and str(node.module).partition(".")[0] == library:
            names.update((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == library:
                    names[alias.asname or library] = library
    return names


def dotted(node):
    """Return the words of a name with dots, as ["client", "ApiClient"]; [] for anything else."""
    import ast

    words = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    return [node.id] + words if isinstance(node, ast.Name) else []


def sets_on(node, name):
    """Return whether a statement sets something on what a name stands for."""
    import ast

    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        words = dotted(node.value.func)
        return len(words) == 2 and words[0] == name and words[1].startswith(("load_", "set_"))
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(dotted(target)[:-1] == [name] for target in targets)


def statement_text(path, node):
    """Return the text of a statement in one line."""
    import ast

    text = "".join(linecache.getlines(path))
    segment = getattr(ast, "get_source_segment", None)
    if segment:
        return without_secrets(" ".join(segment(text, node).split()))
    line = text.splitlines()[node.lineno - 1][node.col_offset :]
    return without_secrets(line.partition(";")[0].partition("  #")[0].strip())


def without_secrets(text):
    """Return code without passwords, tokens and keys that stand in it."""
    return _SECRETS.sub(lambda match: (match.group(1) or "") + '"..."', text)


def command_without_secrets(words):
    """Return a command in one line, without passwords, tokens and keys that stand in it.

    words: of the command, as a program has them in sys.argv.
    """
    cleaned, is_value = [], False
    for word in words:
        name, sign = _option(word)
        if is_value and not word.startswith("-"):
            word = "..."
        elif sign and _SECRET_NAME.search(name):
            word = name + sign + "..."
        elif re.match(r"(?=.*\d)(?=.*[A-Za-z])[\w+=-]{16,}$", word) and not word.startswith("--"):
            word = "..."
        is_value = word.startswith("--") and not sign and bool(_SECRET_NAME.search(name))
        cleaned.append(_PASSWORD_IN_URL.sub(r"\1...", word))
    return " ".join(cleaned)


def _option(word):
    """Split "--name=value" and "Name: value": the name, and what stands between, if anything."""
    match = re.match(r"([\w-]+)(=|:\s*)(?!//)", word)
    return match.groups() if match else (word, "")
