"""Settings of the whole suite: hypothesis profiles, and a guard against tests that are skipped unnoticed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import hypothesis
import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; what tests start inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)
hypothesis.settings.register_profile("fast", max_examples=40, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=40, deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("nightly", max_examples=1000, deadline=None, print_blob=True)
IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if IN_CI else "fast"))

ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.txt")


def allowed_skips(text: str) -> tuple[str, ...]:
    """Node ids, or beginnings of them, from lines ``node id # reason``; the reason is required."""
    allowed = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        node, _, reason = line.partition(" # ")
        if not reason.strip():
            raise pytest.UsageError(f"{ALLOWED_SKIPS.name}:{number}: a skip needs ' # ' and a reason")
        allowed.append(node.strip())
    return tuple(allowed)


class SkipGuard:
    """Fail a run in which a test was skipped that is not on the committed list."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        self.allowed = allowed
        self.unexpected: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note(report.nodeid)

    def _note(self, node: str) -> None:
        if not node.startswith(self.allowed):
            self.unexpected.add(node)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unexpected and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.unexpected:
            terminalreporter.section(f"skipped, but not listed in tests/{ALLOWED_SKIPS.name}", red=True)
            for node in sorted(self.unexpected):
                terminalreporter.line(node)


def pytest_configure(config: pytest.Config) -> None:
    if IN_CI:
        # A registered plugin, unlike a hook of this file, also sees the doctests of the package.
        config.pluginmanager.register(SkipGuard(allowed_skips(ALLOWED_SKIPS.read_text())), "skip-guard")
