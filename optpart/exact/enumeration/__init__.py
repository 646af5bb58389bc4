"""An independent branch and bound: the judge of last resort for every model of design §2.

Placements are enumerated unit by unit. Under a placement, everything that has a time is an *event*,
the start of a vertex or of a transfer plus a constant, and every rule has one of two forms:

* event ``a`` is no later than event ``b`` (precedence), or
* at no moment do the intervals on a resource ``[begin, latest of ends)`` add up to more than its
  limit: a device, a link or a port with its channels, or the memory of a device.

Rules of the first form alone have a componentwise least solution, the longest paths. If it breaks
a rule of the second form, some intervals that overlap pairwise are too much together. Intervals on
a line that overlap pairwise have a common moment, so in every valid schedule one of them has ended
when another begins; to try each such pair is to miss nothing, and each pair adds rules of the first
form. If the least solution breaks nothing, no schedule of this branch has a smaller makespan:
the branch is finished.

That is exact for memory models as well, where to start a vertex later may be what makes a schedule
valid: nothing is ever assumed to start as early as it could but for the rules added. All numbers
are Python integers over a common denominator, so nothing is rounded.
"""

from optpart.exact.enumeration.search import MAX_VERTICES, check_scope, enumerate_all

__all__ = ["MAX_VERTICES", "check_scope", "enumerate_all"]
