"""Names that the release before had, and which work for one more."""

from __future__ import annotations

import pytest

import gangplan.hybrid.online as former
import gangplan.scheduler as present
from gangplan.doors.kubernetes import following, objects
from gangplan.systems.topdrl import suites

KEPT = [
    *("Decision", "Explanation", "Limit", "Mend", "Patient", "Proposes", "Quota", "Ranks", "RunsNow", "Scheduler"),
    *("Sharing", "Start", "Stop", "Terms", "View", "WaitingJob", "Window"),
]


@pytest.mark.parametrize("name", [*KEPT, "Candidate"])
def test_the_scheduler_is_found_where_it_was(name: str) -> None:
    """A program of the release before imports from `gangplan.hybrid.online`, and is told the new place."""
    with pytest.warns(FutureWarning, match=f"import {name} from there"):
        assert getattr(former, name) is getattr(present, "Considered" if name == "Candidate" else name)


def test_other_names_are_errors() -> None:
    """What never was there is not there."""
    with pytest.raises(AttributeError, match="Quote"):
        _ = former.Quote


def test_renamed_classes() -> None:
    """Classes that say what they are have their old names, too."""
    assert objects.Rules is objects.ReadingRules
    assert following.Loop is following.FollowLoop
    assert suites.Suite is suites.ClusterSuite
