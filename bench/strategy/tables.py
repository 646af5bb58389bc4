"""Tables of all rows, and which published claims hold on these costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import mean, median

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.output import BLUE, GREEN, RED, STYLE, save
from bench.store import Row
from bench.strategy.cases import CLUSTERS, EXACT, GROUPS, SWEPT, batch_of, devices
from bench.strategy.runs import BASELINES, METHODS, OURS, PEERS, SPLIT_ON, digest, time_of

_HEADS = {"policy-gradient": "policy", "round-robin": "r.-robin"}
_WIDE = 10
_LOOKS = ((BLUE, "o"), (RED, "s"), (GREEN, "^"))
_TICKS = (0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 30, 50)

#: Times of a case by method, in nanoseconds.
Times = dict[str, Fraction]


def report(
    rows: Sequence[Row],
    models: Sequence[str],
    clusters: Sequence[str],
    gbits: Sequence[float],
    seconds: float,
) -> str:
    """Return all tables."""
    parts = [_NOTES.format(seconds=seconds, groups=GROUPS)]
    parts += ["\n".join(of_cluster(rows, models, cluster, seconds)) for cluster in clusters]
    parts.append("\n".join(summary(rows, models, clusters, seconds)))
    parts.append("\n".join(of_loss(rows, models, seconds)))
    parts.append("\n".join(of_exact(rows, models)))
    parts.append("\n".join(of_bandwidth(rows, models, gbits, seconds)))
    parts.append("\n".join(claims(rows, models, clusters, seconds)))
    return "\n\n".join(part for part in parts if part) + "\n"


def times(rows: Sequence[Row], model: str, cluster: str, seconds: float) -> Times:
    """Return the feasible times of a case."""
    return {
        row.run["method"]: time
        for row in rows
        if row.run["part"] == "case"
        and (row.run["model"], row.run["cluster"]) == (model, cluster)
        and row.run["seconds"] in (0.0, seconds)
        and (time := time_of(row)) is not None
    }


def bounds(
    rows: Sequence[Row], model: str, cluster: str, seconds: float
) -> tuple[Fraction | None, Fraction | None]:
    """Return the bounds of a case: for any shares, and for [G]'s and the found actions."""
    here = [row for row in rows if (row.run["model"], row.run["cluster"]) == (model, cluster)]
    ours = [
        row.result["decisions"]
        for row in here
        if row.run["part"] == "case"
        and (row.run["method"], row.run["seconds"]) == (OURS, seconds)
        and time_of(row) is not None
    ]
    for row in here:
        asked = {"seconds": seconds, "with": digest(ours)}
        if row.run["part"] == "bound" and asked.items() <= row.run.items():
            return time_of(row, "shares"), time_of(row, "actions")
    return None, None


def of_cluster(
    rows: Sequence[Row], models: Sequence[str], cluster: str, seconds: float
) -> Iterator[str]:
    """Yield the table of a cluster."""
    yield f"{cluster}: {CLUSTERS[cluster]}; milliseconds per iteration"
    heads = [_HEADS.get(name, name) for name in METHODS]
    yield f"{'model':14}{'batch':>6}" + "".join(
        f"{head:>{_WIDE}}" for head in (*heads, "any", "actions", "gap", "speed-up")
    )
    for model in models:
        found = times(rows, model, cluster, seconds)
        shares, actions = bounds(rows, model, cluster, seconds)
        cells = [milliseconds(found.get(name)) or "–" for name in METHODS]
        cells += [milliseconds(shares, down=True) or "–", milliseconds(actions, down=True) or "–"]
        cells += [_percent(gap(found, shares, actions)), _times(speedup(found))]
        batch = batch_of(model, len(devices(cluster)))
        yield f"{model:14}{batch:>6}" + "".join(f"{cell:>{_WIDE}}" for cell in cells)


def gap(found: Times, *bounds: Fraction | None) -> float | None:
    """Return how far search is from the largest bound, as a part of its time."""
    known = [bound for bound in bounds if bound is not None]
    if not known or OURS not in found:
        return None
    return float(1 - max(known) / found[OURS])


