"""Every tolerance of the library, in one place.

Kernels see rows divided by their noise scale and policies on the simplex, so absolute values make sense.
"""

#: A basic variable this far below zero still counts as feasible, and this close to zero as zero.
PRIMAL = 1e-10
#: Basic variables that differ by no more than this reach zero together.
TIE = 1e-12
#: Reduced costs are positive above this multiple of the largest objective coefficient.
DUAL = 1e-11
#: Smaller pivots are not taken, and smaller tableau entries count as zero.
PIVOT = 1e-10
#: A matrix whose elimination meets a smaller pivot is singular.
SINGULAR = 1e-11
#: Phase one ends infeasible when its artificial variable stays above this.
INFEASIBLE = 1e-9
#: Stationarity of a projection: the largest violated or slack-but-priced row, relative to the row's largest entry.
PROJECTION = 1e-12
#: Policies whose shares differ by no more than this are one policy.
SAME_POLICY = 1e-9

#: A mix satisfies a known row (in units of the row's largest entry) within this.
KNOWN_ROW = 1e-9

#: How far the shares of a mix may be from summing to one.
SIMPLEX = 1e-9
#: A bound must exceed a threshold by this share of it before anything is called certified: round-off proves nothing.
CERTIFIED_MARGIN = 1e-9

#: A recommended mix is truly feasible, or truly r-optimal, within this.
TRUTH = 1e-9
#: A step during exploration violates a constraint when it exceeds its bound by more than this.
VIOLATION = 1e-6

#: Allocations are floored by this where they divide.
ALLOCATION_FLOOR = 1e-9
#: The slack that prices a violated constraint is at least this.
MIN_GAMMA = 1e-3
