"""A namespace that is deleted with everything in it, under the operator's feet."""

from datetime import timedelta

from cluster.backstage import Backstage
from cluster.conftest import Report
from cluster.load import Load

GONE_SECONDS = 150.0
"""Namespaces are deleted in rounds, with pauses that grow."""


def a_namespace_being_deleted(backstage: Backstage, report: Report) -> None:
    """Expect nothing to hold it up, nothing to be written into it any more, and no fault of the operator's."""
    with backstage.world("deleted") as world:
        operator = world.operator()
        load = Load(world)
        load.apply()
        load.until_fired(2)
        world.rest.delete_namespace(world.namespace)
        world.until("it to be gone", lambda: world.rest.namespace(world.namespace) is None, GONE_SECONDS)
        # What was on its way is refused; then there is nothing left to be written about.
        world.until_now_is(world.clock.now() + timedelta(minutes=1))
        writes = len(world.proxy.writes)
        world.until_now_is(world.clock.now() + timedelta(minutes=3))
        later = world.proxy.writes[writes:]
        log = world.log.read_text()
        report(f"a namespace deleted: {len(later)} writes afterwards, {log.count('Traceback')} faults logged")
        assert not later, [str(write.point) for write in later]
        assert "Traceback" not in log
        assert operator.alive


PLAYS = (a_namespace_being_deleted,)
