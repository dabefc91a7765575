"""Write what is known of a suite as files that need no gangplan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import file_digest
from importlib.metadata import distribution
from pathlib import Path

from gangplan.instances.documents import json_schema
from gangplan.instances.intake import read_text
from gangplan.instances.kinds import DOCUMENTS
from gangplan.instances.outlet import write_whole

from .best_known import best_known, text_of
from .library import BEST_KNOWN, read_library
from .suite import Instance

_README = """GapBench {version}, an archive of {count} problems. LICENSE and CITATION.bib are for all of it.

problems/ID.json   a problem; schema/ has the JSON Schema of its kind, and of plans. Seconds, bytes, bytes/s, FLOP/s.
plans/ID.json      the best known plan
best_known.json    of each problem the best known value ("upper"), bounds, who found them, and how it is made
SHA256SUMS         checksums of all files, for sha256sum -c
"""
_CITATION = "@misc{{gapbench, title = {{GapBench: {Summary}}}, author = {{{Author}}}, note = {{version {Version}}}}}\n"


def write_archive(found: Sequence[Instance], place: Path) -> tuple[int, int]:
    """Add plans, values, schemas, checksums, licence and citation to problems; return how many plans and files.

    Args:
        found: instances that have a problem in a file.
        place: the archive, whose folder ``problems`` has their problems.
    """
    records, package = read_library(), distribution("gangplan")
    plans = {f"plans/{x.id}.json": records[x.id].plan for x in found if x.id in records and records[x.id].plan}
    schemas = {f"schema/{kind}.json": json_schema(kind) for kind in DOCUMENTS}
    texts = {path: json.dumps(data) + "\n" for path, data in (plans | schemas).items()}
    cited = _CITATION.format(**{x: package.metadata[x] for x in ("Summary", "Author", "Version")})
    licences = [x.locate() for x in package.files or () if x.name == "LICENSE"]
    texts |= {"LICENSE": read_text(Path(licences[0])) if licences else "", "CITATION.bib": cited}
    texts |= {"README": _README.format(version=package.version, count=len(found))}
    files = {place / path: text.encode() for path, text in texts.items()}
    known = best_known(found, records)
    of_files = ({k: v for k, v in x.items() if k not in x["arguments"]} for x in known)  # drawn may be more jobs
    files[place / BEST_KNOWN] = text_of({**x, "path": f"problems/{x['name']}.json"} for x in of_files)
    write_whole(files, folders=True)
    paths = sorted(x for x in place.rglob("*") if x.is_file() and x.name != "SHA256SUMS")
    sums = (f"{_sum(x)}  {x.relative_to(place).as_posix()}\n" for x in paths)
    write_whole({place / "SHA256SUMS": "".join(sums).encode()})
    return len(plans), len(paths) + 1


def _sum(path: Path) -> str:
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()
