"""The columns of an export: their names, and how they are read back."""

import pytest

from dowise import CausalGraph, DowiseError, Problem
from dowise.problem.tables import EXPORT_COLUMNS, export_name, sources_of

ODD = Problem(CausalGraph.parse("status -> arm -> status_ -> Y; id_"), "Y", "status")
PLAIN = Problem(CausalGraph.parse("X -> Y; Z -> Y"), "Y")


def test_no_two_columns_of_an_export_have_one_name():
    names = [f"{name}{'_' * i}" for name in EXPORT_COLUMNS for i in range(3)] + ["X", "_", "ID"]
    exported = [export_name(name) for name in names]
    assert len({*exported, *EXPORT_COLUMNS}) == len(exported) + len(EXPORT_COLUMNS)
    assert export_name("X") == "X" and export_name("ID") == "ID" and export_name("_") == "_"


def test_an_export_is_read_back():
    for problem in (ODD, PLAIN):
        variables = problem.graph.variables
        found = sources_of(problem, [*EXPORT_COLUMNS, *map(export_name, variables)])
        assert found.variables == {name: export_name(name) for name in variables}
        assert found.arm == "arm"


def test_values_of_an_export_are_those_of_the_variables():
    frame = {name: ["?"] for name in EXPORT_COLUMNS} | {
        "arm": ["do(arm=1)"], "status_": [1], "arm_": [None], "status__": [0], "Y": [1],
        "id__": [None], "status": ["told"],
    }  # fmt: skip
    batch = ODD.records(frame)
    assert dict(zip(ODD.graph.variables, batch.codes[:, 0].tolist(), strict=True)) == {
        "Y": 1, "arm": 1, "id_": -1, "status": 1, "status_": 0,
    }  # fmt: skip
    assert batch.was_set[:, 0].tolist() == [name == "arm" for name in ODD.graph.variables]


def test_other_tables_have_variables_under_their_own_names():
    assert sources_of(ODD, ["status", "status_", "arm", "Y"]).arm is None
    assert sources_of(ODD, ["status", "arm"]).variables == {"status": "status", "arm": "arm"}
    for name in {*EXPORT_COLUMNS} - {"arm"}:
        with pytest.raises(DowiseError, match=f"a column '{name}', which is not a variable"):
            sources_of(PLAIN, ["X", name])


def test_an_export_with_a_column_of_nobody_is_refused():
    with pytest.raises(DowiseError, match="a column 'W', which is not a variable"):
        sources_of(PLAIN, [*EXPORT_COLUMNS, "X", "W"])
