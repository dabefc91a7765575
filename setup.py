"""The mapping from top-level folders to the package; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = {
    "gangplan": "api",
    **{f"gangplan.{f}": f for f in ("instances", "solvers", "simulator", "learned", "scheduler", "systems", "hybrid")},
}
setup(
    package_dir=FOLDERS,
    packages=[p for name, folder in FOLDERS.items() for p in (name, *(f"{name}.{q}" for q in find_packages(folder)))],
)
