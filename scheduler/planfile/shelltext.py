"""Looks into the shell texts of a plan file: which program they start first, whether they can fail, what they write.

Guesses by words, for warnings only: a text is never refused for what is found here. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

_BUILTINS = frozenset(
    (
        ":", ".", "[", "[[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare",
        "do", "done", "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "false", "fg", "fi",
        "for", "function", "getopts", "hash", "if", "in", "jobs", "kill", "let", "local", "popd", "printf",
        "pushd", "pwd", "read", "readonly", "return", "select", "set", "shift", "source", "test", "then", "times",
        "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "!", "{", "}",
        "(", ")",
    )
)  # fmt: skip
_ENDS = frozenset({"&&", "||", ";", "|", "&", "|&", ";;", "(", ")"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_ALWAYS = re.compile(r"(?:\|\||;|\n)\s*(?:true|:|exit\s+0)\s*;?\s*$")
_ECHOED = re.compile(r"\|\|\s*(?:echo|printf)\b[^|&;\n]*$")
_HARMLESS = frozenset({"true", ":", "echo", "printf", "exit"})
_SWALLOWING = frozenset({"tee", "cat", "head", "tail", "less", "more", "sort", "wc"})
_ASIDE = re.compile(r"/dev/|/tmp/|\$\{?TMPDIR|\$\{?DAGWARD_|&|\$\(mktemp")
_GIT = frozenset(
    (
        "add", "am", "apply", "checkout", "cherry-pick", "clean", "commit", "merge", "mv", "pull", "rebase",
        "reset", "restore", "revert", "rm", "stash", "switch",
    )
)  # fmt: skip
_WRITERS: Sequence[tuple[str, frozenset[str], frozenset[str]]] = (
    # program (and subcommand), options of which one makes it write (none: it writes), options that keep it from writing
    ("ruff check", frozenset({"--fix", "--unsafe-fixes", "--add-noqa"}), frozenset({"--diff"})),
    ("ruff format", frozenset(), frozenset({"--check", "--diff"})),
    ("black", frozenset(), frozenset({"--check", "--diff"})),
    ("isort", frozenset(), frozenset({"--check", "--check-only", "-c", "--diff"})),
    ("autopep8", frozenset({"-i", "--in-place"}), frozenset()),
    ("autoflake", frozenset({"-i", "--in-place"}), frozenset({"--check"})),
    ("pyupgrade", frozenset(), frozenset()),
    ("prettier", frozenset({"--write", "-w"}), frozenset()),
    ("eslint", frozenset({"--fix"}), frozenset()),
    ("gofmt", frozenset({"-w"}), frozenset()),
    ("go mod tidy", frozenset(), frozenset({"-diff"})),
    ("cargo fmt", frozenset(), frozenset({"--check"})),
    ("sed", frozenset({"-i", "--in-place"}), frozenset()),
    ("npm install", frozenset(), frozenset({"-g", "--no-save"})),
    ("pytest", frozenset({"--snapshot-update", "--inline-snapshot", "--force-regen"}), frozenset()),
)


def programs(text: str) -> list[str]:
    """The program that each simple command of the first line with one starts; what is no plain name is left out."""
    for line in _lines(text):
        found = [head for words in _commands(line) if (head := _head(words)) is not None]
        if found:
            return found
    return []


def cannot_fail(text: str) -> str | None:
    """Why the exit code of a text is 0 whatever happens, None when it can fail."""
    lines = list(_lines(text))
    if not lines:
        return None
    always = _ALWAYS.search("\n".join(lines)) or _ECHOED.search(lines[-1])
    if always is not None:
        return f'it ends with "{always[0].strip()}"'
    if all(_is_harmless(words) for line in lines for words in _commands(line)):
        return "nothing in it can fail"
    return _swallowed(lines[-1]) if "pipefail" not in text else None


def _swallowed(line: str) -> str | None:
    last = [_head(words) for words in _commands(line)][-1:]
    if "|" in _tokens(line) and last and last[0] in _SWALLOWING:
        return f"the exit code of a pipe is that of its last command, {last[0]}"
    return None


def unchecked_lines(text: str) -> bool:
    """Whether several lines run one after the other and only the last one's exit code counts."""
    lines = list(_lines(text))
    if len(lines) < 2 or re.search(r"\bset\s+-[a-z]*e|\bset\s+-o\s+errexit", text):
        return False
    plain = not re.search(r"<<|\\$|^\s*(?:if|for|while|case|until|\w+\s*\(\))\b", text, re.MULTILINE)
    joined = all(line.rstrip().endswith(("&&", "||", "|", "\\")) for line in lines[:-1])
    return plain and not joined and any(_head(words) for line in lines[:-1] for words in _commands(line))


def writes(text: str) -> Iterator[str]:
    """What in a text is likely to change files of the tree, as it stands there."""
    for line in _lines(text):
        for words in _commands(line):
            plain = _without_assignments(words)
            yield from _writer(plain)
            yield from _redirects(plain)


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a quotation that goes on in the next line
        return []


def _commands(line: str) -> Iterator[list[str]]:
    """The words of each simple command of a line."""
    words: list[str] = []
    for token in _tokens(line):
        if token in _ENDS:
            if words:
                yield words
            words = []
        else:
            words.append(token)
    if words:
        yield words


def _without_assignments(words: Sequence[str]) -> list[str]:
    rest = list(words)
    while rest and (_ASSIGNMENT.fullmatch(rest[0]) or rest[0] in ("env", "time", "exec", "command", "then", "do", "!")):
        rest.pop(0)
    return rest


def _head(words: Sequence[str]) -> str | None:
    rest = _without_assignments(words)
    if not rest or rest[0] in _BUILTINS or not _NAME.fullmatch(rest[0]):
        return None
    return rest[0]


def _is_harmless(words: Sequence[str]) -> bool:
    rest = _without_assignments(words)
    refuses = rest[1:2] in (["1"], ["2"]) or any("$" in each for each in rest[:2])
    return not rest or (rest[0] in _HARMLESS and not refuses)


def _writer(words: Sequence[str]) -> Iterator[str]:
    if len(words) > 2 and words[1] == "-m" and words[0].startswith("python"):
        words = words[2:]
    elif words[:1] in (["npx"], ["uvx"], ["pipx"]):
        words = words[1:]
    if words[:1] == ["git"] and len(words) > 1 and words[1] in _GIT:
        yield f"git {words[1]}"
    for program, makes, keeps in _WRITERS:
        parts = program.split()
        options = {each.partition("=")[0] for each in words[len(parts) :] if each.startswith("-")}
        if list(words[: len(parts)]) != parts or options & keeps:
            continue
        given = sorted(each for each in options if each in makes or (each.startswith("-i") and "-i" in makes))
        if given or not makes:
            yield " ".join([program, *given[:1]])


def _redirects(words: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(words[:-1]):
        target = words[at + 1]
        if word in (">", ">>", ">|", "&>") and not _ASIDE.match(target):
            yield f"{word} {target}"
