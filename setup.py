"""What is compiled, and the mapping from top-level folders to the package; everything else is in pyproject.toml.

A module with the line ``import cython`` becomes an extension module beside its source. This file is the build backend
too: setuptools', which asks for the `ziglang` wheel where there is no C compiler.
"""

import gc
import os
import re
import shlex
import shutil
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from setuptools import Extension, build_meta, find_packages, setup
from setuptools.build_meta import *  # noqa: F403, the hooks of a build backend
from setuptools.command.build_ext import build_ext

FOLDERS = {
    "gangplan": "api",
    **{f"gangplan.{f}": f for f in ("instances", "solvers", "simulator", "learned", "scheduler", "systems", "hybrid")},
}
BUILT = Path("build/cython")
SHARED = "gangplan.solvers.shared"
"""The extension module with what Cython would else put into each."""
DIRECTIVES = {
    "language_level": 3, "infer_types": True, "cpow": True, "cdivision": True, "binding": False,
    "boundscheck": bool(os.environ.get("GANGPLAN_CHECKED")), "wraparound": False, "initializedcheck": False,
    "auto_pickle": False,
}  # fmt: skip
FLAGS = ["-O3", "-g0", "-w", "-ffp-contract=off", "-DCYTHON_INLINE=__attribute__((noinline))"]
"""No fused multiply-add: the same result on every machine. No copies of what Cython adds: half the time to compile."""
ZIG = "ziglang>=0.13,<0.16"
ADVICE = (
    f"gangplan: to build from source needs a C compiler and Python's headers; install them (Debian and Ubuntu: "
    f"apt install gcc python3-dev), or `{ZIG}` where only the compiler is missing, or copy a wheel that `./run wheel` "
    "made on another machine."
)


def modules():
    """Return the sources of extension modules by module."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted(Path(folder).rglob("*.py")):
            if re.search("^import cython$", path.read_text(encoding="utf-8"), re.MULTILINE):
                found[".".join([package, *path.relative_to(folder).with_suffix("").parts])] = str(path)
    return found


def compiler():
    """Return the command of the C compiler, `None` if there is none but perhaps that of the `ziglang` wheel."""
    named = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return next((x for x in (named, "cc", "gcc", "clang") if shutil.which(shlex.split(x)[0])), None)


def get_requires_for_build_wheel(config_settings=None):
    """Return what a build needs besides setuptools and Cython."""
    return build_meta.get_requires_for_build_wheel(config_settings) + ([] if compiler() else [ZIG])


get_requires_for_build_editable = get_requires_for_build_wheel


class Build(build_ext):
    """Translates modules to C, out of the way of sources, and compiles them, as many at a time as there are cores."""

    def run(self):
        """Build what is older than its source."""
        from Cython.Build import cythonize
        from Cython.Compiler import Options

        command = compiler()
        if command is None and find_spec("ziglang"):
            # without a target it would compile for this processor alone
            target = {"linux": f"-target {os.uname().machine}-linux-gnu.2.17"}.get(sys.platform, "")
            command = f"{shlex.quote(sys.executable)} -m ziglang cc {target}"
        if command is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
            raise SystemExit(ADVICE)
        os.environ["CC"], self.parallel = command, os.cpu_count()
        root = BUILT / "include/gangplan"  # where Cython looks for what modules share
        root.mkdir(parents=True, exist_ok=True)
        for package, folder in FOLDERS.items():
            if package != "gangplan" and not (root / folder).is_symlink():
                (root / folder).symlink_to(os.path.relpath(folder, root))
        Options.get_directive_defaults()["exceptval"] = (None, False)  # kernels raise nothing
        Options.emit_code_comments = False
        gc.disable()  # Cython keeps what it makes: a third of the time to translate
        translated = cythonize(
            self.extensions, nthreads=self.parallel if len(self.extensions) > 3 else 0, build_dir=BUILT,
            include_path=[str(root.parent)], compiler_directives=DIRECTIVES, shared_utility_qualified_name=SHARED,
        )  # fmt: skip
        gc.enable()
        sources = {x.name: x.sources for x in translated}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        self.extensions.sort(key=lambda x: -Path(x.sources[0]).stat().st_size)  # so that cores end together
        super().run()


def extension(name, path):
    """Return an extension module that every Python from 3.11 on can load."""
    return Extension(
        name, [path], define_macros=[("Py_LIMITED_API", "0x030B0000")], py_limited_api=True, libraries=["m"],
        extra_compile_args=FLAGS, depends=["setup.py"], extra_link_args=["-s"] if sys.platform == "linux" else [],
    )  # fmt: skip


if __name__ == "__main__":
    setup(
        package_dir=FOLDERS,
        packages=[
            p for name, folder in FOLDERS.items() for p in (name, *(f"{name}.{q}" for q in find_packages(folder)))
        ],
        ext_modules=[extension(*x) for x in {**modules(), SHARED: str(BUILT / "shared.c")}.items()],
        cmdclass={"build_ext": Build},
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
