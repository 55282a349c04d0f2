"""A durable experiment: ask for trials, tell their outcomes, from as many processes as you like."""

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from polyarm.engine.certificate import Certificate, make_certificate
from polyarm.engine.outcomes import check_costs, check_outcome
from polyarm.engine.session import Session
from polyarm.environments.replay import read_outcomes
from polyarm.errors import ExplorationOver, InvalidInput, NoFeasibleMix, PolyarmError, StorageError, StudyHalted
from polyarm.problem import Problem
from polyarm.report.answer import Recommendation
from polyarm.studies import events
from polyarm.studies.events import Event, StoredEvent
from polyarm.studies.projection import ARCHIVED, RUNNING, STOPPED, StudyRow
from polyarm.studies.state import HAND, LEASE, StudyState
from polyarm.studies.statement import Statement, read_stated
from polyarm.studies.status import Moment, StudyStatus, claim_alarm, describe, describe_alarm, describe_end
from polyarm.studies.storage import Storage, Writer
from polyarm.studies.tell_file import read_reports
from polyarm.studies.trial import (
    Observed,
    Report,
    Told,
    Trial,
    check_arm,
    check_number,
    check_report,
    merge,
    read_time,
    write_time,
)

Costs = Sequence[float] | Mapping[str, float]
Clock = Callable[[], datetime]

#: Events between snapshots: what opening a study may have to replay.
SNAPSHOT_EVERY = 2_000
#: Snapshots hold the outcomes that wait: the log must grow by this share of them before the next one.
_SNAPSHOT_SHARE = 0.125
#: Nobody hands out more at once.
_LARGEST_BATCH = 1_000_000
#: How long a request may be repeated under its key.
_KEYS_LAST = timedelta(days=2)
_LONGEST_KEY = 200

_log = logging.getLogger("polyarm")


def utc_now() -> datetime:
    """Return the time, for leases and the log."""
    return datetime.now(UTC)


def recommend_from(session: Session, assumptions: Sequence[str]) -> Recommendation:
    """Return the mix to choose by a study's explorer, with what the study itself has to assume."""
    if session.infeasible:
        raise NoFeasibleMix(session.claim_infeasible().under(*assumptions).sentence)
    answer = session.recommend()
    claims = answer.claims
    for assumption in assumptions:
        claims = claims.under(assumption, "the study cannot know")
    return replace(answer, claims=claims)


def _once(
    writer: Writer, key: str | None, request: list[Any], act: Callable[[], Any], lasting: bool = False
) -> tuple[Any, bool]:
    """Act, and return the answer in JSON types and whether it is a stored one.

    A repeated key returns the stored answer. Answers are kept for two days, `lasting` ones for ever.
    """
    if key is None:
        return act(), False
    if not isinstance(key, str) or not 1 <= len(key) <= _LONGEST_KEY or not key.isprintable():
        raise InvalidInput(f"key: expected 1 to {_LONGEST_KEY} printable characters, got {key!r}")
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    reply = writer.recall(key, digest)
    if reply is not None:
        return reply, True
    reply = act()
    writer.remember(key, digest, reply, write_time(read_time(writer.at) - _KEYS_LAST), lasting)
    return reply, False


