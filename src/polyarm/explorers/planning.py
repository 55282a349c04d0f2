"""What both forms of `certex` share when they plan."""

from polyarm._arena import Arena
from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.statistics.branch import search_witness
from polyarm.statistics.joint import Evidence
from polyarm.statistics.witnesses import Pool, add_witness, least_witness

#: Sharpness of the soft minimum that plans climb.
SHARPNESS = 25.0
#: Pulls grow by this share between plans made afresh.
CHALLENGER_GROWTH = 0.1
#: No arm's planned share falls (much) below this.
LEAST_ALLOCATION = 1e-4
#: A plan's own best response is searched to this accuracy.
_RESPONSE_ACCURACY = 0.1

# Entries of the clock of a state.
NEXT_CHALLENGER = 0
EXPECTED_STOP = 1


@kernel
def add_response(
    evidence: Evidence,
    centre: FloatArray,
    r: float,
    penalty: float,
    max_cells: int,
    pool: Pool,
    arena: Arena,
    witness_work: FloatArray,
) -> None:
    """Look for the witness that hurts a plan, which leads to this evidence, most; add it to the pool."""
    value, nearest = least_witness(evidence, centre, r, pool)
    if value > 1e-12 and nearest >= 0:
        for a in range(witness_work.size):
            witness_work[a] = pool.mixes[nearest, a]
        search_witness(evidence, centre, r, value, _RESPONSE_ACCURACY, 0.0, penalty, max_cells, arena, witness_work)
        add_witness(pool, witness_work)
