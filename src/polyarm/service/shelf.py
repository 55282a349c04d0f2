"""The studies that a server has open: one object each, which all requests share."""

import threading
from collections import OrderedDict
from dataclasses import asdict
from typing import Any

from polyarm.errors import UnknownStudy
from polyarm.service.view import view_study
from polyarm.studies.projection import StudyRow
from polyarm.studies.storage import Storage
from polyarm.studies.study import Study

#: Studies kept open; one more closes the one unused for longest.
_MOST_OPEN = 64


class Shelf:
    """Keeps studies open, and the views of their pages until the next event."""

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
        if not study.isprintable():  # no study has such a name, and PostgreSQL refuses some
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
        """Return what a study's page shows; computed once per event, for all who look.

        The study is locked only while its explorer is copied.
        """
        found = self.find(study)
        with self._viewing(found.id):
            seq, view = self._views.get(found.id, (-1, {}))
            if seq != found.last_seq:
                moment = found.moment()
                view = view_study(found.id, moment)
                self._views[found.id] = (moment.seq, view)
        return {**view, "status": asdict(found.status())}  # leases run out without an event

    def _viewing(self, number: int) -> threading.Lock:
        """The lock of a study's view: others wait for it instead of computing it too."""
        with self._guard:
            return self._locks.setdefault(number, threading.Lock())
