"""What the plugin skips, and what it says where it can't help."""

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.cluster_faults
def test_breaks(cluster): ...

@pytest.mark.real_node
def test_runs(cluster): ...

def test_uses(cluster): ...
"""


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run the tests with our plugin and without reading this project's settings."""
    pytester.makeini("[pytest]")
    pytester.makepyfile(TESTS)
    plugin = ["-p", "cluster_tools.pytest_plugin", "-p", "no:asyncio", "-p", "no:hypothesispytest"]
    return pytester.runpytest_inprocess(*plugin, "-rs", *options)


def test_faults_are_skipped_on_clusters_of_others_with_the_reason(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--cluster=existing", "-k", "breaks")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*breaks the cluster on purpose; not done to --cluster existing*"])


def test_real_pods_are_not_asked_of_simulated_nodes(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--cluster-node=kwok", "-k", "runs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*pods don't really run with --cluster-node kwok*"])


def test_kind_says_what_it_needs(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--cluster=kind", "-k", "uses", "-p", "no:pytest-kind")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*`--cluster kind` needs pytest-kind*"])


def test_existing_says_what_it_needs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    result = run(pytester, "--cluster=existing", "-k", "uses")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*`--cluster existing` needs kubectl on PATH*"])
