"""Apache Kafka's answers as files: `recorded/<group>.json`.

By scenario, then by versions whose answers are the same, the answers in order:

    {"scenarios": {"a_topic_by_name": [{"versions": "0-4", "answers": [...]}, ...]}}

What is long and stands there more than once is written once, under "repeated". Under
"requests" stands for each scenario and version a hash of what was asked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = Any
Answers: TypeAlias = dict[str, dict[int, list[Json]]]
"""By scenario and version."""
Requests: TypeAlias = dict[str, dict[int, str]]
"""By scenario and version, the hash of what was asked (`requests.digest`)."""

FOLDER = Path(__file__).parent / "recorded"
_WIDTH = 100
_LONG = 250
_REPEATED = "<repeated: "


def load(group: str, folder: Path = FOLDER) -> Answers:
    """Empty when nothing is recorded."""
    path = folder / f"{group}.json"
    if not path.exists():
        return {}
    read = json.loads(path.read_text())
    return {
        scenario: {
            version: _unfolded(fold["answers"], read["repeated"])
            for fold in folds
            for version in _versions(fold["versions"])
        }
        for scenario, folds in read["scenarios"].items()
    }


def load_requests(group: str, folder: Path = FOLDER) -> Requests:
    """Empty when nothing is recorded."""
    path = folder / f"{group}.json"
    if not path.exists():
        return {}
    return {
        scenario: {int(version): digest for version, digest in versions.items()}
        for scenario, versions in json.loads(path.read_text())["requests"].items()
    }


def save(group: str, answers: Answers, requests: Requests, folder: Path = FOLDER) -> None:
    repeated = _Repeated(answers)
    scenarios = {
        scenario: _folded(
            {
                version: [repeated.taken_out(answer) for answer in found]
                for version, found in versions.items()
            }
        )
        for scenario, versions in sorted(answers.items())
    }
    asked = {
        scenario: {str(version): digest for version, digest in versions.items()}
        for scenario, versions in requests.items()
    }
    written = {"repeated": repeated.found, "requests": asked, "scenarios": scenarios}
    (folder / f"{group}.json").write_text(pretty(written) + "\n")


def groups(folder: Path = FOLDER) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.json"))


def pretty(value: Json, indent: int = 0, used: int = 0) -> str:
    """JSON with sorted fields, on one line each what fits there."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(line) + indent + used <= _WIDTH or not isinstance(value, dict | list) or not value:
        return line
    deeper = " " * (indent + 2)
    if isinstance(value, dict):
        names = {key: json.dumps(key, ensure_ascii=False) + ": " for key in sorted(value)}
        items = [
            name + pretty(value[key], indent + 2, len(name) + 1) for key, name in names.items()
        ]
        opening, closing = "{", "}"
    else:
        items = [pretty(item, indent + 2, 1) for item in value]
        opening, closing = "[", "]"
    lines = ",\n".join(deeper + item for item in items)
    return f"{opening}\n{lines}\n{' ' * indent}{closing}"


def version_ranges(versions: Iterable[int]) -> str:
    """Such as 0-3, 5."""
    found: list[list[int]] = []
    for version in sorted(versions):
        if found and found[-1][-1] == version - 1:
            found[-1].append(version)
        else:
            found.append([version])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in found)


def _folded(by_version: Mapping[int, list[Json]]) -> list[dict[str, Json]]:
    folds: list[tuple[list[int], list[Json]]] = []
    for version, answers in sorted(by_version.items()):
        same = next((versions for versions, found in folds if found == answers), None)
        if same is None:
            folds.append(([version], answers))
        else:
            same.append(version)
    return [
        {"versions": version_ranges(versions), "answers": answers} for versions, answers in folds
    ]


def _versions(ranges: str) -> Iterable[int]:
    for run in ranges.split(", "):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


class _Repeated:
    """Parts of answers that stand in them more than once."""

    def __init__(self, answers: Answers) -> None:
        self.found: dict[str, Json] = {}
        self._times: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        for versions in answers.values():
            for found in versions.values():
                for answer in found:
                    self._count(answer)

    def taken_out(self, tree: Json, field: str | None = None) -> Json:
        """The answer with references in their place; the answer itself stays."""
        text = _long_text(tree)
        if text is None:
            return tree
        if isinstance(tree, dict):
            rest: Json = {key: self.taken_out(value, key) for key, value in sorted(tree.items())}
        else:
            rest = [self.taken_out(value, field) for value in tree]
        if field is None or self._times[text] == 1 or _long_text(rest) is None:
            return rest
        name = self._names.setdefault(text, f"{field} {len(self._names) + 1}")
        self.found[name] = rest
        return f"{_REPEATED}{name}>"

    def _count(self, tree: Json) -> None:
        text = _long_text(tree)
        if text is not None:
            self._times[text] += 1
            for value in tree.values() if isinstance(tree, dict) else tree:
                self._count(value)


def _long_text(tree: Json) -> str | None:
    if not isinstance(tree, dict | list):
        return None
    text = json.dumps(tree, sort_keys=True)
    return text if len(text) >= _LONG else None


def _unfolded(tree: Json, repeated: Mapping[str, Json]) -> Json:
    if isinstance(tree, dict):
        return {key: _unfolded(value, repeated) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_unfolded(value, repeated) for value in tree]
    if isinstance(tree, str) and tree.startswith(_REPEATED):
        name = tree.removeprefix(_REPEATED).removesuffix(">")
        return _unfolded(repeated[name], repeated)
    return tree
