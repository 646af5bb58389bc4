"""An independent branch and bound, the final check of every other method, for all models.

Placements are enumerated unit by unit. Under a placement, every moment that matters is an *event*:
the start of a vertex or of a transfer, plus a constant. Every constraint of design §2 takes one of
two forms:

* event ``a`` is no later than event ``b`` (precedence), or
* at every moment, the intervals ``[begin, latest of ends)`` that use a resource add up to at most
  its limit; resources are devices, links, ports with their channels, and the memory of devices.

Constraints of the first form alone have a componentwise minimal solution, given by longest paths.
If it violates a constraint of the second form, some pairwise overlapping intervals exceed a limit
together. Pairwise overlapping intervals on a line have a common moment, so in every valid schedule
one of them ends before another begins. Branching on all such pairs is therefore complete, and each
branch adds constraints of the first form. If the minimal solution violates nothing, no schedule of
this branch has a smaller makespan, and the branch is finished.

This is also exact for memory models, under which only a later start may make a schedule valid:
nothing is assumed to start as early as possible beyond what the constraints imply. All numbers are
Python integers over a common denominator, so nothing is rounded.
"""

from optpart.exact.enumeration.search import MAX_VERTICES, check_scope, enumerate_all

__all__ = ["MAX_VERTICES", "check_scope", "enumerate_all"]