class Study:
    """One experiment in a storage; get one from `create_study` or `load_study`.

    Every method that changes something is one transaction: once it returns, the change is on disk; if it raises,
    nothing has changed. After a `StorageError` the change was recorded whole or not at all. Many processes and threads
    may work on one study at once.
    """

    def __init__(self, storage: Storage, row: StudyRow, clock: Clock = utc_now) -> None:
        self._storage = storage
        self._id = row.id
        self._clock = clock
        self._guard = threading.RLock()
        self._state: StudyState | None = None
        self._snapshot_seq = 0
        self._unread = 0  # events that this object has added and not looked at since
        self._row = row
        self.name = row.name

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self._storage.address}>"

    @cached_property
    def statement(self) -> Statement:
        """What the study was stated to be when it was created."""
        return Statement(**self.stated)

    @cached_property
    def stated(self) -> dict[str, Any]:
        """The same as it is stored."""
        return read_stated(self._row.statement)

    @property
    def created_at(self) -> datetime:
        """When the study was created."""
        return read_time(self._row.created_at)

    @property
    def problem(self) -> Problem:
        """The problem being explored."""
        return self.statement.problem

    @property
    def id(self) -> int:
        """The number of the study in its storage; never given to another."""
        return self._id

    @property
    def storage(self) -> str:
        """The address of the storage, without a password."""
        return self._storage.address

    # -- asking and telling -----------------------------------------------------------------------------------------

    def ask(self, n: int = 1, key: str | None = None) -> list[Trial]:
        """Hand out trials: pull each one's arm and tell its outcome, in any order, whenever it is known.

        Trials under way count as pulls to come. A batch may be larger than what the explorer is sure to want; the
        larger it is, the more of it may go unused.

        Args:
            n: How many trials, from 1 to a million.
            key: Any text of yours, up to 200 characters: a repeated key returns the same trials, for callers who may
                miss the answer. It is kept for two days; by default every call hands out new trials.
        """
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _LARGEST_BATCH:
            raise InvalidInput(f"n: expected a whole number, 1 to {_LARGEST_BATCH}, got {n!r}")
        self._give_up_overdue()
        with self._changing() as (writer, state):
            known = state.tripped
            given, _ = _once(
                writer, key, ["ask", n], lambda: [trial.document() for trial in self._hand_out(writer, state, n)]
            )
            alarm = claim_alarm(state) if state.tripped is not known else None
        if alarm is not None:
            _log.warning("study %r: %s", self.name, describe_alarm(alarm))
        return [Trial.from_document(trial) for trial in given]

    def _hand_out(self, writer: Writer, state: StudyState, n: int) -> list[Trial]:
        self._require_lifecycle(writer, RUNNING)
        if state.session.stopped:
            raise ExplorationOver(f"study {self.name!r}: {describe_end(state)}")
        excess = state.alarm()
        if excess:
            state.apply(writer.append(events.TRIPPED, {"excess": excess}))
        lease = None
        if self.statement.lease is not None:
            lease = read_time(writer.at) + timedelta(seconds=self.statement.lease)
        until = None if lease is None else write_time(lease)
        given = []
        for _ in range(n):
            arm, route = state.choose()
            trial = writer.study.last_trial + 1
            asked = {"trial": trial, "arm": arm, "lease_until": until, "route": route}
            state.apply(writer.append(events.ASKED, asked))
            given.append(Trial(trial, self.problem.arms[arm], arm, lease, route))
        return given

    def tell(self, trial: Trial | int, reward: float | None = None, costs: Costs | None = None) -> Told:
        """Record the outcome of a trial, whole or in parts: the reward now, say, and a cost when it is known.

        Telling the same again changes nothing, and the result says so; telling something else raises `InvalidInput`. A
        trial whose lease ran out may still be told.

        Args:
            trial: The trial, or its number.
            reward: Its reward; None if it is not known yet.
            costs: Its costs by name of the unknown constraint, as far as they are known, or all of them in their order;
                None if none is known yet.
        """
        return self.tell_many([(trial, reward, costs)])[0]

    def tell_many(
        self, tells: Iterable[tuple[Trial | int, float | None, Costs | None]], key: str | None = None
    ) -> list[Told]:
        """Record many outcomes: all of them, or none if one is wrong.

        Args:
            tells: One `(trial, reward, costs)` per outcome, as for `tell`.
            key: Any text of yours: a repeated key returns the first answer and changes nothing. It is kept for two
                days.
        """
        return self._tell([check_report(self.problem, *tell) for tell in tells], key)

    def tell_file(self, path: str | Path) -> list[Told]:
        """Record the rows of a file: all of them, or none if one is wrong.

        Args:
            path: A `.csv` or `.parquet` file with the columns `id`, `reward` and one per unknown constraint. An empty
                cell is not known yet. A column `arm`, if there is one, must name the arms of the trials.
        """
        return self._tell(read_reports(path, self.problem), None)

    def _tell(self, reports: Sequence[Report], key: str | None) -> list[Told]:
        request = ["tell", [(report.trial, report.reward, report.costs) for report in reports]]
        with self._adding() as writer:
            told, _ = _once(writer, key, request, lambda: self._take_all_in(writer, reports))
        return [Told.from_document(one) for one in told]

    def _take_all_in(self, writer: Writer, reports: Sequence[Report]) -> list[dict[str, Any]]:
        self._require_lifecycle(writer, RUNNING, STOPPED)
        writer.load_trials(sorted({report.trial for report in reports}))
        told = []
        for report in reports:
            try:
                told.append(self._take_in(writer, report).document())
            except InvalidInput as error:
                if not report.where:
                    raise
                raise type(error)(f"{report.where}: {error}") from None
        return told

    def _take_in(self, writer: Writer, report: Report) -> Told:
        row = writer.trial(report.trial)
        if row is None:
            asked = f"1 to {writer.study.last_trial}" if writer.study.last_trial else "none yet"
            raise InvalidInput(f"trial {report.trial} was never asked for in study {self.name!r}; its trials: {asked}")
        check_arm(report, self.problem.arms[row.arm])
        merged, told = merge(row, report, self.problem)
        if told.status != "duplicate":
            writer.append(events.TOLD, merged)
        return told

    def observe(self, arm: int | str, reward: float, costs: Costs = ()) -> int:
        """Record an outcome that nobody asked for; returns the number of its trial. The certificate will say so.

        Args:
            arm: The arm that was pulled: its name or its index.
            reward: Its reward.
            costs: Its costs: one number per unknown constraint, in their order or by name.
        """
        return self.observe_many([(arm, reward, costs)])[0]

    def observe_many(self, rows: Iterable[tuple[int | str, float, Costs]], key: str | None = None) -> list[int]:
        """Record outcomes that nobody asked for: all of them, or none if one is wrong. Returns the numbers of their
        trials.

        Args:
            rows: One `(arm, reward, costs)` per outcome, as for `observe`.
            key: Any text of yours: the same outcomes twice count twice, unless both calls have the same key, however
                much later.
        """
        return list(self._observe(rows, key).trials)

    def observe_file(self, path: str | Path, again: bool = False) -> Observed:
        """Record the rows of a file as outcomes that nobody asked for: all of them, or none if one is wrong.

        Args:
            path: A `.csv` or `.parquet` file with the columns `arm`, `reward` and one per unknown constraint.
            again: Count a file that was recorded before once more; by default it changes nothing, and the result says
                so.
        """
        rows = list(read_outcomes(path, self.problem))
        return self._observe(rows, None if again else f"file {_digest_file(path)}")

    def _observe(self, rows: Iterable[tuple[int | str, float, Costs]], key: str | None) -> Observed:
        checked = [
            (self.problem.arm_index(arm), check_outcome("reward", reward), check_costs(self.problem, costs))
            for arm, reward, costs in rows
        ]
        with self._adding() as writer:
            trials, repeated = _once(
                writer, key, ["observe", checked], lambda: self._note_all(writer, checked), lasting=True
            )
        return Observed(tuple(trials), repeated)

    def _note_all(self, writer: Writer, checked: Sequence[tuple[int, float, dict[str, float]]]) -> list[int]:
        self._require_lifecycle(writer, RUNNING, STOPPED)
        numbers = []
        for arm, reward, by_name in checked:
            trial = writer.study.last_trial + 1
            writer.append(events.OBSERVED, {"trial": trial, "arm": arm, "reward": reward, "costs": by_name})
            numbers.append(trial)
        return numbers

    def expire(self, *trials: Trial | int) -> None:
        """Give trials up, as if their leases had run out: their arms are asked again if need be.

        Args:
            trials: The trials, or their numbers; each must be under way.
        """
        numbers = [check_number(trial) for trial in trials]
        with self._changing() as (writer, state):
            self._require_lifecycle(writer, RUNNING, STOPPED)
            for number in numbers:
                if number not in state.pending:
                    raise InvalidInput(f"trial {number} is not under way: it was told, given up or never asked for")
            self._expire(writer, state, numbers, HAND)

    # -- what is known ----------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Whether the explorer has finished: with an answer, or with a proof that there is none.

        Trials whose lease has run out are given up first: that may be what it waits for.
        """
        self._give_up_overdue()
        with self.reading() as state:
            return state.session.stopped

    @property
    def session(self) -> Session:
        """A copy of the explorer; changing it does not change the study."""
        with self.reading() as state:
            return Session.from_state_dict(state.session.state_dict())

    @contextmanager
    def reading(self) -> Iterator[StudyState]:
        """Look at the state as of the last event, while no other thread of this process changes it."""
        with self._guard:
            yield self._read()

    def recommend(self) -> Recommendation:
        """Return the current mix, what is proved of it and under which assumptions; works before the explorer stops."""
        with self.reading() as state:
            return recommend_from(state.session, state.assumptions())

    def certificate(self) -> Certificate:
        """Return what was proved, with every number needed to check it; see docs/guarantee.md."""
        with self.reading() as state:
            return make_certificate(
                state.session,
                {
                    "name": self.name,
                    "events": state.seq,
                    "digest": state.digest,
                    **vars(state.tallies),
                    "assumptions": state.assumptions(),
                },
            )

    def status(self) -> StudyStatus:
        """Return the status of the study."""
        self._storage.read_study(self._id)  # raises if it was deleted
        with self.reading() as state:
            return self._describe(state)

    def moment(self) -> Moment:
        """Return a copy of the study as of its last event."""
        with self.reading() as state:
            return Moment(
                seq=state.seq,
                status=self._describe(state),
                assumptions=tuple(state.assumptions()),
                history={name: list(values) for name, values in state.history.columns.items()},
                session=Session.from_state_dict(state.session.state_dict()),
            )

    @property
    def last_seq(self) -> int:
        """The number of the last event."""
        return self._storage.read_study(self._id).last_seq

    def _describe(self, state: StudyState) -> StudyStatus:
        return describe(state, self.name, self._row.created_at, write_time(self._clock()))

    def trials(self) -> Iterator[dict[str, Any]]:
        """Yield every trial: id, arm, state, reward, costs, asked_at, told_at."""
        for row in self._storage.trials(self._id):
            yield {**row._asdict(), "arm": self.problem.arms[row.arm], "costs": dict(row.costs)}

    def events(self) -> Iterator[Event]:
        """Yield the log."""
        return (event.read() for event in self.stored_events())

    def export(self, path: str | Path) -> None:
        """Write the trials or the whole study to a file; see `export_study`.

        Args:
            path: The file to write: `.csv` or `.parquet` for the trials, `.json` for the whole study.
        """
        from polyarm.studies.transfer import export_study  # noqa: PLC0415  (it builds on this module)

        export_study(self, path)

    # -- its life ---------------------------------------------------------------------------------------------------

    def stop(self, reason: str = "", key: str | None = None) -> None:
        """Hand out no more trials until `resume`; outcomes are still taken.

        Args:
            reason: Why, for the log; by default nothing.
            key: Any text of yours: a repeated key changes nothing.
        """

        def act(writer: Writer, state: StudyState) -> None:
            self._require_lifecycle(writer, RUNNING, STOPPED)
            if writer.study.lifecycle != STOPPED:
                state.apply(writer.append(events.STOPPED, {"reason": reason}))

        self._change_once(key, ["stop", reason], act)

    def resume(self, key: str | None = None) -> None:
        """Continue after `stop` or `archive`; if the study is running, acknowledge the breaker's alarm.

        A constraint whose alarm was acknowledged does not trip the breaker again. A study that was stopped or archived
        while tripped stays tripped: resume it once more to acknowledge.

        Args:
            key: Any text of yours: a repeated key changes nothing.
        """

        def act(writer: Writer, state: StudyState) -> None:
            if writer.study.lifecycle != RUNNING:
                state.apply(writer.append(events.RESUMED, {"acknowledged": []}))
            elif state.tripped is not None:
                state.apply(writer.append(events.RESUMED, {"acknowledged": sorted(state.tripped)}))

        self._change_once(key, ["resume"], act)

    def archive(self, key: str | None = None) -> None:
        """Close the study: it hands out no trials and takes no outcomes until `resume`.

        Args:
            key: Any text of yours: a repeated key changes nothing.
        """

        def act(writer: Writer, state: StudyState) -> None:
            if writer.study.lifecycle != ARCHIVED:
                state.apply(writer.append(events.ARCHIVED, {}))

        self._change_once(key, ["archive"], act)

    def _change_once(self, key: str | None, request: list[Any], act: Callable[[Writer, StudyState], None]) -> None:
        def answer() -> str:
            act(writer, state)
            return "done"

        with self._changing() as (writer, state):
            _once(writer, key, request, answer)

    def _require_lifecycle(self, writer: Writer, *allowed: str) -> None:
        if writer.study.lifecycle not in allowed:
            raise StudyHalted(f"study {self.name!r} is {writer.study.lifecycle}; resume() lets it go on")

    # -- inner works ------------------------------------------------------------------------------------------------

    def _give_up_overdue(self) -> None:
        """Give up the trials whose lease has run out, even if the call that noticed then fails."""
        if self.statement.lease is None:
            return
        with self._guard:
            state = self._read()
            if state.lifecycle == RUNNING and state.overdue(write_time(self._clock())):
                with self._changing() as (writer, current):
                    if writer.study.lifecycle == RUNNING:  # nobody has halted it meanwhile
                        self._expire(writer, current, current.overdue(writer.at), LEASE)

    def _expire(self, writer: Writer, state: StudyState, trials: Sequence[int], by: str) -> None:
        writer.load_trials(trials)
        for trial in trials:
            state.apply(writer.append(events.EXPIRED, {"trial": trial, "by": by}))

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        """Change the study without its state."""
        with self._guard, self._storage.write(self._id, write_time(self._clock())) as writer:
            yield writer

    @contextmanager
    def _adding(self) -> Iterator[Writer]:
        """Add outcomes; after many of them read the log, which leaves a snapshot for those who open the study."""
        with self._guard:
            with self._writing() as writer:
                yield writer
            self._unread += writer.n_added
            if self._unread >= SNAPSHOT_EVERY:
                try:
                    self._read()
                except Exception as error:  # noqa: BLE001  (an explorer that is not loaded, say: what was added is in)
                    _log.warning("study %r: no snapshot was taken: %s", self.name, error)

    @contextmanager
    def _changing(self) -> Iterator[tuple[Writer, StudyState]]:
        """Change the study, given its state as of the last event."""
        with self._guard:
            state = self._read()  # reads most of the log before it makes others wait
            self._state = None  # it is ahead of the storage until the transaction ends
            with self._writing() as writer:
                for event in writer.events_after(state.seq):
                    state.apply(event.read())
                try:
                    yield writer, state
                except PolyarmError:
                    if not writer.n_added:
                        self._state = state  # refused, and unchanged
                    raise
            self._state = state

    def _read(self) -> StudyState:
        """Return the state as of the last event, and keep a snapshot now and then."""
        with self._guard:
            self._unread = 0
            state, self._state = self._state or self._open(), None
            for event in self._storage.events(self._id, state.seq):
                state.apply(event.read())
                self._keep_now_and_then(state)
            self._keep_now_and_then(state)  # of events that this object has added itself
            self._state = state
            return state

    # -- for verification -------------------------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[Writer]:
        """Keep everybody else from changing the study."""
        with self._writing() as writer:
            yield writer

    def stored_events(self) -> Iterator[StoredEvent]:
        """Yield the log as it is stored."""
        return self._storage.events(self._id)

    def stored_snapshots(self) -> Iterator[tuple[int, str]]:
        """Yield the snapshots as they are stored, by event."""
        return self._storage.snapshots(self._id)

    def _keep_now_and_then(self, state: StudyState) -> None:
        if state.seq - self._snapshot_seq < max(SNAPSHOT_EVERY, _SNAPSHOT_SHARE * state.n_waiting):
            return
        self._snapshot_seq = state.seq
        try:
            self._storage.add_snapshot(self._id, state.seq, state.write())
        except StorageError as error:  # a full disk, a role that may only read: the log is all that is needed
            _log.warning("study %r: the snapshot at event %d was not kept: %s", self.name, state.seq, error)

    def _open(self) -> StudyState:
        """Return the state of the newest snapshot that can be read, or that of a new study."""
        plan, seed, breaker = self.statement.plan(), self.statement.seed, self.statement.breaker
        for seq, text in self._storage.snapshots(self._id):
            try:
                state = StudyState.unpack(json.loads(text), plan, seed, breaker)
            except Exception as error:  # noqa: BLE001  (whatever is wrong with it, the log is all that is needed)
                _log.warning("study %r: the snapshot at event %d cannot be used: %s", self.name, seq, error)
                continue
            self._snapshot_seq = seq
            return state
        self._snapshot_seq = 0
        return StudyState(plan, seed, breaker)


def _digest_file(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
