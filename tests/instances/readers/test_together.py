"""Tables of jobs alone and beside one another, as their owners have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.readers.measured import read_measured
from gangplan.instances.readers.together import Together

PLAIN = "model,batch size,GPUs,speed alone,speed together,partner model,partner batch size,partner GPUs"


def read(tmp_path: Path, text: str) -> Together:
    """Write a table and read it."""
    path = tmp_path / "mine.csv"
    path.write_text(text)
    (found,) = read_measured(path)
    assert isinstance(found, Together)
    return found


def test_a_row_is_a_job_and_its_partner(tmp_path: Path) -> None:
    """What the partner kept is unknown where its speeds are not there; one type is one model with batch and GPUs."""
    found = read(tmp_path, f"{PLAIN}\nA,32,1,10,8,B,16,2\nB,16,2,100,50,A,32,1\nA,64,1,12,6,B,16,2\n")
    assert found.name == "mine" and found.words == ("A", "B", "A")
    assert found.numbers == ((32.0, 1.0), (16.0, 2.0), (64.0, 1.0))
    assert found.kind.tolist() == [0, 1, 1, 0, 2, 1] and found.group.tolist() == [0, 0, 1, 1, 2, 2]
    assert np.array_equal(found.kept, [0.8, np.nan, 0.5, np.nan, 0.5, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    "header",
    [
        "Model 1;Alone 1;Together 1;Model 2;Alone 2;Together 2",
        "model_a;throughput_isolated_a;throughput_shared_a;model_b;throughput_isolated_b;throughput_shared_b",
        "Network;Speed alone (samples/s);Speed together (samples/s);Partner network;Partner alone;Partner together",
    ],
)
def test_other_words(tmp_path: Path, header: str) -> None:
    """Columns are known by their words, and both speeds of a row are read."""
    found = read(tmp_path, header.replace(";", ",") + ",GPU type\nA,10,9,B,4,1,V100\n")
    assert found.words == ("A", "B") and found.kept.tolist() == [0.9, 0.25]


def test_rows_two_by_two(tmp_path: Path) -> None:
    """With no word of who ran with whom, each two rows are a pair, and the name of the table says so."""
    found = read(
        tmp_path,
        "Model Name,BS,# GPUs,Throughput (isolated),co-located throughput [samples/s]\n"
        "A,32,1,10,8\nB,16,2,100,50\nA,32,1,10,9\nA,32,1,10,7\n",
    )
    assert found.group.tolist() == [0, 0, 1, 1] and found.kept.tolist() == [0.8, 0.5, 0.9, 0.7]
    assert found.name == "mine (rows paired two by two)"


def test_groups(tmp_path: Path) -> None:
    """Rows of one group ran together, however many and wherever they are."""
    found = read(tmp_path, "group,model,speed alone,speed together\nx,A,2,1\ny,B,2,2\nx,B,4,1\nx,A,2,1.5\n")
    assert found.kind.tolist() == [0, 1, 0, 1] and found.group.tolist() == [0, 0, 0, 1]
    assert found.kept.tolist() == [0.5, 0.25, 0.75, 1.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{PLAIN}\nA,32,1,10,8,B,16\n", "line 2: columns: the row has 7 of them, not 8"),
        (f"{PLAIN}\nA,32,1,10,8,B,16,2\nA,32,1,fast,8,B,16,2\n", "line 3: speed alone: 'fast' is not a number"),
        (f"{PLAIN}\nA,32,1,10,0,B,16,2\n", "line 2: speed together: '0' is not a positive number"),
        (f"{PLAIN}\nA,,1,10,8,B,16,2\n", "line 2: batch size: '' is not a number"),
        (f"{PLAIN}\n,32,1,10,8,B,16,2\n", "line 2: model: is empty"),
        (f"{PLAIN}\n", "content: has no row"),
        ("speed alone,speed together\n1,1\n", "header: speed alone,speed together has no column 'model'"),
        ("model,alone,together\nA,1,1\n", "content: 1 rows are not pairs, and no column 'partner model' or 'group'"),
        ("model,alone,together,partner alone,partner together\nA,1,1,1,1\n", "has no column 'partner model'"),
        ("model,speed alone,other\nA,1,1\n", "header: model,speed alone,other has no column 'speed together'"),
        ("model,network,alone,together,group\nA,A,1,1,x\n", "header: 'network' says the same as 'model'"),
        ("model,batch,alone,together,partner model\nA,1,1,1,B\n", "header: has 'batch' of one of the partners only"),
    ],
)
def test_wrong_tables(tmp_path: Path, text: str, words: str) -> None:
    """A broken table names file, line, column and the value found."""
    with pytest.raises(InstanceError, match=words) as error:
        read(tmp_path, text)
    assert "mine.csv" in str(error.value)
