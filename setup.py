"""The mapping from top-level folders to the package; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = ["instances", "solvers", "simulator", "learned", "hybrid"]
setup(
    package_dir={"gangplan": "api", **{f"gangplan.{f}": f for f in FOLDERS}},
    packages=["gangplan", *(f"gangplan.{p}" for f in FOLDERS for p in [f, *(f"{f}.{q}" for q in find_packages(f))])],
)