def speedup(found: Times, over: Sequence[str] = BASELINES) -> float | None:
    """Return the speed-up of search over the best of some methods."""
    known = [found[name] for name in over if name in found]
    return float(min(known) / found[OURS]) if known and OURS in found else None


def summary(
    rows: Sequence[Row], models: Sequence[str], clusters: Sequence[str], seconds: float
) -> Iterator[str]:
    """Yield means over all cases."""
    found = {(m, c): times(rows, m, c, seconds) for c in clusters for m in models}
    yield f"{'method':18}{'feasible':>9}{'best':>6}{'search is faster, median':>26}{'at most':>9}"
    for name in METHODS:
        feasible = [each for each in found.values() if name in each]
        ratios = [float(each[name] / each[OURS]) for each in feasible if OURS in each]
        best = sum(each[name] == min(each.values()) for each in feasible)
        shown = f"{median(ratios):>25.2f}×{max(ratios):>8.2f}×" if ratios else ""
        yield f"{name:18}{len(feasible):>6} of {len(found)}{best:>6}{shown}"
    gaps = [
        value
        for (model, cluster), each in found.items()
        if (value := gap(each, *bounds(rows, model, cluster, seconds))) is not None
    ]
    if gaps:
        yield f"gap of search to the bound: mean {mean(gaps):.1%}, largest {max(gaps):.1%}"
    slower = [
        f"{model} on {cluster} ({name})"
        for (model, cluster), each in found.items()
        for name in (*BASELINES, *PEERS)
        if OURS in each and name in each and each[name] < each[OURS]
    ]
    yield f"search is slower than a baseline or peer: {', '.join(slower) or 'never'}"


def of_loss(rows: Sequence[Row], models: Sequence[str], seconds: float) -> Iterator[str]:
    """Yield where strategies lose time against the bound: order, places of servers, the rest."""
    lines = []
    for model in models:
        found = times(rows, model, SPLIT_ON, seconds)
        known = [bound for bound in bounds(rows, model, SPLIT_ON, seconds) if bound is not None]
        for row in rows:
            run = row.run
            here = run["part"] == "loss" and (run["model"], run["seconds"]) == (model, seconds)
            if not here or run["method"] not in found or not known:
                continue
            time, bound = found[run["method"]], max(known)
            order, servers = time_of(row, "order"), time_of(row, "servers")
            assert order is not None
            assert servers is not None
            parts = order, servers, time - order - servers - bound
            shares = "".join(f"{float(part / time):>9.1%}" for part in parts)
            lines.append(
                f"{model:14}{run['method']:10}{milliseconds(time):>10}{shares}  {row.result['by']}"
            )
    if lines:
        yield (
            f"What is lost on {SPLIT_ON} against the bound, as parts of the time by rank: by rank "
            "instead of a better order of the"
        )
        yield (
            "same strategy, by the places of parameter servers, and the rest: other decisions, and "
            "the gap of the bound"
        )
        yield (
            f"{'model':14}{'strategy':10}{'by rank':>10}{'order':>9}{'servers':>9}{'rest':>9}"
            "  order by"
        )
        yield from lines


def of_exact(rows: Sequence[Row], models: Sequence[str]) -> Iterator[str]:
    """Yield proven optima of few groups or devices."""
    for cluster, groups, limit in EXACT:
        asked = {"part": "exact", "cluster": cluster, "groups": groups, "seconds": limit}
        chosen = [
            row for row in rows if asked.items() <= row.run.items() and row.run["model"] in models
        ]
        if not chosen:
            continue
        yield (
            f"{groups} groups on {cluster}, [G]'s actions, any order, {limit:g} s at most: "
            "best and bound, milliseconds"
        )
        for row in chosen:
            best, bound = time_of(row), time_of(row, "bound")
            shown = (milliseconds(best) or "–", milliseconds(bound, down=True) or "–")
            yield (
                f"{row.run['model']:14}{shown[0]:>10}{shown[1]:>10}  "
                f"{row.result['status']} after {row.result['seconds']:.1f} s"
            )


