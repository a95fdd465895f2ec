"""Reading manifests from files, with the line of every field: YAML and JSON, many to a file, lists of them.

Values are read as kubectl reads them and not as PyYAML likes to: a time stays a text, `1:30` is no number
of minutes, a key is always a text, and a key that is given twice is an error and not a silent choice.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from sexton.api.faults import Fault, child, shown

STDIN: Final = "-"
_STDIN_NAME: Final = "<stdin>"

# A document may refer to its parts many times over, so that a small file stands for a huge object.
_MOST_NODES: Final = 100_000
_MOST_CHARACTERS: Final = 32 * 1024 * 1024
"""Characters of values and of paths."""
_MOST_LEVELS: Final = 128
"""What is deeper counts as null, as it does for the operator: no field of ours is, and a template must not be."""
_MOST_LEVELS_READ: Final = 5_000
"""The time that the parser takes grows with the square of the levels: seconds for so many."""
_MOST_BITS: Final = 64
"""Kubernetes has no longer numbers."""

_MERGE: Final = "tag:yaml.org,2002:merge"
_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
_NULL: Final = "tag:yaml.org,2002:null"
_MEANINGFUL: Final = frozenset({"tag:yaml.org,2002:str", "tag:yaml.org,2002:bool", _NULL, _INT, _FLOAT})
_READ_OTHERWISE: Final = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value", _INT, _FLOAT})


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A fault and where it is: `FIELD: message (FILE:LINE)`.

    `field` is None where the file as a whole is meant, or a spot in it that is no manifest: then it is
    `FILE:LINE: message`. `line` is None where there is none to name.
    """

    file: str
    line: int | None
    message: str
    field: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}" if self.field is None else f"{self.field}: {self.message} ({place})"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One object out of a file, and where each of its fields is."""

    file: str
    content: Mapping[str, Any]
    _lines: Mapping[str, int] = field(repr=False)
    _root: str = ""

    def problem(self, fault: Fault) -> Problem:
        """Return the fault with the line of its field; of the nearest field around it, if that is absent."""
        return Problem(
            file=self.file, line=self._line_of(fault.field), message=fault.message, field=fault.field
        )

    @property
    def place(self) -> str:
        """Where the object begins, as `FILE:LINE`."""
        return f"{self.file}:{self._lines[self._root]}"

    def _line_of(self, path: str) -> int | None:
        # Inside a list, paths in the file begin with items[N].
        path = f"{self._root}.{path}" if self._root else path
        while path and path not in self._lines:
            path = path[: path.rindex("[")] if path.endswith("]") else path.rpartition(".")[0]
        return self._lines.get(path)


@dataclass(frozen=True, kw_only=True)
class FileContent:
    """What a file holds, as far as it could be read, and what was wrong with the rest."""

    file: str
    manifests: tuple[Manifest, ...]
    problems: tuple[Problem, ...]


def read_file(name: str) -> FileContent:
    """Return the manifests in a file, or on standard input if it is called `-`.

    Whatever is wrong is a problem in the answer: this raises nothing for it.
    """
    shown_name = _STDIN_NAME if name == STDIN else name
    try:
        content = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        message = f"can't be read: {error.strerror or error}"
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
    else:
        return _Reader(shown_name).read(text)
    problem = Problem(file=shown_name, line=None, message=message)
    return FileContent(file=shown_name, manifests=(), problems=(problem,))


