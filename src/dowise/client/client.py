"""An experiment on a server, by the methods of `Experiment`."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dowise.checks import true_or_false, whole_number
from dowise.client.address import Address, address_of
from dowise.client.answers import unreadable
from dowise.client.line import Line, segment
from dowise.client.looks import Looks, check_api
from dowise.errors import DowiseError, DowiseWarning, NotFoundError, suggestion
from dowise.experiment.asking import Asked
from dowise.experiment.case import Case
from dowise.experiment.given import checked_request, listed_arms, listed_contexts
from dowise.experiment.importing import BadRowsError, checked_rows
from dowise.experiment.opening import checked_name
from dowise.experiment.plan import DEFAULT_POLICY
from dowise.experiment.sent import arm_page, arm_pages, options_page, records_page, values_page
from dowise.problem import Problem, load_problem
from dowise.problem.problem import ArmLike, Context
from dowise.problem.problem_file import problem_text

__all__ = ["Client"]


class Client(Looks):
    """An experiment that `dowise serve` keeps, with the methods of `dowise.Experiment`.

    `url` is that of the server, or of an experiment in it; the name may be left out where there is
    only one. The token is read from the variable DOWISE_TOKEN unless it is given, and sent
    unencrypted to this machine only, unless you say `insecure`. The server knows by the token who
    acts. Safe for threads. A broken connection is tried again where that can't do anything twice:
    one `ask` is one decision.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        name: str | None = None,
        *,
        insecure: bool = False,
    ) -> None:
        address = address_of(url)
        line = Line(address.base, token, insecure)
        try:
            super().__init__(line, _found_name(line, address, name))
        except BaseException:
            line.close()
            raise

    @classmethod
    def create(
        cls,
        url: str,
        name: str | None,
        problem: Problem | str | Path,
        policy: str = DEFAULT_POLICY,
        options: Mapping[str, Any] | None = None,
        seed: int | None = None,
        *,
        learn_restricted: bool = True,
        records: Any = None,
        source: str | None = None,
        skip_bad: bool = False,
        token: str | None = None,
        insecure: bool = False,
    ) -> Client:
        """A new experiment on a server, which takes an admin's token; as `Experiment.create`.

        The problem is sent as a text, with all that it takes from files, and the records row by
        row. The name may stand in the URL instead.
        """
        address = address_of(url)
        chosen = checked_name(_one_name(address, name))
        about = load_problem(problem) if isinstance(problem, str | Path) else problem
        if not isinstance(about, Problem):
            raise DowiseError("an experiment is about a Problem, or the path of a problem file")
        body = {
            "name": chosen,
            "problem": problem_text(about),
            "policy": policy,
            "options": options_page(options),
            "seed": None if seed is None else whole_number("seed", seed, 0, 2**128 - 1),
            "learn_restricted": learn_restricted,
        }
        body |= _records(about, records, None, source, skip_bad)
        line = Line(address.base, token, insecure)
        try:
            _warn_of(line.post("/api/experiments", body))
        finally:
            line.close()
        return cls(address.base, token, chosen, insecure=insecure)

    def close(self) -> None:
        """Let go of connections; whatever is asked afterwards opens them anew."""
        self._line.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # -- asking -------------------------------------------------------------------------------

    def ask(
        self,
        context: Context = None,
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> Asked:
        """Which arm to play for this context. The decision is pending from then on.

        `allowed` lists the arms to choose from; `forbid` lists what must not be set, "do(X=1)",
        and rules out every arm that sets it. With a `request_id` the same call may be made again
        and gives the same decision; without one this call has one of its own.
        """
        return self._ask("ask", {"context": _context(context)}, request_id, allowed, forbid)[0]

    def ask_many(
        self,
        contexts: Sequence[Context],
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> list[Asked]:
        """A decision for each of these contexts, all in one step, without needless repeats."""
        asked = {"contexts": [_context(one) for one in listed_contexts(contexts)]}
        return self._ask("ask-many", asked, request_id, allowed, forbid)

    def _ask(
        self,
        verb: str,
        body: dict[str, Any],
        request_id: str | None,
        allowed: Iterable[ArmLike] | None,
        forbid: Iterable[ArmLike] | None,
    ) -> list[Asked]:
        may, never = listed_arms("allowed", allowed), listed_arms("forbid", forbid)
        body |= {"allowed": arm_pages(may), "forbid": arm_pages(never)}
        key = checked_request(request_id) or secrets.token_hex(16)
        if not _fits_a_header(key):
            body["request_id"], key = key, secrets.token_hex(16)
        page = self._line.post(self._path(verb), body, key)
        found = self._part(page, "decisions", list) if verb == "ask-many" else [page]
        return [self._read(Asked.from_dict, one, self._problem(one)) for one in found]

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self,
        id: int,  # noqa: A002 (what decisions call it)
        values: Mapping[str, object] | None = None,
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        """What was seen after a decision: in pieces, at any time, in any order.

        The context and what the arm set are known, and may be told again if they agree. None says
        that a value is missing for good. Telling the same again changes nothing; other values for
        the same variable are an error: `amend` corrects. `played` says what was done instead of the
        arm that was decided on, and `unrelated` that this had nothing to do with the unit.
        """
        return self._say("tell", id, _told(values, "what was told", played, unrelated))

    def amend(
        self,
        id: int,  # noqa: A002
        values: Mapping[str, object] | None = None,
        reason: str = "",
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        """Correct what was told, or the context; the journal keeps what was said before."""
        body = _told(values, "an amendment", played, unrelated)
        return self._say("amend", id, body | {"reason": reason})

    def withdraw(self, id: int, reason: str = "") -> Case:  # noqa: A002
        """End a pending decision of which nothing more will be told."""
        return self._say("withdraw", id, {"reason": reason})

    def _say(self, verb: str, number: int, body: Mapping[str, Any]) -> Case:
        path = self._path(f"{verb}/{self._number(number)}")
        page = self._line.post(path, body, is_repeatable=True)
        return self._read(Case.from_dict, page)

    # -- changing the experiment itself -------------------------------------------------------

    def revise(
        self,
        problem: Problem | str | Path | None = None,
        policy: str | None = None,
        options: Mapping[str, Any] | None = None,
        reason: str = "",
        *,
        learn_restricted: bool | None = None,
    ) -> bool:
        """A new graph, roles, prior or policy from here on; whether that changes anything.

        It takes an admin's token. Past records count again under it, read by label. Options are
        kept unless given, all of them new with a new policy.
        """
        about = load_problem(problem) if isinstance(problem, str | Path) else problem
        body = {
            "problem": None if about is None else problem_text(about),
            "policy": policy,
            "options": None if options is None else options_page(options),
            "reason": reason,
            "learn_restricted": learn_restricted,
        }
        page = self._line.post(self._path("revise"), body)
        _warn_of(page)
        return self._part(page, "changed", bool)

    def import_records(
        self,
        frame: Any,
        arm: ArmLike | None = None,
        *,
        source: str | None = None,
        skip_bad: bool = False,
        again: bool = False,
    ) -> int:
        """Past records, as `Belief.update_many` takes them; the number that was brought in.

        They are read here, and sent row by row; it takes an admin's token. A bad row is an error
        that lists the bad ones, and nothing is imported, unless `skip_bad`. The same table twice is
        an error too, unless `again`. `source` says where they are from, in the journal.
        """
        body = _records(self.problem, frame, arm, source, skip_bad)
        if not body:
            return 0
        page = self._line.post(self._path("import"), body | {"again": again})
        _warn_of(page)
        return self._part(page, "imported", int)

    def erase(self, id: int, reason: str = "") -> bool:  # noqa: A002
        """Blank all that was said of a decision, for good: a person's right.

        It takes an admin's token. An event says that this was done, and the chain of hashes still
        holds. Gives whether there was something to erase.
        """
        page = self._line.post(self._path(f"erase/{self._number(id)}"), {"reason": reason})
        return self._part(page, "changed", bool)


def _found_name(line: Line, address: Address, name: str | None) -> str:
    """The name of the experiment, which may be left out where the server has only one."""
    given = (_one_name(address, name),) if name is not None else address.names
    if len(given) == 1:
        check_api(line.base, line.get(f"/api/experiments/{segment(given[0])}"))
        return given[0]
    page = line.get("/api/experiments")
    check_api(line.base, page)
    try:
        names = [str(one["name"]) for one in page["experiments"]]
    except (KeyError, TypeError):
        raise unreadable(line.base) from None
    if given:
        return next((one for one in given if one in names), given[0])
    if not names:
        raise NotFoundError(
            f"{line.base} holds no experiment: make one (dowise new {line.base} PROBLEM, or "
            "Client.create in Python)"
        )
    if len(names) > 1:
        raise DowiseError(f"{line.base} holds {', '.join(names)}: say which (`name`)")
    return names[0]


def _one_name(address: Address, name: str | None) -> str:
    """That of the URL, or the one that was given besides: they must not differ."""
    if name is None and address.name is None:
        raise DowiseError("say what the experiment is called: by its name, or in the URL")
    if name is not None and address.name is not None and name not in address.names:
        raise DowiseError(
            f"the URL names the experiment {address.name!r}, and the name besides it is {name!r}"
            f"{suggestion(name, address.names)}: leave one of them out"
        )
    return address.name or "" if name is None else name


def _context(context: Context) -> dict[str, str | None] | None:
    return None if context is None else values_page(context, "the context")


def _told(values: object, what: str, played: ArmLike | None, unrelated: bool) -> dict[str, Any]:
    done = None if played is None else arm_page(played)
    return {"values": values_page(values, what), "played": done, "unrelated": unrelated}


def _records(
    problem: Problem, frame: Any, arm: ArmLike | None, source: str | None, skip_bad: bool
) -> dict[str, Any]:
    """What is sent of a table that was checked here; nothing where no row of it is good."""
    if frame is None:
        return {}
    found = checked_rows(problem, frame, arm)
    if found.bad_count and not true_or_false("skip_bad", skip_bad):
        raise BadRowsError(found)
    if not len(found.batch):
        return {}
    return {**records_page(found), "source": source, "skip_bad": skip_bad}


def _warn_of(page: Mapping[str, Any]) -> None:
    """Say what the server warned of, as it would have been said here."""
    for note in page.get("notes") or ():
        warnings.warn(str(note), DowiseWarning, stacklevel=3)


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip() and len(text) <= 200