def of_bandwidth(
    rows: Sequence[Row], models: Sequence[str], gbits: Sequence[float], seconds: float
) -> Iterator[str]:
    """Yield the speed-up against the bandwidth."""
    shown = [model for model in SWEPT if model in models and speedups(rows, model, gbits, seconds)]
    if not shown:
        return
    yield "Best baseline / search on heterog-8 against Gbit/s between servers (bandwidth.png)"
    yield f"{'':14}" + "".join(f"{gbit:>8g}" for gbit in gbits)
    for model in shown:
        found = dict(speedups(rows, model, gbits, seconds))
        yield f"{model:14}" + "".join(f"{_times(found.get(gbit)):>8}" for gbit in gbits)


# --- claims --------------------------------------------------------------------------------------


def claims(
    rows: Sequence[Row], models: Sequence[str], clusters: Sequence[str], seconds: float
) -> Iterator[str]:
    """Yield what [G] claims, what came out here, and whether it holds."""
    yield "Claims of [G] on these costs. No time of its experiments is in a source at hand."
    for claim, verdict, text in (
        _fastest(rows, models, clusters, seconds),
        _proportional(rows, models, seconds),
        _compute_bound(rows, models),
        _straggler(rows, models),
    ):
        yield f"- {claim}: {verdict}. {text}"


def _fastest(
    rows: Sequence[Row], models: Sequence[str], clusters: Sequence[str], seconds: float
) -> tuple[str, str, str]:
    claim = "up to 222% speed-up over data parallelism"
    found = [times(rows, m, c, seconds) for c in clusters for m in models]
    best = [value for each in found if (value := speedup(each)) is not None]
    worst = [
        value
        for each in found
        for name in BASELINES
        if (value := speedup(each, (name,))) is not None
    ]
    if not best:
        return claim, "not measured", ""
    holds = "holds" if max(best) >= 3.22 else "partly holds"
    return (
        claim,
        holds if max(worst) >= 3.22 else "does not hold",
        f"Over the best of the four baselines up to {max(best) - 1:.0%}, in the median "
        f"{median(best) - 1:.0%}; over any of them up to {max(worst) - 1:.0%}",
    )


def _proportional(
    rows: Sequence[Row], models: Sequence[str], seconds: float
) -> tuple[str, str, str]:
    claim = "proportional replicas are 9–27% faster than even ones on 2 V100 and 2 GTX 1080 Ti"
    gains = {}
    for model in models:
        each = times(rows, model, "heterog-4", seconds)
        even = [each[name] for name in ("ev-ps", "ev-ar") if name in each]
        proportional = [each[name] for name in ("cp-ps", "cp-ar") if name in each]
        if even and proportional:
            gains[model] = float(min(even) / min(proportional) - 1)
    if not gains:
        return claim, "not measured", ""
    within = [model for model, value in gains.items() if 0.09 <= value <= 0.27]
    verdict = _verdict(len(within), len(gains))
    shown = ", ".join(f"{model} {value:+.0%}" for model, value in gains.items())
    return claim, verdict, f"In this range: {len(within)} of {len(gains)} ({shown})"


def _compute_bound(rows: Sequence[Row], models: Sequence[str]) -> tuple[str, str, str]:
    claim = "where computing bounds, 2:2:1:1 gains 0.75ρ − 1 for a speed ratio ρ ≤ 2"
    shown, close = [], 0
    for row in rows:
        if row.run["part"] != "gain" or row.run["model"] not in models:
            continue
        even, double = time_of(row, "even"), time_of(row, "double")
        if even is None or double is None:
            continue
        ratio = float(Fraction(row.result["ratio"]))
        expected, found = 0.75 * min(ratio, 2.0) - 1, float(even / double) - 1
        close += abs(expected - found) <= 0.02
        shown.append(f"{row.run['model']} ρ = {ratio:.2f}: {expected:+.0%}, found {found:+.0%}")
    if not shown:
        return claim, "not measured", ""
    text = f"Within two points: {close} of {len(shown)}, with free links ({'; '.join(shown)})"
    return claim, _verdict(close, len(shown)), text


