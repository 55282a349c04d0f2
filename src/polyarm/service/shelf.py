"""The studies that a server has open: one object each, shared by all requests."""

import threading
from collections import OrderedDict
from typing import Any

from polyarm.errors import UnknownStudy
from polyarm.service.view import view_study
from polyarm.studies.projection import StudyRow
from polyarm.studies.storage import Storage
from polyarm.studies.study import Study

#: Studies kept open; another one takes the place of the one that was not used for longest.
_MOST_OPEN = 64


class Shelf:
    """Opens studies, and keeps what their pages show until something happens in them."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._guard = threading.Lock()
        self._open: OrderedDict[int, Study] = OrderedDict()
        self._views: dict[int, tuple[int, dict[str, Any]]] = {}
        self._locks: dict[int, threading.Lock] = {}

    def find(self, study: str) -> Study:
        """Return a study by its number, or by its name if that is not a number."""
        return self.open(self.find_row(study))

    def find_row(self, study: str) -> StudyRow:
        """Return what is stored of a study given by its number or name."""
        if not study.isprintable():  # no name is like that, and PostgreSQL does not even look up some
            raise UnknownStudy(f"no study {study!r}: names are printable")
        number = study.isascii() and study.isdigit() and len(study) < 10
        return self.storage.read_study(int(study)) if number else self.storage.find_study(study)

    def open(self, row: StudyRow) -> Study:
        """Return the one object of a study."""
        with self._guard:
            if row.id not in self._open:
                self._open[row.id] = Study(self.storage, row)
            self._open.move_to_end(row.id)
            while len(self._open) > _MOST_OPEN:
                closed, _ = self._open.popitem(last=False)
                self._views.pop(closed, None)
                self._locks.pop(closed, None)
            return self._open[row.id]

    def view(self, study: str) -> dict[str, Any]:
        """Return what a study's page shows; computed once for all who look, until the next event.

        The study goes on meanwhile: it is held up only while a copy of its explorer is made.
        """
        found = self.find(study)
        with self._viewing(found.id):
            seq, view = self._views.get(found.id, (-1, {}))
            if seq != found.last_seq:
                moment = found.moment()
                view = view_study(found.id, moment)
                self._views[found.id] = (moment.seq, view)
        return {**view, "status": vars(found.status())}  # leases run out without an event

    def _viewing(self, number: int) -> threading.Lock:
        """Who wants the same view waits for it, rather than to work it out as well."""
        with self._guard:
            return self._locks.setdefault(number, threading.Lock())
