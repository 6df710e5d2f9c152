"""All facts together: what one survey asks a host, and the host that its answers describe."""

from collections.abc import Sequence
from dataclasses import replace

from rlxdeploy.facts import bench, digests, hardware, holders, network, platform, units
from rlxdeploy.facts.question import Answers, Question, legible
from rlxdeploy.model.host import Host
from rlxdeploy.model.survey import Hardware, HostFacts
from rlxdeploy.model.targets import Enquiry


def questions(enquiry: Enquiry) -> Sequence[Question]:
    """Return every question of *enquiry*; their names are unique."""
    return (
        *hardware.questions(enquiry),
        *bench.questions(enquiry),
        *platform.questions(enquiry),
        *network.questions(),
        *digests.questions(enquiry),
        *units.questions(enquiry),
        *holders.questions(enquiry),
    )


def parse(host: Host, enquiry: Enquiry, answers: Answers) -> HostFacts:
    """Read the answers; raise AnswerError where one that decisions rest on is missing or bad."""
    # In the order in which one row asks them, so that the one that hung is named.
    system = legible("system", lambda: platform.parse(enquiry, answers))
    job = legible("files", lambda: digests.parse(answers))
    ranks = legible("ranks", lambda: units.parse(answers))
    return HostFacts(
        host=host,
        hardware=legible("hardware", lambda: _hardware(enquiry, answers)),
        network=legible("network", lambda: network.parse(answers)),
        platform=system,
        job=replace(job, ranks=ranks),
        holders=legible("ports", lambda: holders.parse(enquiry, answers, ranks)),
        unanswered=answers.unanswered,
    )


def _hardware(enquiry: Enquiry, answers: Answers) -> Hardware:
    return bench.measured(hardware.parse(enquiry, answers), bench.parse(answers))
