"""The models in words: every letter of a model is explained, and every letter explained is in a model."""

from __future__ import annotations

import re

import pytest

from gangplan import generate, teach
from gangplan.instances import InstanceError, with_objective
from gangplan.teach.names import formulation_of
from gangplan.teach.programme import cpsat

from .tiny import OBJECTIVES, tiny


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_words_are_those_of_the_models(objective: str) -> None:
    """Variables and letters of both solvers' models over several problems are those of the words."""
    words = formulation_of(objective)
    letters, families = set[str](), set[str]()
    for problem, _ in tiny(objective, 30 if objective == "placement" else 8, shares=True):
        programme, model = teach.milp(problem), cpsat(problem)
        letters |= {row.letter for row in programme.rows}
        letters |= {re.split(r"[.\[]", row.name)[0] for row in model.proto.constraints}
        families |= {re.split(r"[.\[]", x.name)[0] for x in (*programme.columns, *model.proto.variables)}
    assert letters == {letter for letter, _, _ in words.constraints}
    assert families - {"fixed"} <= {family.letter for family in words.variables}


def test_text() -> None:
    """The text has variables and constraints, by objective or problem; an unknown one is refused."""
    text = teach.formulation("step")
    assert "x[op,device]  1 if op v is on device d" in text and "(P) inputs come first" in text
    problem = with_objective(generate("layered", ops=4, layers=2, devices=2, training=False), "step")
    assert repr(teach.formulation(problem)) == text
    with pytest.raises(InstanceError, match="did you mean step"):
        teach.formulation("steps")
