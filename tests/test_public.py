"""Every public function, class and method has types, a docstring and an example.

Public is what has no leading underscore, in its name or in the path of its module. What a public
package imports from its private modules is public under the package's name, so it counts as well.
A method may share the example of its class. Doctests run the examples; here we only ask that
there is one. `evenhand.cli` is exempt: its commands are documented by their `--help`.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

import evenhand

ROOT = Path(evenhand.__file__).parent
EXEMPT = ("evenhand.cli", "evenhand.__main__")
# Numba compiles functions by the types they are called with, so they have no annotations.
COMPILED = {"compiled", "inlined", "live", "open_to_users", "operation", "subroutine", "woven"}

Definition = ast.FunctionDef | ast.ClassDef


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_public(module: str) -> bool:
    private = any(part.startswith("_") for part in module.split("."))
    return not private and not module.startswith(EXEMPT)


@cache
def tree_of(module: str) -> ast.Module:
    path = ROOT.parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def definitions(body: list[ast.stmt]) -> dict[str, Definition]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node for node in body if isinstance(node, kinds) and node.name[0] != "_"}


def exported(module: str) -> dict[str, Definition]:
    """What a package, or a module with `__all__`, imports from the private modules of evenhand."""
    is_package = ROOT.parent.joinpath(*module.split(".")).is_dir()
    names = {node.id for node in ast.walk(tree_of(module)) if isinstance(node, ast.Name)}
    if not is_package and "__all__" not in names:
        return {}
    nodes = [node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ImportFrom)]
    public: dict[str, Definition] = {}
    for node in nodes:
        home = node.module or ""
        if home.startswith("evenhand.") and "._" in home:
            known = definitions(tree_of(home).body)
            public |= {name.name: known[name.name] for name in node.names if name.name in known}
    return public


def public_definitions() -> dict[str, tuple[str, Definition, str]]:
    """By full name: the module, the definition, and the docstring whose example it may share."""
    public = {}
    for module in sorted(filter(is_public, map(module_name, ROOT.rglob("*.py")))):
        for name, node in {**exported(module), **definitions(tree_of(module).body)}.items():
            public[f"{module}.{name}"] = module, node, ""
            if isinstance(node, ast.ClassDef):
                shared = ast.get_docstring(node) or ""
                for inner, method in definitions(node.body).items():
                    public[f"{module}.{name}.{inner}"] = module, method, shared
    return public


def gaps_of(node: Definition, shared: str) -> list[str]:
    """What a definition lacks."""
    text = ast.get_docstring(node) or ""
    gaps = [] if text else ["a docstring"]
    if ">>> " not in text + shared:
        gaps.append("an example")
    if isinstance(node, ast.FunctionDef) and not has_types(node):
        gaps.append("types")
    return gaps


def has_types(function: ast.FunctionDef) -> bool:
    if any(isinstance(mark, ast.Name) and mark.id in COMPILED for mark in function.decorator_list):
        return True
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    asked = [
        parameter
        for parameter in every
        if parameter is not None and parameter.arg not in ("self", "cls")
    ]
    return function.returns is not None and all(
        parameter.annotation is not None for parameter in asked
    )


PUBLIC = public_definitions()


@pytest.mark.parametrize("name", list(PUBLIC))
def test_has_types_a_docstring_and_an_example(name):
    _, node, shared = PUBLIC[name]
    assert not gaps_of(node, shared), f"{name} lacks {' and '.join(gaps_of(node, shared))}"


def test_the_names_that_people_import_are_found():
    names = {"groups.Groups.crossed", "recording.log_to", "policies.base.Policy.select", "compiled"}
    assert PUBLIC.keys() >= {f"evenhand.{name}" for name in names}
