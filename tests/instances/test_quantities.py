"""Tests of numbers as people read them."""

import pytest

from gangplan.instances.quantities import alike, counted, moment, quantity, short


@pytest.mark.parametrize(
    ("value", "unit", "digits", "words"),
    [
        (1.16e-3, "s", 3, "1.16 ms"),
        (1999e-6, "s", 3, "2 ms"),
        (999.4e-6, "s", 3, "999 µs"),
        (999.6e-6, "s", 3, "1 ms"),
        (999.94e-6, "s", 4, "999.9 µs"),
        (999.96e-6, "s", 4, "1 ms"),
        (0.99996, "s", 4, "1 s"),
        (59.999, "s", 3, "60 s"),
        (599.4, "s", 3, "599 s"),
        (599.9, "s", 3, "10 min"),
        (7190.0, "s", 3, "120 min"),
        (7200.0, "s", 3, "2 h"),
        (172799.9, "s", 3, "2 d"),
        (1.7e9, "s", 3, "19676 d"),
        (2e-10, "s", 3, "0.2 ns"),
        (-1.16e-3, "s", 3, "-1.16 ms"),
        (0.0, "s", 3, "0 s"),
        (999.0, "B", 4, "999 B"),
        (999.96, "B", 4, "1 kB"),
        (999.7e6, "B", 4, "999.7 MB"),
        (9.12e10, "B", 4, "91.2 GB"),
        (3e18, "B", 4, "3000 PB"),
        (float("inf"), "B", 4, "unlimited"),
    ],
)
def test_a_prefix_suits_the_size(value: float, unit: str, digits: int, words: str) -> None:
    """What would round to the next prefix has it, and nothing has an exponent."""
    assert quantity(value, unit, digits) == words


def test_no_exponent_from_rounding() -> None:
    """A number that rounds to one digit more is still written in full."""
    assert (short(999.96, 3), short(9999.9, 4), short(99996.0, 4), short(1e-5)) == ("1000", "10000", "99996", "1.0e-05")


def test_one_unit_a_column() -> None:
    """The largest has three digits, the others as many decimals; what is not known is empty."""
    assert alike([7200.0, 90.0, None, 0.0], "s") == (["2.00", "0.03", "", "0.00"], "h")
    assert alike([20540.0, 1.0]) == (["20,540", "1"], "")
    assert alike([0.0, None], "s") == (["0", ""], "s")


def test_moments_are_dates_where_they_count_from_1970() -> None:
    """A clock of seconds since 1970 reads as a date, one that began with the cluster as seconds, whatever it says."""
    assert moment(1795800001.5) == "2026-11-27 17:20:01 UTC"
    assert [moment(x) for x in (0, -5.0, 86400, 1e15, float("inf"))] == ["0 s", "-5 s", "86400 s", "1e+15 s", "inf s"]
    assert [counted(n, "GPU") for n in (1, 2, 0.5, 20_000)] == ["1 GPU", "2 GPUs", "0.5 GPUs", "20,000 GPUs"]
