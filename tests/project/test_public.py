"""Every public function, class and method has types, a docstring and an example.

Public is what has no leading underscore, in its name or in the path of its module. What a public
package imports from its private modules is public under the package's name, so it counts as well,
and so do the methods that a public class inherits from private ones. A method may share the
example of its class, or of the method that it overrides; the example of a class must name it,
unless it is a property. Doctests run the examples; here we only ask that there is one.
`evenhand.cli` is exempt: its commands are documented by their `--help`.
"""

import ast
import doctest
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import evenhand

ROOT = Path(evenhand.__file__).parent
EXEMPT = ("evenhand.cli", "evenhand.__main__")
# Numba compiles functions by the types they are called with, so they have no annotations.
COMPILED = {"compiled", "inlined", "live", "open_to_users", "operation", "subroutine", "woven"}
PROPERTIES = {"property", "cached_property"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_public(name: str) -> bool:
    private = any(part.startswith("_") for part in name.split("."))
    return not private and not name.startswith(EXEMPT)


@cache
def tree_of(module: str) -> ast.Module:
    path = ROOT.parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def definitions(body: list[ast.stmt]) -> dict[str, Definition]:
    return {node.name: node for node in body if isinstance(node, Definition)}


@cache
def imported(module: str) -> dict[str, str]:
    """The names that a module imports from another one of evenhand, and from which."""
    nodes = [node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ImportFrom)]
    ours = [(node, node.module or "") for node in nodes]
    return {
        alias.name: home
        for node, home in ours
        if home.startswith("evenhand.")
        for alias in node.names
    }


def exported(module: str) -> dict[str, str]:
    """What a package, or a module with `__all__`, imports from the private modules of evenhand."""
    is_package = ROOT.parent.joinpath(*module.split(".")).is_dir()
    names = {node.id for node in ast.walk(tree_of(module)) if isinstance(node, ast.Name)}
    if not is_package and "__all__" not in names:
        return {}
    return {name: home for name, home in imported(module).items() if "._" in home}


def bases_of(module: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
    """The base classes in evenhand, and theirs, each with its module."""
    for base in node.bases:
        name = getattr(base.value if isinstance(base, ast.Subscript) else base, "id", "")
        home = imported(module).get(name, module)
        definition = definitions(tree_of(home).body).get(name)
        if isinstance(definition, ast.ClassDef):
            yield home, definition
            yield from bases_of(home, definition)


def public_methods(
    module: str, node: ast.ClassDef
) -> dict[str, tuple[Function, list[ast.ClassDef]]]:
    """The methods of a public class, with the classes whose examples they may share.

    Methods of public base classes are definition there.
    """
    bases = list(bases_of(module, node))
    classes = [node, *(base for _, base in bases)]
    from_public = {
        id(later)
        for home, base in bases
        if is_public(f"{home}.{base.name}")
        for later in (base, *(further for _, further in bases_of(home, base)))
    }
    return {
        name: (method, classes)
        for owner in reversed([each for each in classes if id(each) not in from_public])
        for name, method in definitions(owner.body).items()
        if isinstance(method, Function) and is_public(name)
    }


def public_definitions() -> dict[str, tuple[Definition, list[ast.ClassDef]]]:
    """By full name: the definition, and the classes whose examples it may share."""
    public = {}
    for module in sorted(filter(is_public, map(module_name, ROOT.rglob("*.py")))):
        homes = exported(module) | dict.fromkeys(definitions(tree_of(module).body), module)
        for name, home in homes.items():
            node = definitions(tree_of(home).body).get(name)
            if node is None or not is_public(name):
                continue
            public[f"{module}.{name}"] = node, []
            if isinstance(node, ast.ClassDef):
                methods = public_methods(home, node)
                public |= {f"{module}.{name}.{key}": value for key, value in methods.items()}
    return public


def examples_of(node: Definition) -> str:
    """The code in the examples of a docstring."""
    parser = doctest.DocTestParser()
    return "".join(example.source for example in parser.get_examples(ast.get_docstring(node) or ""))


def has_example(node: Definition, classes: list[ast.ClassDef]) -> bool:
    overridden = [definitions(owner.body).get(node.name) for owner in classes]
    if any(examples_of(each) for each in [node, *overridden] if each is not None):
        return True
    shared = "".join(map(examples_of, classes))
    is_property = not PROPERTIES.isdisjoint(decorators(node))
    return bool(shared if is_property else re.search(rf"\b{node.name}\b", shared))


def decorators(node: Definition) -> set[str]:
    return {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}


def gaps_of(node: Definition, classes: list[ast.ClassDef]) -> list[str]:
    """What a definition lacks."""
    gaps = [] if ast.get_docstring(node) else ["a docstring"]
    if not has_example(node, classes):
        gaps.append("an example")
    if isinstance(node, Function) and not has_types(node):
        gaps.append("types")
    return gaps


def has_types(function: Function) -> bool:
    if not COMPILED.isdisjoint(decorators(function)):
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
    gaps = gaps_of(*PUBLIC[name])
    assert not gaps, f"{name} lacks {' and '.join(gaps)}"


def test_the_names_that_people_import_are_found():
    names = {"groups.Groups.crossed", "recording.log_to", "policies.base.Policy.select", "compiled"}
    inherited = {"policies.base.Policy.save", "service.client.AsyncClient.reward"}
    assert PUBLIC.keys() >= {f"evenhand.{name}" for name in names | inherited}


def test_a_shared_example_must_name_the_method():
    source = '''
class Scale:
    """Weights.

    >>> Scale().weigh(2)
    2
    """
    def weigh(self, load: int) -> int:
        """Weigh."""
    async def reset(self) -> None:
        """Reset."""
    @property
    def unit(self) -> str:
        """Unit."""
'''
    (scale,) = definitions(ast.parse(source).body).values()
    methods = definitions(scale.body)
    gaps = {name: gaps_of(method, [scale]) for name, method in methods.items()}
    assert gaps == {"weigh": [], "reset": ["an example"], "unit": []}
