"""Where rooms are called by rooms below them stands in a table, and nowhere else."""

from __future__ import annotations

import ast

from tests.house.extension_points import changed, containers, declared, points, table
from tests.tools.markdown import ROOT


def test_the_table_names_every_extension_point() -> None:
    named, found = table(ROOT / "docs" / "architecture.md"), points()
    assert named - found == set(), "the table names what is not there, or what nobody fills in"
    assert found - named == set(), "no row of the table in docs/architecture.md names these"


def test_containers_are_found() -> None:
    tree = ast.parse("a: list[int] = []\nb = {1: 2}\nc = weakref.WeakSet()\nd = 3\ne = f()\n")
    assert containers(tree) == {"a": True, "b": False, "c": True}
    assert declared(ast.parse("a = LateBound('a')\nb = f(LateBound)\n")) == {"a"}


def test_changes_are_found() -> None:
    known = {"p.low", "p.low.lists"}
    source = """
from p.low import lists
from p.low.lists import hooks, names, read, passed as handed
hooks.append(print)
names["a"] = print
lists.calls.update(a=print)
pair = (handed, print)
read["b"]()
own = {"c": lists.others}
"""
    assert changed(ast.parse(source), "p.high", known) == {
        ("p.low.lists", "hooks"): True,
        ("p.low.lists", "names"): True,
        ("p.low.lists", "calls"): True,
        ("p.low.lists", "passed"): False,
        ("p.low.lists", "others"): False,
    }
