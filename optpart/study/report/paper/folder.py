"""The folder of ``optpart report STORE -o FOLDER``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from optpart.base.files import ANY, write_bytes
from optpart.base.folders import check_folder, new_folder
from optpart.problem.instance import Instance
from optpart.study.paper import Comparison
from optpart.study.report.paper.figures import figures
from optpart.study.report.paper.tables import (
    pairs_csv,
    pairs_latex,
    runs_csv,
    summary_csv,
    summary_latex,
)
from optpart.study.report.picture import PAPER_FORMS, render
from optpart.study.stored import read_runs

#: What the manifest of a folder says.
HOLDS = "tables and figures"

_DEFINITIONS = """\
ratio: makespan / the least makespan that any run of the store has on the instance.
A run is solved if it has a schedule. Those of instances that were given, or are of the library,
  were verified when this was written (verified in runs.csv); other makespans are claimed.
An instance counts once per group and method: by its mean ratio over the seeds.
mean ratio: over all instances of the group. It is only given if every run is solved; otherwise
  the table says how many are not. mean_ratio_of_solved_only is over the rest, and comparable
  only between methods that solve the same instances.
median: unsolved instances count as infinite.
95% interval: of the mean ratio, percentiles of 10,000 bootstrap means (seed 0); of at least two
  instances.
claimed optimal: runs whose makespan equals a lower bound of some run of the store. Status and
  bounds are what the store claims; nothing was proven again. 'optpart certify' writes proofs.
p: Wilcoxon's signed-rank test on the instances that both methods were run on, two-sided; unsolved
  instances have the worst rank. p (Holm): adjusted for all pairs of methods.
profile: Dolan and Moré 2002. Unsolved instances never count as solved.
primal, dual: integrals of the gaps 1 - best / makespan and 1 - bound / best from 0 to the time
  limit, in seconds; without a schedule or a bound, the gap is 1.
time: wall-clock seconds of a run. 'optpart gap' compiles the inner loops of the built-in
  heuristics before the first run; registered methods, Dask workers and sweeps from Python may
  compile in theirs.
Ratios in LaTeX tables are rounded up, the lower ends of intervals down; only an exact 1 is 1.000.
CSV files have floating-point and exact numbers.
"""


def write_folder(
    store: str | Path, by: Sequence[str], output: str | Path, instances: Iterable[Instance] = ()
) -> list[str]:
    """Write tables and figures about the runs of a store into a folder.

    Everything is computed before the first file is written.

    Parameters
    ----------
    by : sequence of str
        Factors; see :meth:`~optpart.study.stored.StoredRun.factor`.
    output : str or Path
        A new folder, an empty one, or an earlier one of this function, which is replaced.
    instances : iterable of Instance
        Schedules of these, and of the instances of the library, are verified.

    Returns
    -------
    list of str
        Notes about what is left out, which are also in ``notes.txt``.

    Raises
    ------
    InputError
        If the store or a factor is not usable, or the folder cannot be written or holds anything
        else.
    """
    check_folder(output, HOLDS)
    comparison = Comparison(read_runs(store, instances), by)
    rows = comparison.rows()
    files = {
        "runs.csv": runs_csv(comparison),
        "summary.csv": summary_csv(comparison, rows),
        "summary.tex": summary_latex(comparison, rows),
    }
    if len(comparison.methods) > 1:
        files |= {"wilcoxon.csv": pairs_csv(comparison), "wilcoxon.tex": pairs_latex(comparison)}
    pictures = {
        f"{name}.{form}": render(draw, form)
        for name, draw in figures(comparison).items()
        for form in PAPER_FORMS
    }
    files["notes.txt"] = "".join(f"{line}\n" for line in comparison.notes) + _DEFINITIONS
    contents = {name: text.encode() for name, text in files.items()} | pictures
    with new_folder(output, HOLDS) as draft:
        for name, content in contents.items():
            write_bytes(draft / name, content, ANY)
    return comparison.notes
