"use strict";
// What a placement leads to, in whole ticks, as `optpart simulate` computes it with the scheduler `pct` under the
// communication model `delay`. A placement is an array: the device of each vertex, or null where it is not placed.
const rulesOf = (data) => {
  const { run, edges, crossing, order, capacity } = data;
  const n = run.length;
  const out = run.map(() => []);
  const into = run.map(() => []);
  for (const [u, v, tensor] of edges) {
    out[u].push([v, tensor]);
    into[v].push([u, tensor]);
  }
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

  /** Which vertices can be scheduled: on devices that they may use, and that all their inputs reach. */
  const schedulable = (place) => {
    const held = new Array(n).fill(false);
    for (const v of order) {
      const d = place[v];
      held[v] = d !== null && run[v][d] !== null && into[v].every(([u, tensor]) => !held[u] || crossing[tensor][place[u]][d] !== null);
    }
    return held;
  };

  /** The longest time from the start of each vertex to the end of the last one that depends on it. */
  const remaining = (place, held) => {
    const rank = new Array(n).fill(0);
    for (const v of [...order].reverse()) {
      if (!held[v]) continue;
      const after = out[v].filter(([w]) => held[w]).map(([w, tensor]) => crossing[tensor][place[v]][place[w]] + rank[w]);
      rank[v] = run[v][place[v]] + Math.max(0, ...after);
    }
    return rank;
  };

  /** List scheduling: a free device runs the executable vertex of the longest remaining path, of equals the first. */
  const starts = (place, held, rank) => {
    const start = new Array(n).fill(null);
    const ready = new Array(n).fill(0);
    const waiting = into.map((inputs) => inputs.filter(([u]) => held[u]).length);
    const executable = capacity.map(() => []);
    const idle = capacity.map(() => true);
    // Events: vertex v becomes executable (v), or device d looks for work (n + d). At equal times, lower numbers first.
    const events = [];
    for (let v = 0; v < n; v += 1) if (held[v] && !waiting[v]) events.push([0, v]);
    while (events.length) {
      events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      const [now, what] = events.shift();
      if (what < n) {
        const d = place[what];
        executable[d].push(what);
        if (idle[d]) {
          idle[d] = false;
          events.push([now, n + d]);
        }
        continue;
      }
      const choices = executable[what - n];
      if (!choices.length) {
        idle[what - n] = true;
        continue;
      }
      choices.sort((a, b) => rank[b] - rank[a] || a - b);
      const v = choices.shift();
      start[v] = now;
      const end = now + run[v][place[v]];
      events.push([end, what]);
      for (const [w, tensor] of out[v]) {
        if (!held[w]) continue;
        ready[w] = Math.max(ready[w], end + crossing[tensor][place[v]][place[w]]);
        waiting[w] -= 1;
        if (!waiting[w]) events.push([ready[w], w]);
      }
    }
    return start;
  };

  /** The last input of a vertex to arrive, or null. */
  const lastInput = (v, place, start, end) => {
    let last = null;
    for (const [u, tensor] of into[v]) {
      if (start[u] === null) continue;
      const at = end[u] + crossing[tensor][place[u]][place[v]];
      if (!last || at > last.at) last = { u, tensor, at };
    }
    return last;
  };

  /** A chain without gaps that ends last: vertices, with what they waited for their device, and transfers. */
  const criticalPath = (place, start, end, makespan) => {
    const steps = [];
    let v = end.findIndex((at) => at === makespan);
    while (v >= 0) {
      const last = lastInput(v, place, start, end);
      const step = { v, from: start[v], to: end[v], waited: start[v] - (last ? last.at : 0), behind: -1 };
      steps.unshift(step);
      if (last && !step.waited) {
        if (place[last.u] !== place[v]) steps.unshift({ u: last.u, tensor: last.tensor, for: v, from: end[last.u], to: last.at });
        v = last.u;
      } else {
        v = start.findIndex((at, w) => at !== null && place[w] === place[v] && end[w] === start[v] && at < end[w]);
        step.behind = v;
      }
    }
    return steps;
  };

  /** Everything about a placement; with starts that are given, of that schedule instead. */
  const schedule = (place, given = null) => {
    const held = schedulable(place);
    const rank = remaining(place, held);
    const start = given ?? starts(place, held, rank);
    const end = start.map((at, v) => (at === null ? null : at + run[v][place[v]]));
    const makespan = Math.max(0, ...end.filter((at) => at !== null));
    const load = capacity.map((_, d) => sum(start.map((at, v) => (at !== null && place[v] === d ? run[v][d] : 0))));
    const transfers = new Map(); // once per tensor and destination
    for (const [u, v, tensor] of edges) {
      if (start[u] === null || start[v] === null || place[u] === place[v]) continue;
      transfers.set(`${tensor} ${place[v]}`, { u, tensor, device: place[v], from: end[u], to: end[u] + crossing[tensor][place[u]][place[v]] });
    }
    const ready = start.map((at, v) => (at === null ? null : lastInput(v, place, start, end)?.at ?? 0));
    return { start, end, makespan, load, ready, longest: Math.max(0, ...rank), transfers: [...transfers.values()], path: criticalPath(place, start, end, makespan) };
  };

  /** The rules that a placement violates: each a kind and the numbers that are concerned. */
  const violations = (place) => {
    const found = [];
    place.forEach((d, v) => {
      if (d !== null && run[v][d] === null) found.push({ rule: "device", v, d });
    });
    for (const group of data.groups) {
      const devices = new Set(group.map((v) => place[v]).filter((d) => d !== null));
      if (devices.size > 1) found.push({ rule: "together", group, devices: [...devices] });
    }
    for (const [u, v] of data.apart) if (place[u] !== null && place[u] === place[v]) found.push({ rule: "apart", u, v, d: place[u] });
    const blocked = new Set();
    for (const [u, v, tensor] of edges) {
      if (place[u] === null || place[v] === null || crossing[tensor][place[u]][place[v]] !== null || blocked.has(`${u} ${v}`)) continue;
      blocked.add(`${u} ${v}`);
      found.push({ rule: "link", u, v });
    }
    capacity.forEach((most, d) => {
      const need = sum(place.map((at, v) => (at === d ? data.need[v] : 0)));
      if (most !== null && need > most) found.push({ rule: "memory", d, need, most });
    });
    return found;
  };

  return { schedule, violations, into, out };
};