def _straggler(rows: Sequence[Row], models: Sequence[str]) -> tuple[str, str, str]:
    claim = "parameter servers beat AllReduce with a straggler"
    found: dict[bool, dict[str, Times]] = {False: {}, True: {}}
    for row in rows:
        time = time_of(row)
        if row.run["part"] == "straggler" and row.run["model"] in models and time is not None:
            each = found[row.run["straggler"]].setdefault(row.run["model"], {})
            each[row.run["method"]] = time
    counts, ratios = {}, {}
    for slow, by_model in found.items():
        both = [each for each in by_model.values() if {"ev-ps", "ev-ar"} <= set(each)]
        counts[slow] = sum(each["ev-ps"] < each["ev-ar"] for each in both), len(both)
        ratios[slow] = [float(each["ev-ar"] / each["ev-ps"]) - 1 for each in both]
    if not counts[True][1]:
        return claim, "not measured", ""
    text = "; ".join(
        f"{name}: faster in {counts[slow][0]} of {counts[slow][1]} models, "
        f"median {median(ratios[slow]):+.1%}"
        for name, slow in (("three V100 and a GTX 1080 Ti", True), ("four V100", False))
        if counts[slow][1]
    )
    return claim, _verdict(*counts[True]), f"Even replicas in one server. {text}"


def _verdict(found: int, of: int) -> str:
    if found == of:
        return "holds"
    return "partly holds" if found else "does not hold"


# --- speed-up against the bandwidth between servers ---------------------------------------------


def speedups(
    rows: Sequence[Row], model: str, gbits: Sequence[float], seconds: float
) -> list[tuple[float, float]]:
    """Return bandwidths with the speed-up over the best baseline, as far as both are feasible."""
    found = []
    for gbit in gbits:
        here = {
            row.run["method"]: time
            for row in rows
            if row.run["part"] == "bandwidth"
            and (row.run["model"], row.run["gbit"]) == (model, gbit)
            and row.run["seconds"] in (0.0, seconds)
            and (time := time_of(row)) is not None
        }
        known = [here[name] for name in BASELINES if name in here]
        if known and OURS in here:
            found.append((gbit, float(min(known) / here[OURS])))
    return found


def draw(
    rows: Sequence[Row], models: Sequence[str], gbits: Sequence[float], seconds: float, path: Path
) -> None:
    """Draw one line per model."""
    with mpl.rc_context(fname=STYLE):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        for model, (colour, marker) in zip(models, _LOOKS, strict=False):
            points = speedups(rows, model, gbits, seconds)
            x, y = [gbit for gbit, _ in points], [gain for _, gain in points]
            axes.plot(x, y, marker + "-", color=colour, markersize=4, label=model)
        axes.axhline(1, color="#222222", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xticks(gbits, [f"{gbit:g}" for gbit in gbits])
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        ticks = [tick for tick in _TICKS if low <= tick <= high]
        axes.set_yticks(ticks, [f"{tick:g}×" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("Gbit/s between servers")
        axes.set_ylabel("best baseline / search")
        axes.set_title(f"Eight GPUs in four servers; search {seconds:g} s")
        axes.legend()
        save(figure, path)


# --- cells ---------------------------------------------------------------------------------------


def milliseconds(time: Fraction | None, *, down: bool = False) -> str:
    """Write nanoseconds as milliseconds; makespans rounded up, bounds down."""
    if time is None:
        return ""
    cents = time / 10_000
    whole = cents.numerator // cents.denominator
    if not down and whole < cents:
        whole += 1
    return f"{whole // 100}.{whole % 100:02d}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}×"


_NOTES = """\
TRAINING STRATEGIES
Each model is cut into {groups} groups along its forward pass, which get one decision each; times are those of the
compiled strategy in [G]'s order, accepted by the verifier. Devices and rooflines are by datasheet, so no time
claims to be measured. Samples: in proportion to the number of devices. –: out of memory, or fewer samples than
replicas. ev, cp: even or proportional replicas, ps, ar: parameter server or AllReduce ([G]); policy (rewards of
[G], one softmax a group), flexflow, alpa, pipedream: other systems on the same costs; search: ours. {seconds:g} s for
policy, flexflow, alpa and search. Lower bounds: any: for all shares of the batch on all devices, whatever the
groups; actions: for all strategies of [G]'s M + 4 actions and the actions that search chose, in any order. gap:
of search to the larger one. speed-up: best of the four baselines / search."""  # noqa: E501
