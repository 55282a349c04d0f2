"""polyarm: the best mix of options under budgets that you can only measure.

Names are imported on first use, so that `polyarm --help` does not load the compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyarm import templates
    from polyarm.engine.certificate import Certificate, Verification, make_certificate, verify_certificate
    from polyarm.engine.replay import ReplayResult, replay
    from polyarm.engine.session import Session, make_explorer
    from polyarm.environments.instances import Instance, instance_names, load_instance
    from polyarm.environments.replay import ReplayLog, read_log
    from polyarm.errors import (
        CertificateError,
        Conflict,
        ExplorationOver,
        InvalidInput,
        NoFeasibleMix,
        NotYet,
        PolyarmError,
        ServiceError,
        StorageError,
        StudyHalted,
        UnknownStudy,
    )
    from polyarm.experiments.bounds import lower_bounds
    from polyarm.experiments.plan import plan
    from polyarm.experiments.results import Simulation
    from polyarm.experiments.simulate import simulate
    from polyarm.problem import Constraint, Problem
    from polyarm.problem_file import load_problem
    from polyarm.rules.explorer import Explorer
    from polyarm.rules.python_explorer import python_explorer
    from polyarm.rules.registry import get_explorer, load_explorer, load_explorer_source
    from polyarm.service.client import Client, RemoteStudy
    from polyarm.studies.breaker import Breaker
    from polyarm.studies.manage import create_study, delete_study, list_studies, load_study
    from polyarm.studies.status import StudyStatus
    from polyarm.studies.study import Study
    from polyarm.studies.transfer import export_study, import_study
    from polyarm.studies.trial import Trial
    from polyarm.studies.verify import verify_study

__version__ = "0.1.0"

_HOMES = {
    "Breaker": "polyarm.studies.breaker",
    "Certificate": "polyarm.engine.certificate",
    "CertificateError": "polyarm.errors",
    "Client": "polyarm.service.client",
    "Conflict": "polyarm.errors",
    "Constraint": "polyarm.problem",
    "ExplorationOver": "polyarm.errors",
    "Explorer": "polyarm.rules.explorer",
    "Instance": "polyarm.environments.instances",
    "InvalidInput": "polyarm.errors",
    "NotYet": "polyarm.errors",
    "PolyarmError": "polyarm.errors",
    "Problem": "polyarm.problem",
    "Recommendation": "polyarm.report.answer",
    "RemoteStudy": "polyarm.service.client",
    "ReplayLog": "polyarm.environments.replay",
    "ReplayResult": "polyarm.engine.replay",
    "ServiceError": "polyarm.errors",
    "Session": "polyarm.engine.session",
    "Simulation": "polyarm.experiments.results",
    "StorageError": "polyarm.errors",
    "Study": "polyarm.studies.study",
    "StudyHalted": "polyarm.errors",
    "StudyStatus": "polyarm.studies.status",
    "Trial": "polyarm.studies.trial",
    "UnknownStudy": "polyarm.errors",
    "create_study": "polyarm.studies.manage",
    "delete_study": "polyarm.studies.manage",
    "export_study": "polyarm.studies.transfer",
    "get_explorer": "polyarm.rules.registry",
    "import_study": "polyarm.studies.transfer",
    "instance_names": "polyarm.environments.instances",
    "list_studies": "polyarm.studies.manage",
    "load_study": "polyarm.studies.manage",
    "load_explorer": "polyarm.rules.registry",
    "load_explorer_source": "polyarm.rules.registry",
    "load_instance": "polyarm.environments.instances",
    "lower_bounds": "polyarm.experiments.bounds",
    "load_problem": "polyarm.problem_file",
    "make_explorer": "polyarm.engine.session",
    "make_certificate": "polyarm.engine.certificate",
    "plan": "polyarm.experiments.plan",
    "python_explorer": "polyarm.rules.python_explorer",
    "read_log": "polyarm.environments.replay",
    "replay": "polyarm.engine.replay",
    "simulate": "polyarm.experiments.simulate",
    "Verification": "polyarm.engine.certificate",
    "verify_certificate": "polyarm.engine.certificate",
    "verify_study": "polyarm.studies.verify",
    "NoFeasibleMix": "polyarm.errors",
}

__all__ = [
    "Breaker",
    "Certificate",
    "CertificateError",
    "Client",
    "Conflict",
    "Constraint",
    "ExplorationOver",
    "Explorer",
    "Instance",
    "InvalidInput",
    "NoFeasibleMix",
    "NotYet",
    "PolyarmError",
    "Problem",
    "Recommendation",
    "RemoteStudy",
    "ReplayLog",
    "ReplayResult",
    "ServiceError",
    "Session",
    "Simulation",
    "StorageError",
    "Study",
    "StudyHalted",
    "StudyStatus",
    "Trial",
    "UnknownStudy",
    "Verification",
    "__version__",
    "create_study",
    "delete_study",
    "export_study",
    "get_explorer",
    "import_study",
    "instance_names",
    "list_studies",
    "load_explorer",
    "load_explorer_source",
    "load_instance",
    "load_problem",
    "load_study",
    "lower_bounds",
    "make_certificate",
    "make_explorer",
    "plan",
    "python_explorer",
    "read_log",
    "replay",
    "simulate",
    "templates",
    "verify_certificate",
    "verify_study",
]


def __getattr__(name: str) -> Any:
    if name == "templates":
        return import_module("polyarm.templates")
    if name not in _HOMES:
        raise AttributeError(f"module 'polyarm' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