class _Reader:
    """Reads one file, and gathers what is wrong with it."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._problems: list[Problem] = []

    def read(self, text: str) -> FileContent:
        manifests: list[Manifest] = []
        try:
            for node in yaml.compose_all(_spaced(text), Loader=_KubernetesLoader):
                manifests += self._document(node)
        except _Unreadable as error:
            self._add(_line(error.node), error.message)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._add(mark.line + 1 if mark else None, f"is not YAML: {error.problem or error.context}")
        except yaml.YAMLError as error:
            self._add(None, f"is not YAML: {_one_line(error)}")
        if not manifests and not self._problems:
            self._add(None, "is empty: there is no manifest in it")
        return FileContent(file=self._file, manifests=tuple(manifests), problems=tuple(self._problems))

    def _document(self, node: yaml.Node) -> Iterator[Manifest]:
        builder = _Builder(self._file)
        value = builder.build(node, path="")
        self._problems += builder.problems
        if value is None:
            return
        if not isinstance(value, dict):
            self._add(_line(node), f"a manifest is an object with fields, not {shown(value)}")
            return
        items = value.get("items")
        if str(value.get("kind", "")).endswith("List") and isinstance(items, list):
            for index, item in enumerate(items):
                path = child("items", index)
                if isinstance(item, dict):
                    yield Manifest(file=self._file, content=item, _lines=builder.lines, _root=path)
                else:
                    fault = Fault(path, f"must be an object, not {shown(item)}")
                    self._problems.append(
                        Manifest(file=self._file, content=value, _lines=builder.lines).problem(fault)
                    )
        else:
            yield Manifest(file=self._file, content=value, _lines=builder.lines)

    def _add(self, line: int | None, message: str) -> None:
        self._problems.append(Problem(file=self._file, line=line, message=message))


class _Unreadable(Exception):
    """A part of a document that no manifest can have."""

    def __init__(self, node: yaml.Node, message: str) -> None:
        super().__init__(message)
        self.node = node
        self.message = message


class _Builder:
    """Makes one document's nodes into values, and notes the line of each path."""

    def __init__(self, file: str) -> None:
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self._file = file
        self._scalars = yaml.constructor.SafeConstructor()
        self._around: set[int] = set()
        self._count = 0
        self._characters = 0

    def build(self, node: yaml.Node, *, path: str) -> Any:  # noqa: ANN401 - any JSON
        """Return the value of a node, which is at this path of the document.

        Raises:
            _Unreadable: it is nothing that JSON could say.
        """
        self._count += 1
        if self._count > _MOST_NODES:
            raise _Unreadable(node, f"has more than {_MOST_NODES} parts, those that aliases repeat included")
        if id(node) in self._around:
            raise _Unreadable(node, "has an alias that contains itself")
        self._characters += len(path) + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        if self._characters > _MOST_CHARACTERS:
            raise _Unreadable(
                node, f"is more than {_MOST_CHARACTERS} characters long, what aliases repeat included"
            )
        if len(self._around) >= _MOST_LEVELS:
            return None
        self.lines.setdefault(path, _line(node))
        self._around.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path=path)
            if isinstance(node, yaml.SequenceNode):
                return [self.build(item, path=child(path, index)) for index, item in enumerate(node.value)]
            return self._scalar(node)
        finally:
            self._around.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, *, path: str) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged = self._merged(value_node, path=path) | merged
                continue
            key = self._key(key_node)
            place = child(path, key)
            if key in own:
                message = f"is given twice; it is in line {self.lines[place]} already"
                self.problems.append(
                    Problem(file=self._file, line=_line(key_node), message=message, field=place)
                )
                continue
            self.lines[place] = _line(key_node)
            own[key] = self.build(value_node, path=place)
        return merged | own

    def _merged(self, node: yaml.Node, *, path: str) -> dict[str, Any]:
        """Return what `<<: *alias` or `<<: [*one, *other]` brings in; the first to have a key wins."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        result: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise _Unreadable(source, "<< takes an object, or a list of them")
            result = self.build(source, path=path) | result
        return result

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _Unreadable(node, "a key must be a text")
        value = self._scalar(node)
        return value if isinstance(value, str) else json.dumps(value)

    def _scalar(self, node: yaml.Node) -> Any:  # noqa: ANN401 - any JSON
        if node.tag not in _MEANINGFUL:
            raise _Unreadable(node, f"{node.tag} has no meaning in a manifest")
        try:
            value = self._scalars.construct_object(node)
        except (yaml.constructor.ConstructorError, ValueError, LookupError) as error:
            raise _Unreadable(node, f"{shown(node.value)} can't be read: {_one_line(error)}") from error
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise _Unreadable(
                node, f"{shown(node.value)} is too big: no number has more than {_MOST_BITS} bits"
            )
        return value


class _KubernetesLoader(yaml.SafeLoader):
    """Resolves plain scalars to what Kubernetes' YAML library resolves them to, and goes no deeper than levels are."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._level = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node, by calling itself for those in it; one that is too deep is passed over."""
        self._level += 1
        try:
            return self._passed_over() if self._level > _MOST_LEVELS else super().compose_node(parent, index)
        finally:
            self._level -= 1

    def _passed_over(self) -> yaml.Node:
        """Read a node and all that is in it, and return a null that stands where it was."""
        first: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        level = 0
        while True:
            event: yaml.Event = self.get_event()  # type: ignore[no-untyped-call]
            level += isinstance(event, yaml.CollectionStartEvent)
            level -= isinstance(event, yaml.CollectionEndEvent)
            if level > _MOST_LEVELS_READ:
                raise _Unreadable(_null(first), f"is nested more than {_MOST_LEVELS_READ} levels deep")
            if level == 0:
                return _null(first)


_KubernetesLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _READ_OTHERWISE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_KubernetesLoader.add_implicit_resolver(
    _INT,
    re.compile(r"[-+]?(0b[01_]+|0[0-7_]*|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$", re.ASCII),
    list("-+0123456789"),
)
_KubernetesLoader.add_implicit_resolver(
    _FLOAT,
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$", re.ASCII),
    list("-+0123456789."),
)


def _spaced(text: str) -> str:
    """Return JSON with spaces for its tabs, which YAML does not allow there; anything else as it is."""
    if "\t" in text and text.lstrip()[:1] in {"{", "["}:
        try:
            json.loads(text)
        except ValueError:
            return text
        except RecursionError:
            pass  # nobody but JSON is nested so deep
        # Inside its strings, JSON allows no tab.
        return text.replace("\t", " ")
    return text


def _null(event: yaml.Event) -> yaml.Node:
    return yaml.ScalarNode(_NULL, "", event.start_mark, event.end_mark)  # type: ignore[arg-type]


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
