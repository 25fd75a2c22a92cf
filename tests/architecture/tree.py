"""The source tree as data: modules, what they import, what they hold. Reads text, runs nothing."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Module:
    """One module of ours; `imports` has every module that it names, those inside functions included."""

    name: str
    path: Path
    tree: ast.Module
    imports: frozenset[str]

    @property
    def lines(self) -> int:
        return len(self.path.read_text("utf-8").splitlines())


@cache
def modules() -> dict[str, Module]:
    """All modules of `aj`, `hooksink`, `bench` and the two at the root, by dotted name."""
    bench = [path for path in ROOT.glob("bench/**/*.py") if ".venv" not in path.parts]
    paths = [*ROOT.glob("aj/**/*.py"), *ROOT.glob("hooksink/**/*.py"), *bench, ROOT / "wsgi.py", ROOT / "worker.py"]
    names = {_dotted(path): path for path in paths}
    return {name: _read(name, path, set(names)) for name, path in names.items()}


def functions(module: Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(name: str, path: Path, ours: set[str]) -> Module:
    tree = ast.parse(path.read_text("utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            base = node.module or ""
            found |= {f"{base}.{a.name}" if f"{base}.{a.name}" in ours else base for a in node.names}
    return Module(name, path, tree, frozenset(found))
