"""Whom to ask, and what: the inventory's machines with the questions this job has for them."""

from dataclasses import dataclass

from rlxdeploy.errors import Finding, Place
from rlxdeploy.model.host import Host
from rlxdeploy.model.survey import Platform
from rlxdeploy.model.vocabulary import Launch


@dataclass(frozen=True, slots=True)
class Enquiry:
    """What the survey of one host has to find out besides the machine itself.

    *programs* are argv[0]s to find on the host, *python* is the one whose version and numpy count;
    *folders* are asked for their free space; *ports* are TCP ports whose holders matter; *user* is
    the account the job shall run as.  Without *sudo* not even `sudo -n` is tried: a found host is
    left alone until it is in a plan.  With *bench* its devices and its disk are measured as well.
    *launch* is how ranks are to be started, as it is written; root's own manager counts only where
    it is named.  *known* is what the host was before: what is still so it need not tell again.
    """

    job: str
    programs: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    folders: tuple[str, ...] = ()
    user: str | None = None
    python: str = "python3"
    sudo: bool = True
    bench: bool = False
    launch: Launch = Launch.AUTO
    known: Platform | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """One machine to survey; *nodes* index the `[[node]]` entries written for it (none: found)."""

    host: Host
    enquiry: Enquiry
    nodes: tuple[int, ...] = ()
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Targets:
    """Every machine to survey, in the order in which the inventory names them."""

    targets: tuple[Target, ...]
    notices: tuple[Finding, ...] = ()
