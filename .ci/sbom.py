"""Write what a wheel brings with it, as CycloneDX 1.6, beside the wheel; print what the core and each extra weigh.

``python .ci/sbom.py dist``: versions, licences and sizes are those of the environment that this runs in, which
``./run wheel`` makes of constraints.txt.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needs(found: Distribution, extra: str = "") -> Iterator[Requirement]:
    """Yield what a distribution requires here, by itself or of an extra."""
    for text in found.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if extra == "" and (marker is None or marker.evaluate({"extra": ""})):
            yield requirement
        if extra and marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            yield requirement


def closure(roots: Iterator[Requirement]) -> tuple[dict[str, Distribution], set[str]]:
    """Return all that some requirements bring, and the names of what is not installed."""
    found, absent, todo = dict[str, Distribution](), set[str](), list(roots)
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if name in found or name in absent:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            absent.add(name)
            continue
        todo += needs(found[name])
        todo += [x for extra in requirement.extras for x in needs(found[name], extra)]
    return found, absent


def size(found: Distribution) -> int:
    """Return the bytes of the files that a distribution installed, without what Python compiled of them."""
    paths = [Path(str(file.locate())) for file in found.files or () if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def component(found: Distribution, kind: str = "library") -> dict[str, Any]:
    """Return a distribution as CycloneDX has it."""
    meta, name = found.metadata, canonicalize_name(found.name)
    licence = meta.get("License-Expression") or (meta.get("License") or "").partition("\n")[0][:80]
    purl = f"pkg:pypi/{name}@{found.version}"
    row = {"type": kind, "bom-ref": purl, "name": name, "version": found.version, "purl": purl}
    return row | ({"licenses": [{"license": {"name": licence}}]} if licence else {})


def main() -> int:
    """Write the document beside the one wheel of a folder."""
    (wheel,) = Path(sys.argv[1]).glob("gangplan-*.whl")
    ours = distribution("gangplan")
    core, absent = closure(needs(ours))
    if absent:
        raise SystemExit(f"not installed: {', '.join(sorted(absent))}")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    top = component(ours, "application") | {"hashes": [{"alg": "SHA-256", "content": digest}]}
    refs = {name: component(x)["bom-ref"] for name, x in core.items()}
    links = [
        {"ref": ref, "dependsOn": sorted({refs[canonicalize_name(r.name)] for r in needs(x)})}
        for ref, x in [(top["bom-ref"], ours), *((refs[name], x) for name, x in sorted(core.items()))]
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": datetime.now(UTC).isoformat(timespec="seconds"), "component": top},
        "components": [component(x) for _, x in sorted(core.items())],
        "dependencies": links,
    }
    out = wheel.with_suffix(".cdx.json")
    out.write_text(json.dumps(document, indent=1) + "\n")
    sizes = {name: size(x) / 1e6 for name, x in core.items()}
    print(f"{out}: {len(core)} components")
    print(f"{'core':12} {sum(sizes.values()):>7.0f} MB, and the wheel {wheel.stat().st_size / 1e6:.0f} MB")
    for name, each in sorted(sizes.items(), key=lambda x: -x[1])[:12]:
        print(f"  {name:22} {each:>7.1f} MB")
    for extra in sorted(ours.metadata.get_all("Provides-Extra") or ()):
        more, lacks = closure(needs(ours, extra))
        total = sum(size(x) for name, x in more.items() if name not in core) / 1e6
        print(f"{extra:12} {total:>7.0f} MB more{'; not here: ' + ', '.join(sorted(lacks)) if lacks else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
