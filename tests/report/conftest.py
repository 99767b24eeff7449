"""Results of real commands, small: made once, in this process, and copied by the tests that change them."""

import os
import shutil
import sys
from concurrent.futures import Executor, Future
from contextlib import contextmanager

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from markov_theory.plan.__main__ import main as plan_main
from markov_theory.report.__main__ import main
from markov_theory.sweep.__main__ import main as sweep_main
from markov_theory.sweep.trials import prepare
from markov_theory.verify.__main__ import main as verify_main
from tests.report.parsing import Page

SMALL = ["--tokens", "12", "--outcomes", "16", "--ratio", "20", "--epsilon", "1e-4", "--delta", "0.2"]
FEW = ["--trials", "128", "--jobs", "1"]
SCRIPT, PICTURE = "<script>alert('x')</script>", '<img src=x onerror="alert(1)">$a$'
OWN = f"""
from markov_theory.bounds import Bound
from markov_theory.estimators import ESTIMATORS

class Few(Bound):
    label, kind, origin, speaks_of, statement, reason = "few+", "upper", "<b>mine</b>", ("oracle",), "N >= 2 & more", ""

    @staticmethod
    def n_samples(epsilon):
        return 1.5

globals()[{SCRIPT!r}] = type("Mine", (ESTIMATORS["smoothed-empirical"],), {{"name": "mine"}})
"""


class Inline(Executor):
    """Runs what is submitted at once."""

    def submit(self, function, /, *arguments, **keywords):
        future = Future()
        try:
            future.set_result(function(*arguments, **keywords))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def here(specification, n_jobs, given=None):
    prepare(specification, given)
    with threadpool_limits(1):
        yield Inline()


@pytest.fixture(scope="session")
def swept():
    """Run the command of the sweep in this process."""

    def run(*flags):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("markov_theory.sweep.engine.local_processes", here)
            return sweep_main([*map(str, flags)])

    return run


@pytest.fixture(scope="session")
def made(tmp_path_factory, swept):
    folder = tmp_path_factory.mktemp("made") / "whole"
    flags = ("--s", "1..4", *SMALL, "--truths", "2", *FEW, "--estimators", "oracle,kl-pursuit,constrained-kl,uniform")
    assert swept(*flags, "--out", folder) == 0
    return folder


@pytest.fixture
def whole(made, tmp_path):
    """A sweep that ended well, to do with as one likes."""
    return shutil.copytree(made, tmp_path / "whole")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory, swept):
    """A sweep of names that mean something to a browser, with a bound that is false."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "own_hostile.py").write_text(OWN)
    np.savez(folder / f"{PICTURE}.npz", transitions=np.random.default_rng(0).dirichlet(np.ones(6), size=8))
    before = os.getcwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        flags = ["--dictionary", f"{PICTURE}.npz", "--s", "2,3", "--epsilon", "1e-2", "--delta", "0.2", "--truths", "1"]
        own = ["--estimators", f"oracle,own_hostile:{SCRIPT}", "--bounds", "S6,own_hostile:Few"]
        swept(*flags, *FEW, *own, "--out", "out")
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
    return folder / "out"


@pytest.fixture(scope="session")
def verified(tmp_path_factory):
    """Claims, one of them statistical, and planted false statements, in one folder."""
    folder = tmp_path_factory.mktemp("verified")
    assert verify_main(["--claims", "kappa,S6,O1@scale", "--jobs", "1", "--out", str(folder)]) == 0
    assert verify_main(["--mutants", "--claims", "S6^1,kappa", "--jobs", "1", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="session")
def planned(tmp_path_factory):
    path = tmp_path_factory.mktemp("planned") / "plan.json"
    rows = ["--tokens", "12", "--outcomes", "16", "--ratio", "20", "--epsilon", "1e-2"]
    assert plan_main(["--s", "2", *rows, "--truths", "2", "--trials", "96", "--json", str(path)]) == 0
    return path


@pytest.fixture
def page(tmp_path, capsys):
    """Make the page of some results, and parse it."""

    def make(*results, flags=()):
        out = tmp_path / "page.html"
        assert main([*map(str, results), "--out", str(out), *flags]) == 0, capsys.readouterr().err
        return Page(out.read_text(encoding="utf-8"))

    return make
