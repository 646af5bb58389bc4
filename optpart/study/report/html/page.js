"use strict";
// The page of `optpart report`. Names from files reach the document as text only, never as markup.
(() => {
const everything = JSON.parse(document.getElementById("data").textContent);
// Of several instances, the address says by a number which one is shown; without one, a table of all is.
const reports = everything.reports ?? null;
const picked = reports ? Math.min(reports.length, Math.max(0, Math.floor(Number(location.hash.slice(1))) || 0)) : 0;
const data = reports ? reports[Math.max(0, picked - 1)] : everything;
if (reports) window.addEventListener("hashchange", () => location.reload());
const { instance, graph, results, whole } = data;
const k = instance.devices.length;
/** A figure with the unit of its time, and a heading of such figures; unchanged where no unit is known. */
const withUnit = (text, unit = instance.time_unit) => (unit ? `${text} ${unit}` : text);
const inUnit = (heading) => (instance.time_unit ? `${heading} (${instance.time_unit})` : heading);
const $ = (id) => document.getElementById(id);

// --- exact numbers: a whole number, or [exact text, nearest double] -------------------------

const near = (value) => (typeof value === "number" ? value : value[1]);
const exact = (value) => (typeof value === "number" ? String(value) : value[0]);
const ratio = (value) => {
  const [top, bottom] = exact(value).split("/");
  return [BigInt(top), BigInt(bottom ?? 1)];
};
/** The first digits of a fraction and the power of ten of the last of them; the rest is cut off. */
const digits = (top, bottom) => {
  const power = String(top).length - String(bottom).length - 20;
  return [power < 0 ? (top * 10n ** BigInt(-power)) / bottom : top / (bottom * 10n ** BigInt(power)), power];
};
const reduced = (top, bottom) => {
  let [a, b] = [top < 0n ? -top : top, bottom];
  while (b) [a, b] = [b, a % b];
  [top, bottom] = a ? [top / a, bottom / a] : [0n, 1n];
  if (bottom === 1n && Number.isSafeInteger(Number(top))) return Number(top);
  const [first, power] = digits(top, bottom);
  return [bottom === 1n ? String(top) : `${top}/${bottom}`, Number(`${first}e${power}`)];
};
/** The whole quotient of two numbers of which none is negative. */
const divided = (top, bottom, up) => top / bottom + (up && top % bottom ? 1n : 0n);
/** The quotient of two numbers as a double, however large or small they are; 0 for a divisor of 0. */
const share = (a, b, up = true) => {
  const [[p, q], [r, t]] = [ratio(a), ratio(b)];
  return r ? Number(divided(p * t * 10n ** 15n, q * r, up)) / 1e15 : 0;
};
const combined = (a, b, sign) => {
  if (typeof a === "number" && typeof b === "number") {
    const sum = a + sign * b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  const [[p, q], [r, s]] = [ratio(a), ratio(b)];
  return reduced(p * s + BigInt(sign) * r * q, q * s);
};
const minus = (a, b) => combined(a, b, -1);
const plus = (a, b) => combined(a, b, 1);
const same = (a, b) => exact(a) === exact(b);
const rounded = (x) => {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e15 || size < 1e-4) return x.toExponential(5);
  return Number(x.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 9 });
};
/** Six digits of an exact number that no double limits, rounded up, or down for bounds. */
const about = (value, up = true) => {
  const [top, bottom] = ratio(value);
  if (top < 0n) return `-${about([exact(value).slice(1), -near(value)], !up)}`;
  if (!top) return "0";
  const shifted = (power) => (power < 0 ? [top * 10n ** BigInt(-power), bottom] : [top, bottom * 10n ** BigInt(power)]);
  let power = String(top).length - String(bottom).length - 5;
  if (divided(...shifted(power), false) < 100000n) power -= 1;
  const first = divided(...shifted(power), up);
  const size = near(value);
  if (size < 1e300 && size > 1e-300) return rounded(Number(`${first}e${power}`));
  const text = String(first);
  return `${text[0]}.${text.slice(1, 6)}e${power + text.length - 1}`;
};
/** A number in few characters: exact if that is short, otherwise marked as rounded. */
const shown = (value, up = true) => {
  if (value === null || value === undefined) return "–";
  const text = exact(value);
  if (typeof value === "number") return Math.abs(value) < 1e4 ? text : value.toLocaleString("en-US");
  return text.length <= 13 && text.includes("/") ? `${text} ≈ ${about(value, up)}` : `≈ ${about(value, up)}`;
};
const brief = (value, up = true) => {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" ? shown(value) : `≈ ${about(value, up)}`;
};
/** The direction in which a bound is rounded: down, but like the value that it reaches. */
const reaches = (bound, value) => bound !== null && value !== null && same(bound, value);
/** A share in percent, rounded up, or down for what is at least so much; a double counts as it is written. */
const percent = (share, up = true) => {
  if (share === 0) return "0 %";
  if (share < 0.0001) return up ? "< 0.01 %" : "> 0 %";
  const places = share < 0.1 ? 2 : 1;
  const scaled = Number(`${share}e${2 + places}`);
  return `${((up ? Math.ceil(scaled) : Math.floor(scaled)) / 10 ** places).toFixed(places)} %`;
};
const seconds = (value) => (value < 0.001 ? "< 1 ms" : value < 1 ? `${Math.round(1000 * value)} ms` : `${value.toFixed(1)} s`);
const counted = (number, noun, plural) => `${number.toLocaleString("en-US")} ${number === 1 ? noun : plural ?? `${noun}s`}`;
const short = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(text.length - Math.floor(most / 2))}`);

// --- elements --------------------------------------------------------------------------------

/** Make an element: attributes, then children, where strings become text. */
const el = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, call] of Object.entries(value)) made.addEventListener(event, call);
    else if (name === "style") Object.assign(made.style, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
};
const figure = (value, up = true) => el("span", { title: value === null || value === undefined ? null : exact(value), "data-exact": value === null || value === undefined ? null : exact(value) }, shown(value, up));
const cell = (value) => el("span", { title: exact(value), "data-exact": exact(value) }, brief(value));
const tip = (head, ...lines) => el("div", { class: "tip" }, el("b", {}, head), ...lines.filter(Boolean).map((line) => el("div", {}, line)));

// --- colours ---------------------------------------------------------------------------------

// Okabe and Ito's colours, which colour-blind readers can tell apart; further devices repeat them
// in a lighter and a darker shade.
const BASE = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#0072b2", "#cc79a7", "#d55e00", "#999999"];
const mixed = (colour, other, share) => {
  const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `#${[0, 1, 2].map((i) => Math.round(part(colour, i) * (1 - share) + part(other, i) * share).toString(16).padStart(2, "0")).join("")}`;
};
const deviceColour = (d) => {
  const base = BASE[d % BASE.length];
  const round = Math.floor(d / BASE.length) % 3;
  return round === 0 ? base : mixed(base, round === 1 ? "#ffffff" : "#000000", 0.45);
};
const textOn = (colour) => {
  const [r, g, b] = [0, 1, 2].map((i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b < 130 ? "#ffffff" : "#111111";
};
let theme = {};
const readTheme = () => {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "card", "ink", "faint", "line", "accent", "idle", "hatch", "path", "bound", "cross"]) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
};

// --- state -----------------------------------------------------------------------------------

const withSchedule = results.map((_, i) => i).filter((i) => results[i].schedule);
/** Whether a schedule has anything to draw, and times that a chart can hold. */
const drawable = (result) => {
  const end = result?.makespan ?? null;
  return Boolean(result?.schedule) && instance.vertices > 0 && end !== null && (exact(end) === "0" || (near(end) > 1e-290 && near(end) < 1e290));
};
const state = {
  result: withSchedule[0] ?? 0,
  other: -1,
  colour: "device",
  transfers: false,
  path: true,
  idle: true,
  selected: -1,
  bound: "",
  open: new Set(),
};
const current = () => results[state.result];
const many = whole ? instance.vertices > 0 && withSchedule.some((i) => results[i].schedule.transfers > 150) : true;
state.transfers = !many;
const tensorName = (tensor) => {
  const output = graph.output[tensor];
  const name = graph.vertex[graph.producer[tensor]];
  return output === null ? `signal of ${name}` : `${name}:${output}`;
};
const device = (d) => instance.devices[d].name;

const charts = new Map();
/** Return the chart of an element, made with the keys that all charts share. */
const chart = (id) => {
  const box = $(id);
  let made = charts.get(id);
  if (!made) {
    made = echarts.init(box, null, { renderer: "canvas" });
    charts.set(id, made);
  }
  made.resize();
  return made;
};
const axisStyle = () => ({
  axisLine: { lineStyle: { color: theme.line } },
  axisTick: { lineStyle: { color: theme.line } },
  axisLabel: { color: theme.faint, hideOverlap: true },
  splitLine: { lineStyle: { color: theme.line, opacity: 0.5 } },
  nameTextStyle: { color: theme.faint },
});
const tooltip = (formatter) => ({
  trigger: "item",
  confine: true,
  backgroundColor: theme.page,
  borderColor: theme.line,
  textStyle: { color: theme.ink },
  formatter,
});
/** A format for the numbers of an axis that ends at a number: all with the same power of ten. */
const axisFormat = (end) => {
  const power = end >= 1e6 || (end > 0 && end < 1e-2) ? 3 * Math.floor(Math.log10(end) / 3) : 0;
  return (value) => (power && value ? `${rounded(value / 10 ** power)}e${power}` : rounded(value));
};

// --- summary ---------------------------------------------------------------------------------

const OBJECTIVE = { makespan: "makespan", traffic: "traffic", lexicographic: "makespan, then traffic", bottleneck: "bottleneck" };
const main = (result) => {
  if (result.objective === "traffic") return [result.traffic, result.traffic_bound];
  if (result.objective === "bottleneck") return [result.bottleneck, result.bottleneck_bound];
  return [result.makespan, result.lower_bound];
};
/** What a file claims beyond the proven bound of the objective; null if it does not. */
const claimedBound = ({ objective, claimed }) => claimed?.[{ traffic: "traffic_bound", bottleneck: "bottleneck_bound" }[objective] ?? "lower_bound"] ?? null;
const verdict = (result) => {
  const [value, bound] = main(result);
  const under = result.given ? `, given ${result.given}` : "";
  const what = OBJECTIVE[result.objective];
  const said = (number, up = true) => (result.objective === "traffic" ? shown(number, up) : withUnit(shown(number, up)));
  if (result.refused) return ["refused", `Refused: what ${result.method} claims does not hold.`];
  if (result.status === "OPTIMAL") return ["OPTIMAL", `Optimal: no schedule has a smaller ${what} than ${said(value)}${under}.`];
  if (result.status === "INFEASIBLE") return ["INFEASIBLE", `Infeasible: it is proven that there is no schedule${under}.`];
  if (result.claimed?.infeasible) return ["UNKNOWN", `That there is no schedule${under} is ${result.claimed.said}, and not proven here.`];
  if (result.status === "UNKNOWN") return ["UNKNOWN", `Nothing found: neither a schedule nor a proof that there is none${under}.`];
  const claim = claimedBound(result);
  if (claim !== null) return ["FEASIBLE", `A valid schedule with ${what} ${said(value)}${under}. That ${same(claim, value) ? "it is optimal" : `none is below ${said(claim, false)}`} is ${result.claimed.said}, and not proven by the run of this report${bound === null ? "" : `, which proves ${said(bound, false)}`}.`];
  if (bound === null) return ["FEASIBLE", `A valid schedule with ${what} ${said(value)}${under}; no bound is known.`];
  return ["FEASIBLE", `A valid schedule with ${what} ${said(value)}${under}; at most ${percent(result.gap ?? 0)} of it could be saved, since no schedule is below ${said(bound, false)}.`];
};
const largestReason = data.reasons.reduce((best, reason) => (best === null || near(reason.value) > near(best.value) ? reason : best), null);
/** The largest bound of this report, if it says more about the makespan of a result than its run. */
const beyondRun = (result) => {
  const known = ["makespan", "lexicographic"].includes(result.objective) && result.makespan !== null && result.status === "FEASIBLE" && !result.given;
  const best = largestReason;
  return known && best && near(best.value) > (result.lower_bound === null ? 0 : near(result.lower_bound)) ? best : null;
};
const drawHeader = () => {
  $("instances").hidden = !reports;
  if (reports) {
    const link = (i, text) => el("a", { href: `#${i || ""}` }, text);
    $("instances").replaceChildren(...[link(0, "All instances"), picked > 1 ? link(picked - 1, `← ${short(reports[picked - 2].instance.name, 30)}`) : null, picked < reports.length ? link(picked + 1, `${short(reports[picked].instance.name, 30)} →`) : null].filter(Boolean));
  }
  document.title = `${instance.name} – optpart report`;
  $("title").textContent = instance.name;
  const memory = instance.memory === "none" ? "memory not limited" : `memory ${instance.memory}`;
  $("facts").textContent = [
    counted(instance.vertices, "vertex", "vertices"), counted(instance.edges, "edge"), counted(k, "device"),
    `communication ${instance.communication}`, memory, ...(instance.time_unit ? [`times in ${instance.time_unit}`] : []),
  ].join(" · ");
  const versions = results.length ? Object.entries(current().versions).map(([name, version]) => `${name} ${version}`).join(", ") : "";
  $("footer").textContent = `Written by optpart ${data.optpart}. Instance SHA-256 ${instance.sha256}.` + (versions ? ` The run used ${versions}.` : "");
};
const drawSummary = () => {
  const box = $("summary");
  box.replaceChildren();
  if (!results.length) {
    box.append(el("div", { class: "verdict" }, "An instance without a result: 'optpart solve' finds one."));
    return;
  }
  const result = current();
  if (results.length > 1) {
    const choice = el("select", { id: "choose", on: { change: (event) => choose(Number(event.target.value)) } },
      results.map((one, i) => el("option", { value: i, selected: i === state.result }, one.label)));
    box.append(el("p", { class: "tools" }, el("label", {}, "Result ", choice)));
  }
  const [kind, said] = verdict(result);
  const lines = [];
  const beyond = beyondRun(result);
  if (beyond) lines.push(el("p", { id: "beyond" }, same(beyond.value, result.makespan) ? `In fact it is optimal: the bound ${beyond.name} below, ${result.claimed ? "computed for this report" : "which the run did not use"}, reaches its makespan.` : `${result.claimed ? "It is proven that" : "In fact"} at most ${percent(share(minus(result.makespan, beyond.value), result.makespan))} could be saved: the bound ${beyond.name} below, ${result.claimed ? "computed for this report" : "which the run did not use"}, is ${shown(beyond.value, false)}.`));
  if (result.reason) lines.push(el("p", {}, result.status === "INFEASIBLE" ? `Because: ${result.reason}.`.replace("..", ".") : `Remark: ${result.reason}`));
  if (result.contiguous) lines.push(el("p", {}, "Every device runs one contiguous block."));
  if (result.device_order.length) lines.push(el("p", {}, `Edges lead along the devices in this order: ${result.device_order.join(", ")}.`));
  if (result.schedule && instance.vertices && !drawable(result)) lines.push(el("p", {}, "Its times are too large or too small to be drawn; the tables have them."));
  if (result.has_schedule && !result.schedule) lines.push(el("p", {}, "Its schedule is not in this report, which holds those of the best results only."));
  box.append(el("div", { class: `verdict ${kind}`, id: "verdict" }, said, ...lines));
  const rows = [[inUnit("Makespan"), figure(result.makespan), "makespan"], [inUnit(["makespan", "lexicographic"].includes(result.objective) ? "Lower bound" : "Bound of the makespan"), figure(result.lower_bound, reaches(result.lower_bound, result.makespan)), "lower_bound"]];
  if (result.objective === "bottleneck") {
    rows.push([inUnit("Bottleneck"), figure(result.bottleneck), "bottleneck"], [inUnit("Bound of the bottleneck"), figure(result.bottleneck_bound, reaches(result.bottleneck_bound, result.bottleneck)), "bottleneck_bound"]);
  }
  if (claimedBound(result) !== null) rows.push(["Claimed bound", figure(claimedBound(result), false), "claimed_bound"]);
  rows.push(["Gap", el("span", { "data-exact": result.gap }, result.gap === null ? "–" : percent(result.gap)), "gap"]);
  rows.push(["Traffic", figure(result.traffic), "traffic"]);
  if (result.traffic_bound !== null) rows.push(["Bound of the traffic", figure(result.traffic_bound, reaches(result.traffic_bound, result.traffic)), "traffic_bound"]);
  rows.push(["Method", result.method, "method"], ["Run time", seconds(result.seconds), "seconds"]);
  rows.push(["Ended", result.termination ?? "unknown", "termination"], ["Seed", String(result.seed), "seed"]);
  box.append(el("dl", { class: "figures", id: "figures" }, rows.map(([name, value, key]) => el("div", { "data-key": key }, el("dt", {}, name), el("dd", {}, value)))));
};

// --- several instances -----------------------------------------------------------------------

const MOST_METHODS = 12;
const drawOverview = () => {
  document.body.classList.add("overview");
  const rows = everything.instances;
  document.title = `${rows.length} instances – optpart report`;
  $("title").textContent = `${rows.length} instances`;
  const methods = [...new Set(rows.flatMap((row) => row.runs.map((run) => run.method)))];
  const named = methods.slice(0, MOST_METHODS);
  const runs = rows.reduce((sum, row) => sum + row.runs.length, 0);
  $("facts").textContent = `${counted(runs, "run")} of ${counted(methods.length, "method")}`;
  const valid = (run) => run.makespan !== null && run.status !== "refused";
  const least = (list) => list.filter(valid).reduce((best, run) => (best === null || near(run.makespan) < near(best) ? run.makespan : best), null);
  const over = (row, method) => {
    const own = row.runs.filter((run) => run.method === method);
    if (!own.length) return "not run";
    const makespan = least(own);
    if (makespan === null) return own.some((run) => run.status === "refused") ? "refused" : own.some((run) => run.status === "INFEASIBLE") ? "infeasible" : own.some((run) => run.status === "claims INFEASIBLE") ? "claimed infeasible" : "nothing found";
    if (row.bound === null) return brief(makespan);
    if (same(makespan, row.bound)) return "0 %";
    return near(row.bound) ? percent(share(minus(makespan, row.bound), row.bound)) : brief(makespan);
  };
  const line = (row, i) => el("tr", {}, el("td", { class: "text" }, i < reports.length ? el("a", { href: `#${i + 1}` }, row.name) : row.name),
    el("td", {}, row.vertices.toLocaleString("en-US")), el("td", {}, String(row.devices)), [[least(row.runs), true], [row.bound, reaches(row.bound, least(row.runs))]].map(([time, up]) => el("td", {}, figure(time, up), time === null ? "" : withUnit("", row.time_unit))),
    named.map((method) => el("td", {}, over(row, method))));
  const head = [["Instance", "text"], ["Vertices"], ["Devices"], ["Best makespan"], ["Bound"], ...named.map((method) => [method])];
  $("overview-table").replaceChildren(el("thead", {}, el("tr", {}, head.map(([text, kind]) => el("th", { class: kind ?? null }, text)))), el("tbody", {}, rows.map(line)));
  $("overview-note").textContent = "Below a method is how far the best of its runs is above the bound, the largest that a run or the instance library claims: 0 % is optimal if it holds. A name leads to the report on the instance." +
    (reports.length < rows.length ? ` The report holds the first ${reports.length} of them.` : "") +
    (named.length < methods.length ? ` ${counted(methods.length - named.length, "more method")} have no column here; the reports have them.` : "");
  $("overview").hidden = false;
  $("footer").textContent = `Written by optpart ${everything.optpart}. The verifier checked every schedule against its instance, in exact arithmetic, when the report was written.`;
};

// --- comparison ------------------------------------------------------------------------------

const drawComparison = () => {
  $("comparison").hidden = results.length < 2;
  if (results.length < 2) return;
  const claims = results.filter((r) => r.claimed?.lower_bound);
  const bounds = [...results.map((r) => r.lower_bound), ...claims.map((r) => r.claimed.lower_bound)].filter((b) => b !== null && !results.some((r) => r.given));
  const bound = bounds.length ? bounds.reduce((a, b) => (near(b) > near(a) ? b : a)) : null;
  const most = Math.max(...results.map((r) => (r.makespan === null ? 0 : near(r.makespan))), 1e-300);
  $("comparison-note").textContent = bound === null ? "" : `The largest ${results.some((r) => r.lower_bound !== null && same(r.lower_bound, bound)) ? "proven bound is" : "bound, claimed by a file and not proven here, is"} ${shown(bound, false)}; the mark in the bars is there.`;
  const order = results.map((_, i) => i).sort((a, b) => (results[a].makespan === null) - (results[b].makespan === null) || (results[a].makespan === null ? 0 : near(results[a].makespan) - near(results[b].makespan)) || a - b);
  const head = ["Result", "", inUnit("Makespan"), "Over the bound", "Traffic", "Transfers", "Status", "Run time"];
  const rows = order.map((i) => {
    const r = results[i];
    const over = r.makespan === null || bound === null || !near(bound) ? "–" : same(r.makespan, bound) ? "0 %" : percent(share(minus(r.makespan, bound), bound));
    const bar = el("div", { class: "bar", style: { position: "relative" } });
    if (r.makespan !== null) bar.append(el("i", { style: { width: `${(100 * near(r.makespan)) / most}%`, background: theme.accent } }));
    if (bound !== null) bar.append(el("i", { style: { position: "absolute", left: `calc(${(100 * near(bound)) / most}% - 2px)`, width: "2px", background: theme.bound } }));
    return el("tr", { class: i === state.result ? "chosen" : null, "data-result": i },
      el("td", { class: "text" }, el("button", { class: "link", on: { click: () => choose(i) } }, r.label)), el("td", {}, bar),
      el("td", {}, figure(r.makespan)), el("td", {}, over), el("td", {}, figure(r.traffic)),
      el("td", {}, r.schedule ? r.schedule.transfers.toLocaleString("en-US") : "–"), el("td", { class: "text" }, r.refused ? "refused" : r.status), el("td", {}, seconds(r.seconds)));
  });
  $("comparison-table").replaceChildren(el("thead", {}, el("tr", {}, head.map((h) => el("th", { class: h === "Result" || h === "Status" ? "text" : null }, h)))), el("tbody", {}, rows));
};

// --- Gantt chart -----------------------------------------------------------------------------

const CAUSE = {
  transfer: (gap, w) => `waits for ${tensorName(w.tensor[gap[5]])} from ${device(w.device[graph.producer[w.tensor[gap[5]]]])}, which arrives at ${shown(w.arrival[gap[5]])}`,
  held: (gap) => `${graph.vertex[gap[4]]} comes next, and starts later than its inputs require`,
  end: () => "nothing is left to run here",
  unused: () => "no vertex runs on this device",
};

const vertexTip = (w, v) => tip(graph.vertex[v], `${device(w.device[v])}, ${shown(w.start[v])} to ${shown(w.end[v])}`,
  `runs for ${shown(minus(w.end[v], w.start[v]))}`, graph.kinds.labels.length > 1 ? graph.kinds.labels[graph.kind[v]] : "");
const transferTip = (w, c) => tip(`transfer of ${tensorName(w.tensor[c])}`,
  `${device(w.device[graph.producer[w.tensor[c]]])} → ${device(w.to[c])}, ${shown(w.begin[c])} to ${shown(w.arrival[c])}`, `size ${shown(graph.size[w.tensor[c]])}, takes ${shown(minus(w.arrival[c], w.begin[c]))}`);
const vertexColour = (w, v) => (state.colour === "device" || !w ? (w ? deviceColour(w.device[v]) : BASE[0]) : graph.kinds.colours[graph.kind[v]]);

const rowsOf = (shownResults) => {
  const used = new Set();
  for (const result of shownResults) result.schedule.devices.forEach((row, d) => row.vertices && used.add(d));
  return [...used].sort((a, b) => a - b);
};
let span = 1;
const zoomed = { start: 0, end: 100 };
const follow = (start, end, from) => {
  zoomed.start = Math.max(0, start);
  zoomed.end = Math.min(100, end);
  for (const id of ["gantt", "gantt-b", "memory-chart"]) {
    if (id !== from && charts.has(id) && !$(id).closest("[hidden]")) {
      charts.get(id).dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: zoomed.start, end: zoomed.end }, { silent: true });
    }
  }
  $("gantt").dataset.zoom = `${zoomed.start.toFixed(2)} ${zoomed.end.toFixed(2)}`;
};

/** The vertices of a schedule by device and start. */
const inOrder = (w) => (w.order ??= w.start.map((_, v) => v).sort((a, b) => w.device[a] - w.device[b] || near(w.start[a]) - near(w.start[b]) || a - b));
const ganttOption = (result, rows, height) => {
  const schedule = result.schedule;
  const w = schedule.whole;
  const at = new Map(rows.map((d, i) => [d, i]));
  const narrow = $("gantt").clientWidth < 560;
  const most = narrow ? 9 : 18;
  const marks = [{ xAxis: near(result.makespan), name: "makespan", lineStyle: { color: theme.ink, type: "solid", width: 1.4 }, label: { formatter: `makespan ${brief(result.makespan)}`, color: theme.ink } }];
  if (result.lower_bound !== null) {
    const closed = same(result.lower_bound, result.makespan);
    if (closed) marks[0].label.formatter = `makespan ${brief(result.makespan)}, proven least`;
    else marks.push({ xAxis: near(result.lower_bound), name: "bound", lineStyle: { color: theme.bound, type: "dashed", width: 1.6 }, label: { formatter: `bound ${brief(result.lower_bound, false)}`, color: theme.bound, distance: 18 } });
  }
  if (result.lower_bound === null && result.claimed?.lower_bound) {
    const said = `claimed bound ${brief(result.claimed.lower_bound, same(result.claimed.lower_bound, result.makespan))}`;
    if (same(result.claimed.lower_bound, result.makespan)) marks[0].label.formatter = `makespan ${brief(result.makespan)}, ${said}`;
    else marks.push({ xAxis: near(result.claimed.lower_bound), name: "bound", lineStyle: { color: theme.bound, type: "dotted", width: 1.6 }, label: { formatter: said, color: theme.bound, distance: 18 } });
  }
  for (const mark of marks) mark.label = { position: "start", fontSize: 11, align: mark.xAxis < 0.3 * span ? "left" : "right", ...mark.label };
  const series = [];
  const bar = (params, api, id, end) => {
    const [x0, y] = api.coord([api.value(0), api.value(2)]);
    const x1 = api.coord([api.value(1), api.value(2)])[0];
    const h = Math.max(2, Math.min(30, api.size([0, 1])[1] * 0.72));
    const area = params.coordSys;
    const left = Math.max(x0, area.x), right = Math.min(x1, area.x + area.width);
    return { x0, x1, y, h, left, right };
  };
  const common = { type: "custom", clip: true, encode: { x: [0, 1], y: 2 }, progressive: 0, animation: false, emphasis: { disabled: true } };
  if (w) {
    const onPath = new Set(w.path.filter(([kind]) => kind === "vertex").map(([, v]) => v));
    const pathTransfers = new Set(w.path.filter(([kind]) => kind === "transfer").map(([, c]) => c));
    if (state.idle) {
      series.push({ ...common, name: "idle", z: 1, data: w.idle.filter((gap) => at.has(gap[0])).map((gap, i) => ({ value: [near(gap[1]), near(gap[2]), at.get(gap[0])], gap })),
        renderItem: (params, api) => {
          const { left, right, y, h } = bar(params, api);
          if (right - left < 1) return null;
          return { type: "rect", emphasisDisabled: true, shape: { x: left, y: y - h / 2, width: right - left, height: h }, style: { fill: theme.idle, stroke: theme.hatch, lineWidth: 0.7, lineDash: [3, 3] } };
        } });
    }
    series.push({ ...common, name: "vertices", z: 3, data: inOrder(w).filter((v) => at.has(w.device[v])).map((v) => [near(w.start[v]), near(w.end[v]), at.get(w.device[v]), v]),
      renderItem: (params, api) => {
        const v = api.value(3);
        const { x0, x1, y, h, left, right } = bar(params, api);
        if (x1 < params.coordSys.x - 1 || x0 > params.coordSys.x + params.coordSys.width + 1) return null;
        // Of the bars within one pixel of a device, one is drawn: the others would change nothing.
        const drawn = (params.context.drawn ??= new Map());
        if (v !== state.selected && right <= drawn.get(api.value(2))) return null;
        drawn.set(api.value(2), Math.max(right, left + 1));
        const fill = vertexColour(w, v);
        const critical = state.path && onPath.has(v);
        const chosen = v === state.selected;
        const style = { fill, stroke: chosen ? theme.ink : theme.page, lineWidth: chosen ? 3 : right - left > 4 ? 0.8 : 0 };
        if (api.value(0) === api.value(1)) {
          return { type: "polygon", z2: 5, shape: { points: [[x0, y - h / 2], [x0 + 4, y], [x0, y + h / 2], [x0 - 4, y]] }, style: { ...style, stroke: chosen ? theme.ink : critical ? theme.path : theme.faint, lineWidth: Math.max(1, style.lineWidth) } };
        }
        const shape = { x: left, y: y - h / 2, width: Math.max(1, right - left), height: h };
        const made = { type: "rect", emphasisDisabled: true, shape, z2: chosen ? 3 : 1, style };
        if (right - left > 18 && h > 10) {
          const name = graph.vertex[v];
          const room = Math.floor((right - left - 6) / 6.4);
          const text = name.length <= room ? name : name.slice(name.lastIndexOf("/") + 1);
          if (room >= 2 && (text.length <= room || room >= 5)) made.textContent = { type: "text", style: { text: short(text, room), fill: textOn(fill), fontSize: 11, fontFamily: "inherit" } };
          if (made.textContent) made.textConfig = { position: "inside" };
        }
        if (!critical) return made;
        // A stripe below the bar, so that its own colour can be seen however narrow it is.
        const stripe = Math.max(2, Math.min(5, h / 5));
        return { type: "group", emphasisDisabled: true, children: [made, { type: "rect", z2: 4, shape: { ...shape, y: y + h / 2 - stripe / 2, height: stripe }, style: { fill: theme.path } }] };
      } });
    const wanted = state.transfers ? null : new Set();
    if (wanted && state.path) pathTransfers.forEach((c) => wanted.add(c));
    if (wanted && state.selected >= 0) {
      const inputs = new Set();
      graph.target.forEach((v, e) => v === state.selected && inputs.add(graph.tensor[e]));
      w.tensor.forEach((tensor, c) => (graph.producer[tensor] === state.selected || (inputs.has(tensor) && w.to[c] === w.device[state.selected])) && wanted.add(c));
    }
    const arrows = w.tensor.map((_, c) => c).filter((c) => !wanted || wanted.has(c));
    series.push({ ...common, name: "transfers", z: 4, data: arrows.map((c) => [near(w.begin[c]), near(w.arrival[c]), at.get(w.device[graph.producer[w.tensor[c]]]), c]),
      renderItem: (params, api) => {
        const c = api.value(3);
        const from = api.coord([api.value(0), api.value(2)]);
        const to = api.coord([api.value(1), at.get(w.to[c])]);
        const h = Math.max(2, Math.min(30, api.size([0, 1])[1] * 0.72)) / 2;
        const down = to[1] > from[1] ? 1 : -1;
        const critical = state.path && pathTransfers.has(c);
        const colour = critical ? theme.path : theme.ink;
        const [x1, y1, x2, y2] = [from[0], from[1] + down * h, to[0], to[1] - down * h];
        const angle = Math.atan2(y2 - y1, x2 - x1);
        const wing = (turn) => [x2 - 7 * Math.cos(angle + turn), y2 - 7 * Math.sin(angle + turn)];
        return { type: "group", children: [
          { type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: critical ? 2 : 1, opacity: critical ? 1 : 0.65 } },
          { type: "polygon", shape: { points: [[x2, y2], wing(0.4), wing(-0.4)] }, style: { fill: colour, opacity: critical ? 1 : 0.65 } },
        ] };
      } });
  } else {
    const { number, busy, count } = schedule.intervals;
    const items = [];
    rows.forEach((d, row) => busy[d].forEach((share, i) => share > 0 && items.push([(i * near(result.makespan)) / number, ((i + 1) * near(result.makespan)) / number, row, share, d, count[d][i]])));
    series.push({ ...common, name: "intervals", z: 3, data: items, renderItem: (params, api) => {
      const { left, right, y, h } = bar(params, api);
      const tall = Math.max(1, h * api.value(3));
      return { type: "rect", shape: { x: left, y: y + h / 2 - tall, width: Math.max(1, right - left + 0.4), height: tall }, style: { fill: deviceColour(api.value(4)) } };
    } });
  }
  const reason = data.reasons.find(({ name }) => name === state.bound);
  if (reason) {
    series.push({ ...common, name: "bound intervals", z: 5, silent: true, data: reason.intervals.filter((one) => at.has(one.device)).map((one) => [near(one.start), near(one.end), at.get(one.device)]),
      renderItem: (params, api) => {
        const { left, right, y, h } = bar(params, api);
        if (right < left) return null;
        return { type: "rect", shape: { x: left, y: y - h / 2 - 4, width: Math.max(2, right - left), height: h + 8, r: 3 }, style: { fill: "transparent", stroke: theme.bound, lineWidth: 2.5, lineDash: [7, 4] } };
      } });
  }
  series.push({ type: "line", data: [], silent: true, z: 6, markLine: { silent: true, symbol: "none", animation: false, precision: -1, data: marks } });
  return {
    animation: false,
    backgroundColor: "transparent",
    textStyle: { color: theme.ink },
    aria: { enabled: false },
    grid: { left: narrow ? 74 : 132, right: narrow ? 14 : 44, top: 42, bottom: 66, outerBoundsMode: "none" },
    tooltip: tooltip((params) => {
      if (params.seriesName === "idle") {
        const gap = params.data.gap;
        return tip(`${device(gap[0])} idle`, `${shown(gap[1])} to ${shown(gap[2])}, for ${shown(minus(gap[2], gap[1]))}`, CAUSE[gap[3]](gap, w));
      }
      if (params.seriesName === "vertices") return vertexTip(w, params.value[3]);
      if (params.seriesName === "transfers") return transferTip(w, params.value[3]);
      const [from, to, , share, d, starts] = params.value;
      return tip(device(d), `about ${rounded(from)} to ${rounded(to)}`, `busy ${percent(share, false)} of it, ${counted(starts, "vertex starts", "vertices start")}`);
    }),
    xAxis: { type: "value", min: 0, max: span, name: narrow ? "" : inUnit("time"), nameLocation: "end", nameGap: 4, ...axisStyle(), axisLabel: { color: theme.faint, hideOverlap: true, formatter: axisFormat(span), showMaxLabel: false } },
    yAxis: { type: "category", inverse: true, data: rows.map(String), ...axisStyle(), splitLine: { show: false }, axisTick: { show: false }, axisLabel: { color: theme.ink, interval: 0, formatter: (row) => short(device(Number(row)), most) } },
    dataZoom: [
      { type: "inside", xAxisIndex: 0, filterMode: "weakFilter", start: zoomed.start, end: zoomed.end, zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, minSpan: 0.001 },
      { type: "slider", xAxisIndex: 0, filterMode: "weakFilter", start: zoomed.start, end: zoomed.end, height: 18, bottom: 10, borderColor: theme.line, textStyle: { color: theme.faint }, labelFormatter: axisFormat(span), brushSelect: false, minSpan: 0.001, showDataShadow: false },
    ],
    series,
  };
};
const drawGantt = (id, result, rows) => {
  const row = Math.max(12, Math.min(44, 640 / Math.max(1, rows.length)));
  $(id).style.height = `${Math.round(108 + row * Math.max(2, rows.length))}px`;
  const made = chart(id);
  made.setOption(ganttOption(result, rows), { notMerge: true });
  $(id).setAttribute("aria-label", `Gantt chart of ${result.label}: makespan ${shown(result.makespan)}. Plus and minus zoom, arrows move, comma and full stop step through vertices, 0 shows all.`);
  if (!made.wired) {
    made.wired = true;
    made.on("datazoom", () => {
      const { start, end } = made.getOption().dataZoom[0];
      follow(start, end, id);
    });
    made.on("click", (params) => {
      if (params.seriesName === "vertices") select(params.value[3]);
    });
    const box = $(id);
    // The wheel scrolls the page until the chart is in use; then it zooms.
    const wheel = (zooms) => made.setOption({ dataZoom: [{ zoomOnMouseWheel: zooms ? true : "ctrl" }] });
    box.addEventListener("focus", () => wheel(true));
    box.addEventListener("blur", () => wheel(false));
    box.addEventListener("mousedown", () => box.focus({ preventScroll: true }));
    box.addEventListener("keydown", (event) => key(event, id));
  }
};
const zoomTo = (start, end) => {
  const width = Math.min(100, Math.max(0.001, end - start));
  const low = Math.max(0, Math.min(100 - width, start));
  follow(low, low + width, "");
};
const key = (event, id) => {
  const { start, end } = zoomed;
  const width = end - start;
  const middle = (start + end) / 2;
  const moves = {
    "+": () => zoomTo(middle - width / 4, middle + width / 4),
    "=": () => zoomTo(middle - width / 4, middle + width / 4),
    "-": () => zoomTo(middle - width, middle + width),
    ArrowLeft: () => zoomTo(start - width / 4, end - width / 4),
    ArrowRight: () => zoomTo(start + width / 4, end + width / 4),
    Home: () => zoomTo(0, width),
    End: () => zoomTo(100 - width, 100),
    0: () => zoomTo(0, 100),
    ".": () => step(1),
    ",": () => step(-1),
    Escape: () => select(-1),
  };
  const move = event.ctrlKey || event.metaKey || event.altKey ? null : moves[event.key];
  if (!move) return;
  event.preventDefault();
  move();
};
const step = (by) => {
  const w = current()?.schedule?.whole;
  if (!w || !w.start.length) return;
  const order = w.start.map((_, v) => v).sort((a, b) => near(w.start[a]) - near(w.start[b]) || a - b);
  const at = order.indexOf(state.selected);
  const next = at < 0 ? (by > 0 ? 0 : order.length - 1) : Math.max(0, Math.min(order.length - 1, at + by));
  select(order[next], true);
};
const select = (v, show = false) => {
  state.selected = v;
  const w = current()?.schedule?.whole;
  if (show && w && v >= 0) {
    const width = zoomed.end - zoomed.start;
    const [from, to] = [(100 * near(w.start[v])) / span, (100 * near(w.end[v])) / span];
    if (from < zoomed.start || to > zoomed.end) zoomTo((from + to) / 2 - width / 2, (from + to) / 2 + width / 2);
  }
  drawSchedules();
  drawDetails();
};
const drawDetails = () => {
  const box = $("details");
  const w = current()?.schedule?.whole;
  const v = state.selected;
  box.replaceChildren();
  if (!w || v < 0) return;
  const lines = [`Runs on ${device(w.device[v])} from ${exact(w.start[v])} to ${exact(w.end[v])}, for ${exact(minus(w.end[v], w.start[v]))}${instance.given_durations ? "" : `; ${exact(graph.ops[v])} operations`}.`];
  const inputs = [];
  graph.target.forEach((target, e) => target === v && inputs.push(e));
  const arrivals = new Map(w.tensor.map((tensor, c) => [`${tensor} ${w.to[c]}`, c]));
  const lists = inputs.map((e) => {
    const u = graph.source[e];
    const c = arrivals.get(`${graph.tensor[e]} ${w.device[v]}`);
    const where = w.device[u] === w.device[v] ? `same device, ready at ${exact(w.end[u])}` : `from ${device(w.device[u])}, ${exact(w.begin[c])} to ${exact(w.arrival[c])}`;
    return `${tensorName(graph.tensor[e])} (size ${exact(graph.size[graph.tensor[e]])}; ${where})`;
  });
  const most = 12;
  box.append(el("b", {}, graph.vertex[v]), ...lines.map((line) => el("p", {}, line)));
  if (lists.length) box.append(el("p", {}, `Inputs: ${lists.slice(0, most).join("; ")}${lists.length > most ? `; and ${lists.length - most} more` : ""}.`));
  const outs = [...new Set(graph.source.map((u, e) => (u === v ? graph.target[e] : -1)).filter((u) => u >= 0))].map((u) => graph.vertex[u]);
  if (outs.length) box.append(el("p", {}, `Needed by ${outs.slice(0, most).join(", ")}${outs.length > most ? ` and ${outs.length - most} more` : ""}.`));
  if (state.other >= 0) {
    const o = results[state.other].schedule.whole;
    box.append(el("p", {}, `In ${results[state.other].label}: on ${device(o.device[v])} from ${exact(o.start[v])} to ${exact(o.end[v])}.`));
  }
};
const toggle = (label, name, draw) => el("label", {}, el("input", { type: "checkbox", id: `show-${name}`, checked: state[name], on: { change: (event) => { state[name] = event.target.checked; draw(); } } }), label);
const drawTools = () => {
  const box = $("schedule-tools");
  const parts = [];
  if (whole) {
    parts.push(el("label", {}, "Colour by ", el("select", { id: "colour", on: { change: (event) => { state.colour = event.target.value; drawSchedules(); drawGraph(); } } },
      el("option", { value: "device", selected: state.colour === "device" }, "device"), el("option", { value: "kind", selected: state.colour === "kind" }, graph.kinds.labels.some((label) => label.startsWith("depth ")) ? "depth in the graph" : "name scope"))));
    parts.push(toggle("transfers", "transfers", drawSchedules), toggle("critical path", "path", drawSchedules), toggle("idle times", "idle", drawSchedules));
  }
  const spans = data.reasons.filter((reason) => reason.intervals.length);
  if (spans.length) {
    parts.push(el("label", {}, "Intervals of bound ", el("select", { id: "bound", on: { change: (event) => { state.bound = event.target.value; drawSchedules(); } } },
      el("option", { value: "" }, "none"), spans.map(({ name }) => el("option", { value: name, selected: name === state.bound }, name)))));
  }
  const others = withSchedule.filter((i) => i !== state.result);
  if (others.length) {
    parts.push(el("label", {}, "Compare with ", el("select", { id: "other", on: { change: (event) => { state.other = Number(event.target.value); drawSchedules(); drawDetails(); } } },
      el("option", { value: -1 }, "nothing"), others.map((i) => el("option", { value: i, selected: i === state.other }, results[i].label)))));
  }
  if (whole) {
    const names = new Map(graph.vertex.map((name, v) => [name, v]));
    const find = (event) => {
      const text = event.target.value.trim();
      const found = names.get(text) ?? graph.vertex.findIndex((name) => text && name.toLowerCase().includes(text.toLowerCase()));
      if (found >= 0) select(found, true);
    };
    parts.push(el("input", { type: "search", id: "find", placeholder: "find a vertex", "aria-label": "Find a vertex by name", on: { change: find } }));
  }
  parts.push(el("button", { id: "reset", on: { click: () => zoomTo(0, 100) } }, "Show all"));
  box.replaceChildren(...parts);
};
const drawSchedules = () => {
  const result = current();
  $("schedule").hidden = !drawable(result);
  if (!drawable(result)) return;
  const other = state.other >= 0 ? results[state.other] : null;
  const both = other ? [result, other] : [result];
  span = Math.max(...both.map((r) => Math.max(near(r.makespan), r.lower_bound === null ? 0 : near(r.lower_bound)))) * 1.015 || 1;
  const rows = rowsOf(both);
  const idle = instance.devices.filter((_, d) => !rows.includes(d)).map((d) => d.name);
  const unused = idle.length ? ` Not used: ${idle.slice(0, 8).join(", ")}${idle.length > 8 ? ` and ${idle.length - 8} more` : ""}.` : "";
  $("schedule-hint").textContent = whole
    ? `Click into the chart; then the wheel or + and − zoom, dragging or the arrow keys move, full stop and comma step through the vertices.${many ? " Only transfers of the critical path and of the chosen vertex are drawn, unless all are asked for." : ""}${unused}`
    : `${counted(instance.vertices, "vertex", "vertices")} are too many to show one by one: each bar is one of ${result.schedule.intervals.number} equal intervals of time, and its height is the share of it that the device is busy.${unused}`;
  drawGantt("gantt", result, rows);
  $("gantt-b-box").hidden = !other;
  if (other) {
    $("gantt-b-title").textContent = `${other.label}, on the same time axis`;
    if (whole) {
      const [a, b] = [result.schedule.whole, other.schedule.whole];
      const moved = a.device.filter((d, v) => d !== b.device[v]).length;
      $("gantt-b-note").textContent = moved ? `${counted(moved, "vertex runs", "vertices run")} on another device than in ${result.label}.` : `Every vertex runs on the same device as in ${result.label}.`;
    }
    drawGantt("gantt-b", other, rows);
  }
  follow(zoomed.start, zoomed.end, "");
};

// --- memory ----------------------------------------------------------------------------------

const drawMemory = () => {
  const result = current();
  const memory = result?.schedule?.memory;
  $("memory").hidden = !memory || !drawable(result);
  if (!memory || !drawable(result)) return;
  const held = memory.map((_, d) => d).filter((d) => near(memory[d].peak) > 0).slice(0, 32);
  const left = memory.filter((m) => near(m.peak) > 0).length - held.length;
  const least = held.map((d) => [d, instance.devices[d].memory]).filter(([, limit]) => limit !== null).map(([d, limit]) => [d, share(memory[d].peak, limit)]);
  const fullest = least.length ? least.reduce((a, b) => (b[1] > a[1] ? b : a)) : null;
  $("memory-note").textContent = `What each device holds under the memory model “${instance.memory}”; the dashed line is its limit.` +
    (fullest ? ` The fullest is ${device(fullest[0])}, at ${percent(fullest[1])} of its limit.` : " No device has a limit.") +
    (held.some((d) => memory[d].thinned) ? " Each point is the most held in a short interval of time." : "") + (left > 0 ? ` ${left} more devices are left out.` : "");
  const tall = held.length > 8 ? 64 : 96;
  $("memory-chart").style.height = `${tall * held.length + 24}px`;
  const narrow = $("memory-chart").clientWidth < 560;
  const grids = [], xs = [], ys = [], series = [];
  held.forEach((d, i) => {
    const limit = instance.devices[d].memory;
    const top = Math.max(near(memory[d].peak), limit === null || near(limit) > 20 * near(memory[d].peak) ? 0 : near(limit)) * 1.12 || 1;
    grids.push({ left: narrow ? 74 : 132, right: narrow ? 14 : 44, outerBoundsMode: "none", top: 22 + i * tall, height: tall - 30 });
    xs.push({ type: "value", gridIndex: i, min: 0, max: span, ...axisStyle(), axisLabel: { show: i === held.length - 1, color: theme.faint, formatter: axisFormat(span), hideOverlap: true, showMaxLabel: false } });
    ys.push({ type: "value", gridIndex: i, min: 0, max: top, splitNumber: 2, ...axisStyle(), splitLine: { show: false }, axisLabel: { color: theme.faint, formatter: axisFormat(top), showMaxLabel: false } });
    const points = memory[d].points.map(([time, amount]) => [near(time), near(amount)]);
    const end = near(result.makespan);
    if (points.length) points.push([end, points[points.length - 1][1]]);
    const said = limit === null ? "no limit" : near(limit) > top ? `limit ${brief(limit)}, far above` : `limit ${brief(limit)}`;
    series.push({ type: "line", name: device(d), xAxisIndex: i, yAxisIndex: i, step: "end", showSymbol: points.length < 400, symbolSize: 5, data: points, lineStyle: { color: deviceColour(d), width: 1.6 }, itemStyle: { color: deviceColour(d) }, areaStyle: { color: deviceColour(d), opacity: 0.25 }, animation: false,
      markLine: limit === null || near(limit) > top ? undefined : { silent: true, symbol: "none", animation: false, precision: -1, data: [{ yAxis: near(limit) }], lineStyle: { color: theme.bound, type: "dashed", width: 1.5 }, label: { show: false } } });
    series.push({ type: "line", xAxisIndex: i, yAxisIndex: i, data: [], silent: true, markPoint: undefined, name: said });
  });
  const titles = held.map((d, i) => {
    const limit = instance.devices[d].memory;
    return `${short(device(d), 24)}: peak ${brief(memory[d].peak)}${limit === null ? ", no limit" : ` of ${brief(limit)}`}`;
  });
  xs.forEach((x, i) => { ys[i].name = titles[i]; ys[i].nameLocation = "end"; ys[i].nameGap = 4; ys[i].nameTextStyle = { color: theme.ink, align: "left", fontSize: 11 }; });
  const made = chart("memory-chart");
  made.setOption({
    animation: false, grid: grids, xAxis: xs, yAxis: ys, series: series.filter((s) => s.data.length),
    tooltip: { ...tooltip((list) => {
      const at = Array.isArray(list) ? list : [list];
      return at.length ? tip(at[0].seriesName, ...at.map((p) => `from ${rounded(p.value[0])} on: ${rounded(p.value[1])}`)) : "";
    }), trigger: "axis" },
    dataZoom: [{ type: "inside", xAxisIndex: xs.map((_, i) => i), start: zoomed.start, end: zoomed.end, filterMode: "none", zoomOnMouseWheel: "ctrl", minSpan: 0.001 }],
  }, { notMerge: true });
  $("memory-chart").setAttribute("aria-label", `Memory over time. ${titles.join(". ")}.`);
  if (!made.wired) {
    made.wired = true;
    made.on("datazoom", () => { const { start, end } = made.getOption().dataZoom[0]; follow(start, end, "memory-chart"); });
    $("memory-chart").addEventListener("keydown", (event) => key(event, "memory-chart"));
  }
};

// --- critical path and devices ----------------------------------------------------------------

const fromTo = (from, to) => (typeof from === "number" && typeof to === "number" ? ` ${shown(from)}–${shown(to)}` : ` ≈ ${about(from)}–${about(to)}`);
const pathList = (steps, length) => {
  const items = steps.map(([kind, what, where, from, to]) => el("li", { class: kind, title: `${exact(from)} to ${exact(to)}` }, kind === "transfer" ? `⇢ ${what}, ${where}` : `${what}, ${where}`, el("span", { class: "faint" }, fromTo(from, to))));
  if (length > steps.length) items.splice(-1, 0, el("li", {}, `… ${(length - steps.length).toLocaleString("en-US")} more …`));
  return el("ol", { class: "path" }, items);
};
const drawWhy = () => {
  const result = current();
  const path = result?.schedule?.path;
  $("why").hidden = !path || !path.length;
  if (!path || !path.length) return;
  const text = [`The critical path ends last and has no gap: ${counted(path.length, "step")}, of which vertices take ${shown(path.vertex)} and transfers ${shown(path.transfer)}` +
    ` (${percent(share(path.transfer, result.makespan))} of the makespan). To shorten this schedule, one of these steps must become shorter, or run beside another.`];
  if (near(path.start) > 0) text.push(`Its first step starts at ${shown(path.start)} although nothing it needs ends just then: it is held back by the order or the memory, or could start earlier.`);
  const busy = result.schedule.devices.map((row) => plus(row.spent.busy ?? 0, row.spent.send ?? 0));
  const busiest = busy.reduce((best, time, d) => (near(time) > near(busy[best]) ? d : best), 0);
  text.push(`The busiest device is ${device(busiest)}: it works for ${shown(busy[busiest])} (${percent(share(busy[busiest], result.makespan, false), false)} of the makespan), between ${shown(result.schedule.devices[busiest].first)} and ${shown(result.schedule.devices[busiest].last)}. No schedule with this placement is shorter than that work.`);
  $("why-text").replaceChildren(...text.map((line) => el("p", {}, line)), pathList(path.steps, path.length));
};
const SPENT = [["busy", "running vertices"], ["send", "sending"], ["transfer", "waiting for inputs"], ["held", "next vertex held back"], ["end", "nothing left"], ["unused", "not used"]];
const drawDevices = () => {
  const result = current();
  const rows = result?.schedule?.devices;
  const memory = result?.schedule?.memory;
  const fill = { send: theme.accent, transfer: theme.cross, held: theme.path, end: theme.hatch, unused: theme.hatch };
  const head = [["Device", "text"], ["Type", "text"]];
  if (!instance.given_durations) head.push(["Speed", ""]);
  const limited = instance.devices.some((d) => d.memory !== null);
  if (limited && !memory) head.push(["Memory", ""]);
  if (rows) head.push(["Vertices", ""], ["Time", "text"], [inUnit("Busy"), ""], [inUnit("Waiting"), ""], [inUnit("Last end"), ""]);
  if (memory) head.push(["Peak memory", ""], ["Limit", ""]);
  const used = new Set();
  const line = (d) => {
    const at = instance.devices[d];
    const cells = [el("td", { class: "text" }, el("span", { class: "key", style: { background: deviceColour(d) } }), at.name), el("td", { class: "text" }, at.type ?? "–")];
    if (!instance.given_durations) cells.push(el("td", {}, figure(at.speed)));
    if (limited && !memory) cells.push(el("td", {}, at.memory === null ? "no limit" : figure(at.memory)));
    if (rows) {
      const { spent, vertices, last } = rows[d];
      const bar = el("div", { class: "bar" });
      for (const [name, word] of SPENT) {
        if (spent[name] === undefined || !near(spent[name])) continue;
        used.add(name);
        bar.append(el("i", { title: `${word}: ${shown(spent[name])}`, style: { width: `${100 * share(spent[name], result.makespan)}%`, background: name === "busy" ? deviceColour(d) : fill[name] } }));
      }
      const waiting = plus(spent.transfer ?? 0, spent.held ?? 0);
      cells.push(el("td", {}, vertices.toLocaleString("en-US")), el("td", {}, bar), el("td", {}, cell(spent.busy ?? 0), ` (${percent(share(spent.busy ?? 0, result.makespan, false), false)})`), el("td", {}, cell(waiting)), el("td", {}, cell(last)));
    }
    if (memory) cells.push(el("td", {}, cell(memory[d].peak)), el("td", {}, at.memory === null ? "no limit" : cell(at.memory)));
    return el("tr", {}, cells);
  };
  const most = 200;
  const body = el("tbody", {}, instance.devices.slice(0, most).map((_, d) => line(d)));
  $("devices-table").replaceChildren(el("thead", {}, el("tr", {}, head.map(([name, kind]) => el("th", { class: kind || null }, name)))), body);
  $("devices").querySelector(".keys")?.remove();
  if (rows) {
    $("devices").append(el("p", { class: "keys" }, SPENT.filter(([name]) => used.has(name)).map(([name, word]) => el("span", {}, el("span", { class: "key", style: { background: name === "busy" ? `linear-gradient(90deg, ${BASE[0]} 50%, ${BASE[1]} 50%)` : fill[name] } }), word))));
  }
};

// --- progress --------------------------------------------------------------------------------

const drawProgress = () => {
  const result = current();
  const trace = result?.trace ?? [];
  $("progress").hidden = trace.length === 0;
  if (!trace.length) return;
  const what = result.objective === "lexicographic" ? "makespan" : result.objective;
  const end = Math.max(result.seconds, trace[trace.length - 1][0]);
  const line = (column) => {
    const points = trace.filter((step) => step[column] !== null).map((step) => [step[0], near(step[column]), shown(step[column], column === 1)]);
    if (points.length) points.push([end, points[points.length - 1][1], points[points.length - 1][2]]);
    return points;
  };
  const series = [["best schedule", line(1), theme.accent, "circle", "solid"], [result.source ? "claimed bound" : "proven bound", line(2), theme.bound, "diamond", "dashed"]].filter(([, points]) => points.length).map(([name, points, colour, symbol, type]) => ({
    type: "line", name, step: "end", data: points, symbol, symbolSize: 7, showSymbol: points.length < 200, animation: false, lineStyle: { color: colour, width: 2, type }, itemStyle: { color: colour } }));
  const first = Math.min(...trace.map((step) => step[0]).filter((x) => x > 0), end || 1);
  const highest = Math.max(...trace.flatMap((step) => [step[1], step[2]]).filter((value) => value !== null).map(near), 0);
  const log = end / (first || 1) > 100;
  $("progress-chart").style.height = "300px";
  const made = chart("progress-chart");
  made.setOption({
    animation: false, textStyle: { color: theme.ink }, grid: { left: 74, right: 24, top: 40, bottom: 48 },
    legend: { top: 6, right: 12, textStyle: { color: theme.ink }, data: series.map((s) => s.name) },
    tooltip: tooltip((p) => tip(p.seriesName, `${p.value[2]} after ${seconds(p.value[0])}`)),
    xAxis: { type: log ? "log" : "value", name: "seconds", nameLocation: "middle", nameGap: 28, ...(log ? { min: first / 1.3 } : { min: 0 }), max: end || 1, ...axisStyle(), axisLabel: { color: theme.faint, formatter: rounded, hideOverlap: true, showMaxLabel: false } },
    yAxis: { type: "value", name: what === "traffic" ? what : inUnit(what), scale: true, ...axisStyle(), axisLabel: { color: theme.faint, formatter: axisFormat(highest) } },
    series,
  }, { notMerge: true });
  const last = trace[trace.length - 1];
  $("progress-note").textContent = `${counted(trace.length, "step")} in ${seconds(result.seconds)}${log ? "; time is on a logarithmic axis" : ""}.` + (last[2] === null ? " No bound was proven in the course of the run." : "") + (result.source ? ` The course is as ${result.source} tells it.` : "");
  $("progress-chart").setAttribute("aria-label", `${what} of the best schedule and the bound over the seconds of the run. ${$("progress-note").textContent}`);
};

// --- bounds ----------------------------------------------------------------------------------

const WHY = {
  "critical-path": "the longest chain, with every vertex where the chain is shortest",
  load: "all vertices together, spread over the devices as well as possible",
  "one-machine": "the longest chain, where vertices that must share a device run there one at a time",
  energy: "the work that falls into an interval of time wherever it is placed, against the time there is",
  crossings: "one (fractional) placement for chains, loads and memory together, in which leaving a device costs time",
  series: "the graph as a series of parts: what it costs to pass from device to device, with a price for memory",
  destructive: "shorter lengths are assumed and refuted, one device of a vertex after the other",
  branching: "shorter lengths are refuted on every device of the vertices in doubt",
};
const SOLVERS = { cpsat: "CP-SAT", milp: "the MILP solver", minizinc: "MiniZinc", enumerate: "enumeration of all schedules" };
/** What proved a bound, in words. */
const proved = (by) => {
  const solver = Object.keys(SOLVERS).find((name) => by === name || by.startsWith(`${name}-`) || by.startsWith(`${name}+`));
  if (solver) return `${SOLVERS[solver]} proved it in its search`;
  return WHY[by] ? `the bound ${by} proved it (${WHY[by]})` : `${by} proved it`;
};
const several = (list, count, word = (one) => one[0]) => list.map(word).join(", ") + (count > list.length ? ` and ${(count - list.length).toLocaleString("en-US")} more` : "");
/** One interval of the bound one-machine in words. */
const queued = (reason, one) => {
  const where = device(one.device);
  const names = several(one.vertices, one.count);
  const after = minus(reason.value, one.end);
  const must = one.count === 1 ? `${names} has to run` : `${counted(one.count, "vertex", "vertices")} (${names}) have to run one at a time`;
  if (one.side === "together") {
    return `These vertices share a device: ${names}. Even on ${where}, where it takes least, they run one at a time: not before ${shown(one.start, false)}, for ${shown(one.work, false)}, and at least ${shown(one.rest, false)} is left after the last of them.`;
  }
  const before = one.side === "before";
  const start = before ? one.start : after;
  const bound = (time) => (before ? `${one.of} starts no earlier than ${shown(time, false)}` : `at least ${shown(time, false)} follows after ${one.of}`);
  const there = `not ${before ? "before" : "later than"} ${shown(before ? one.start : one.end, !before)}${before ? "" : " in a schedule as short as the bound"}, for ${shown(one.work, false)}${near(one.rest) ? `, and at least ${shown(one.rest, false)} ${before ? "before" : "after"} ${one.of}` : ""}`;
  const total = plus(plus(start, one.work), one.rest);
  if (one.elsewhere === null) return `If ${one.of} is on ${where}, ${must} there ${one.side} it: ${there}. So ${bound(total)}.`;
  const all = one.count === 1 ? `${names} runs` : `${counted(one.count, "vertex", "vertices")} (${names}) all run`;
  return `If ${one.of} is on ${where}, there are two cases. Either ${all} there ${one.side} it${one.count === 1 ? "" : ", one at a time"}: ${there}; then ${bound(total)}. Or ${one.count === 1 ? "it" : "one of them"} runs elsewhere; then ${bound(one.elsewhere)}.`;
};
/** What a bound is made of, as elements. */
const explained = (reason) => {
  const parts = [];
  if (reason.devices.length) {
    const equal = reason.devices.every(([, weight]) => same(weight, 1));
    parts.push(el("p", {}, `The bound load counts ${equal ? "alike " : ""}the work of ${reason.devices.map(([name, weight]) => (equal ? name : `${name} (${percent(near(weight))})`)).join(", ")}${reason.memory.length ? `, and the memory of ${reason.memory.join(", ")}` : ""}: wherever the vertices are placed, the ${equal ? "" : "weighted "}average of these loads, each with the least time before and after it, is at least ${shown(reason.value, false)}.`));
  }
  if (reason.path.length) {
    const chain = reason.name === "critical-path" || !reason.intervals.length;
    parts.push(el("p", {}, `The path of the bound ${reason.name}: wherever ${reason.vertex} runs, ${chain ? "the chain through it" : "the chain through it, and what queues for the devices of its ends,"} takes at least ${shown(reason.value, false)}. It is shortest with these devices:`));
    const items = reason.path.map(([name, where]) => el("li", {}, `${name}, ${where}`));
    if (reason.length > reason.path.length) items.push(el("li", {}, `… ${(reason.length - reason.path.length).toLocaleString("en-US")} more`));
    parts.push(el("ol", { class: "path" }, items));
  }
  if (reason.name === "one-machine") parts.push(...reason.intervals.map((one) => el("p", { class: "interval" }, queued(reason, one))));
  if (reason.name === "energy" && reason.refuted !== null) {
    const most = `The bound energy: no schedule takes ${shown(reason.refuted, false)} or less.`;
    const weighted = reason.intervals.some((one) => !same(one.weight, 1)) || reason.memory.length ? " (both weighted as in the table)" : "";
    parts.push(el("p", { class: "interval" }, !reason.intervals.length
      ? `${most} Heads and tails would leave the vertices so few devices that the memory of ${reason.memory.join(", ")} would not hold them.`
      : `${most} Heads and tails would leave the vertices so little time that, wherever they are placed, at least ${shown(reason.required, false)} of work${reason.memory.length ? " and memory" : ""} falls into the intervals below, which have room for ${shown(reason.room)}${weighted}.${reason.memory.length ? ` The memory of ${reason.memory.join(", ")} counts, too.` : ""}`));
    if (!reason.intervals.length) return parts;
    const rows = reason.intervals.map((one) => el("tr", {}, el("td", { class: "text" }, device(one.device)), el("td", {}, figure(one.start)), el("td", {}, figure(one.end)), el("td", {}, figure(minus(one.end, one.start))), el("td", {}, percent(near(one.weight))),
      el("td", { class: "text wrap" }, several(one.vertices, one.count, ([name, time]) => `${name} ${brief(time)}`))));
    if (reason.more) rows.push(el("tr", {}, el("td", { class: "text", colspan: 6 }, `… ${counted(reason.more, "more interval")}`)));
    parts.push(el("div", { class: "scroll" }, el("table", { class: "intervals" }, el("thead", {}, el("tr", {}, el("th", { class: "text" }, "Device"), el("th", {}, "From"), el("th", {}, "To"), el("th", {}, "Room"), el("th", {}, "Weight"), el("th", { class: "text" }, "Work in it, of what is on the device"))), el("tbody", {}, rows))));
  }
  return parts;
};
const tightReason = (bound) => (bound === null ? null : data.reasons.find((reason) => same(reason.value, bound)) ?? null);
/** How the bound of the run and those explained here relate. */
const related = (result, bound) => {
  const by = result.bound_by || result.method;
  const best = largestReason;
  const makespan = result.makespan;
  if (bound === null && result.claimed) return `The largest bound computed for this report is ${shown(best.value, false)}, by ${best.name}.`;
  if (bound === null) return `The run proved no bound of the makespan. The largest explained here is ${shown(best.value, false)}, by ${best.name}.`;
  const tight = tightReason(bound);
  if (tight && same(best.value, bound) && !result.given) return `It is the bound ${tight.name}, which needs no search: ${WHY[tight.name]}.`;
  if (near(best.value) > near(bound)) {
    const closed = makespan !== null && same(best.value, makespan) ? " That is the makespan of this schedule: none is shorter, although the run did not prove it." : "";
    return `The bound ${best.name} below proves more than the run: ${shown(best.value, false)}.${closed}`;
  }
  const reach = near(bound) ? `; the largest of them, ${best.name}, is ${shown(best.value, false)}, ${percent(share(best.value, bound, false), false)} of it` : "";
  return `None of the bounds below, which need no search, reaches it${reach}. ${proved(by)[0].toUpperCase()}${proved(by).slice(1)}.`;
};
const drawBounds = () => {
  const box = $("bounds-text");
  const result = results.length ? current() : null;
  const parts = [];
  const bound = result?.lower_bound ?? null;
  const makespanAsked = !result || ["makespan", "lexicographic"].includes(result.objective);
  if (result && !makespanAsked) {
    const own = main(result)[1];
    const how = { traffic: "the total size that crosses between devices", bottleneck: "the work of the busiest device, link or port, which limits how often a pipeline can run the graph" }[result.objective];
    parts.push(el("p", { id: "own-bound" }, `This run minimised the ${OBJECTIVE[result.objective]}: ${how}. ${own === null ? (result.claimed ? "" : "It proved no bound of it.") : `The bound that counts for it is ${shown(own, false)}: ${proved(result.bound_by || result.method)}${result.given ? `, given ${result.given}` : ""}.`} The bounds below are of the makespan, and say nothing about the ${OBJECTIVE[result.objective]}.`));
  } else if (result?.objective === "lexicographic" && result.traffic_bound !== null) {
    parts.push(el("p", { id: "own-bound" }, `Among the schedules of least makespan, the traffic is at least ${shown(result.traffic_bound, false)}: ${proved(result.bound_by || result.method)}. The bounds below are of the makespan.`));
  }
  if (result?.claimed) parts.push(el("p", { id: "claimed" }, `Not proven here: ${result.claimed.text}.`));
  if (result && bound !== null) {
    parts.push(el("p", {}, `The proven lower bound of the makespan is ${shown(bound, false)}${result.bound_by ? `, by ${result.bound_by}` : ""}${result.given ? `, given ${result.given}` : ""}.`));
  }
  if (data.reasons.length && !(result?.status === "INFEASIBLE" && !result.given)) {
    if (result && result.status !== "INFEASIBLE" && (makespanAsked || bound !== null)) parts.push(el("p", { id: "tight" }, related(result, bound)));
    const rows = data.reasons.map((reason) => el("tr", { class: bound !== null && same(reason.value, bound) ? "chosen" : null }, el("td", { class: "text" }, reason.name), el("td", {}, figure(reason.value, false)),
      el("td", {}, result?.makespan ? percent(share(reason.value, result.makespan, false), false) : "–"),
      el("td", { class: "text wrap" }, WHY[reason.name] ?? "", reason.name === "load" && same(reason.value, data.reasons[0].value) ? "; no larger than the bound above" : "", reason.exact ? "" : " (times rounded down)")));
    parts.push(el("div", { class: "scroll" }, el("table", { id: "bounds-table" }, el("thead", {}, el("tr", {}, el("th", { class: "text" }, "Bound"), el("th", {}, inUnit("Value")), el("th", {}, "Of the makespan"), el("th", { class: "text" }, "What it counts"))), el("tbody", {}, rows))));
    const [first, second] = data.reasons;
    for (const reason of data.reasons) {
      if (reason !== second || near(second.value) > near(first.value)) parts.push(...explained(reason));
    }
  }
  const certificate = data.certificate;
  let said = "No certificate was given. ‘optpart certify’ writes a proof of an optimum that others can check without trusting a solver.";
  if (certificate?.kind === "checked") said = `Certificate checked when this report was written: ${certificate.text}.`;
  if (certificate?.kind === "library") said = `The instance library holds a certificate that the optimum is ${shown(instance.known.makespan)}; ‘optpart check’ verifies it, and so does a report with --certificate.`;
  if (!certificate && result && result.status !== "OPTIMAL" && !result.claimed) said = "No certificate was given; only an optimum can be certified.";
  if (instance.known?.makespan) parts.push(el("p", {}, `The instance library knows a schedule of ${shown(instance.known.makespan)} and claims a bound of ${shown(instance.known.bound, reaches(instance.known.bound, instance.known.makespan))}.`));
  parts.push(el("p", { id: "certificate" }, said));
  if (result?.has_schedule) parts.push(el("p", { class: "faint" }, "The verifier checked every schedule in this report against the instance, in exact arithmetic, when the report was written."));
  box.replaceChildren(...parts);
};

// --- graph -----------------------------------------------------------------------------------

const MOST_NODES = 1200;
const groups = graph.names.length;
const children = Array.from({ length: groups }, () => []);
graph.parent.forEach((p, g) => p >= 0 && children[p].push(g));
const members = Array.from({ length: groups }, () => []);
if (whole) graph.of.forEach((g, v) => g >= 0 && members[g].push(v));
const position = () => {
  // The place of each vertex in a topological order.
  const n = instance.vertices;
  const degree = new Array(n).fill(0);
  const next = Array.from({ length: n }, () => []);
  graph.source.forEach((u, e) => { next[u].push(graph.target[e]); degree[graph.target[e]] += 1; });
  const order = [];
  for (let v = 0; v < n; v++) if (!degree[v]) order.push(v);
  for (let i = 0; i < order.length; i++) for (const v of next[order[i]]) if (!--degree[v]) order.push(v);
  const place = new Array(n);
  order.forEach((v, i) => { place[v] = i; });
  return place;
};
const places = whole ? position() : null;
const size = new Array(groups).fill(0);
const mean = new Array(groups).fill(0);
for (let g = groups - 1; g >= 0; g--) {
  if (whole) { size[g] += members[g].length; for (const v of members[g]) mean[g] += places[v]; }
  else { size[g] += graph.count[g]; mean[g] += g * graph.count[g]; }
  const p = graph.parent[g];
  if (p >= 0) { size[p] += size[g]; mean[p] += mean[g]; }
}
/** The node that stands for a group or a vertex: the outermost group around it that is closed. */
const standing = (g) => {
  const chain = [];
  for (let at = g; at >= 0; at = graph.parent[at]) chain.push(at);
  for (const at of chain.reverse()) if (!state.open.has(at)) return at;
  return -1;
};
const nodeOfGroup = () => Array.from({ length: groups }, (_, g) => standing(g));
const visibleNodes = () => {
  const stand = nodeOfGroup();
  if (!whole) {
    const of = (g) => `g${stand[g] < 0 ? g : stand[g]}`;
    return { of, keys: [...new Set(graph.count.map((count, g) => (count ? of(g) : null)).filter(Boolean))] };
  }
  const of = (v) => { const g = graph.of[v]; const at = g < 0 ? -1 : stand[g]; return at < 0 ? `v${v}` : `g${at}`; };
  const keys = [...new Set(graph.vertex.map((_, v) => of(v)))];
  return { of, keys };
};
const layered = (keys, links, rank, width, height) => {
  const order = keys.map((_, i) => i).sort((a, b) => rank[a] - rank[b]);
  const layer = new Array(keys.length).fill(0);
  const before = Array.from(keys, () => []), after = Array.from(keys, () => []);
  for (const [a, b] of links) { const [u, v] = rank[a] <= rank[b] ? [a, b] : [b, a]; before[v].push(u); after[u].push(v); }
  for (const v of order) for (const u of before[v]) layer[v] = Math.max(layer[v], layer[u] + 1);
  // Sources move next to what they feed, so that no edge is longer than it must be.
  for (const v of [...order].reverse()) if (!before[v].length && after[v].length) layer[v] = Math.min(...after[v].map((u) => layer[u])) - 1;
  const layers = [];
  for (const v of order) (layers[layer[v]] ??= []).push(v);
  const y = new Array(keys.length).fill(0);
  const spread = (row) => row.forEach((v, i) => { y[v] = (i + 0.5) / row.length; });
  layers.forEach(spread);
  for (let sweep = 0; sweep < 6; sweep++) {
    const [list, around] = sweep % 2 ? [[...layers].reverse(), after] : [layers, before];
    for (const row of list) {
      if (!row) continue;
      const centre = new Map(row.map((v) => [v, around[v].length ? around[v].reduce((sum, u) => sum + y[u], 0) / around[v].length : y[v]]));
      row.sort((a, b) => centre.get(a) - centre.get(b));
      spread(row);
    }
  }
  const count = Math.max(1, layers.length);
  const most = Math.max(...layers.map((row) => row?.length ?? 0), 1);
  if (width < height && most < 12) return keys.map((_, v) => [y[v] * width, ((layer[v] + 0.5) / count) * height]);
  // A long and narrow graph goes to and fro in several rows.
  const rows = Math.max(1, Math.min(Math.ceil((count * 64) / width), Math.floor(height / (most * 34)), 12));
  const each = Math.ceil(count / rows);
  return keys.map((_, v) => {
    const row = Math.floor(layer[v] / each);
    const at = each > 1 ? (layer[v] % each) / (each - 1) : 0.5;
    return [(row % 2 ? 1 - at : at) * width, ((row + y[v]) / rows) * height];
  });
};
const drawGraph = () => {
  if (!instance.vertices) { $("graph").hidden = true; return; }
  const result = results.length ? current() : null;
  const w = result?.schedule?.whole ?? null;
  const placed = whole ? w : result?.schedule ? graph.shares[state.result] : null;
  const { of, keys } = visibleNodes();
  const index = new Map(keys.map((name, i) => [name, i]));
  const nodes = keys.map((name) => ({ name, isGroup: name[0] === "g", id: Number(name.slice(1)), count: 0, shares: new Map(), kinds: new Map(), rank: 0 }));
  const add = (map, at, more) => map.set(at, (map.get(at) ?? 0) + more);
  if (whole) {
    graph.vertex.forEach((_, v) => {
      const node = nodes[index.get(of(v))];
      node.count += 1;
      node.rank += places[v];
      if (w) add(node.shares, w.device[v], 1);
      add(node.kinds, graph.kind[v], 1);
    });
  } else {
    graph.count.forEach((count, g) => {
      if (!count) return;
      const node = nodes[index.get(of(g))];
      node.count += count;
      node.rank += g * count;
      placed?.[g].forEach((number, d) => number && add(node.shares, d, number));
    });
  }
  const links = new Map();
  const link = (a, b) => {
    const pair = `${a} ${b}`;
    if (!links.has(pair)) links.set(pair, { a, b, edges: 0, crossings: new Map(), number: 0, size: 0 });
    return links.get(pair);
  };
  let crossing = 0, inner = 0;
  const everyCrossing = new Set();
  if (whole) {
    graph.source.forEach((u, e) => {
      const v = graph.target[e];
      const [a, b] = [index.get(of(u)), index.get(of(v))];
      const crosses = w && w.device[u] !== w.device[v];
      if (crosses) everyCrossing.add(`${graph.tensor[e]} ${w.device[v]}`);
      if (a === b) { if (crosses) inner += 1; return; }
      const found = link(a, b);
      found.edges += 1;
      if (crosses) found.crossings.set(`${graph.tensor[e]} ${w.device[v]}`, graph.tensor[e]);
    });
    for (const found of links.values()) {
      found.number = found.crossings.size;
      let total = 0;
      for (const tensor of found.crossings.values()) total = plus(total, graph.size[tensor]);
      found.size = total;
    }
    crossing = everyCrossing.size;
  } else {
    const column = Object.keys(graph.shares).indexOf(String(state.result));
    for (const [s, t, number, ...each] of graph.edges) {
      const [a, b] = [index.get(of(s)), index.get(of(t))];
      if (a === b) continue;
      const found = link(a, b);
      found.edges += number;
      if (column >= 0) { found.number += each[column][0]; found.size = plus(found.size, each[column][1]); }
    }
  }
  const list = [...links.values()];
  const box = $("graph-chart");
  const width = box.clientWidth || 800;
  const tall = Math.max(340, Math.min(720, 140 + 9 * keys.length));
  box.style.height = `${tall}px`;
  const margin = width < 560 ? 40 : 90;
  const xy = layered(keys, list.map((l) => [l.a, l.b]), nodes.map((node) => node.rank / node.count), width - 2 * margin, tall - 40).map(([x, y]) => [x + margin, y + 10]);
  // Two corners that nobody sees: with them, the picture is drawn at its own size, undistorted.
  const corners = [[0, 0], [width, tall]].map(([x, y], i) => ({ name: `corner ${i}`, number: -1, x, y, symbolSize: 0, label: { show: false }, tooltip: { show: false } }));
  const few = keys.length <= 60;
  const largest = (map) => { let best = null; for (const [at, number] of map) if (best === null || number > map.get(best)) best = at; return best; };
  const colourOf = (node) => {
    if (state.colour === "kind" && whole) return graph.kinds.colours[largest(node.kinds)];
    const d = largest(node.shares);
    return d === null ? (whole ? graph.kinds.colours[largest(node.kinds)] : BASE[0]) : deviceColour(d);
  };
  const sharesText = (node) => [...node.shares].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([d, number]) => `${device(d)}: ${number.toLocaleString("en-US")}`).join(", ");
  const widest = Math.max(...list.map((l) => near(l.size)), 1e-300);
  const label = (node) => (node.isGroup ? `${short(graph.names[node.id].slice(graph.names[node.id].lastIndexOf("/") + 1), 24)} (${node.count.toLocaleString("en-US")})` : short(graph.vertex[node.id], 22));
  const made = chart("graph-chart");
  const expandable = (node) => node.isGroup && (children[node.id].length || (whole && members[node.id].length));
  made.setOption({
    animation: false,
    tooltip: tooltip((params) => {
      if (params.dataType === "edge") {
        const l = list[params.data.number];
        const ends = `${label(nodes[l.a])} → ${label(nodes[l.b])}`;
        return tip(ends, counted(l.edges, "edge"), result?.schedule ? (l.number ? `${counted(l.number, "transfer")} between devices, size ${shown(l.size)}` : "nothing crosses between devices") : "");
      }
      const node = nodes[params.data.number];
      if (!node) return "";
      if (!node.isGroup) return w ? vertexTip(w, node.id) : tip(graph.vertex[node.id], instance.given_durations ? "" : `${shown(graph.ops[node.id])} operations`);
      return tip(graph.names[node.id], counted(node.count, "vertex", "vertices"), sharesText(node), expandable(node) ? "click to open" : "");
    }),
    series: [{
      type: "graph", layout: "none", roam: document.activeElement === box ? true : "move", scaleLimit: { min: 0.5, max: 40 }, left: 0, right: 0, top: 0, bottom: 0, animation: false,
      data: corners.concat(nodes.map((node, i) => {
        const colour = colourOf(node);
        const mixedHere = node.isGroup && node.shares.size > 1;
        const chosen = !node.isGroup && node.id === state.selected;
        return { name: node.name, number: i, x: xy[i][0], y: xy[i][1], symbol: node.isGroup ? "roundRect" : "circle", symbolSize: node.isGroup ? Math.min(30, 12 + 2 * Math.sqrt(Math.min(node.count, 100))) : few ? 22 : Math.max(7, 16 - keys.length / 120),
          itemStyle: { color: colour, borderColor: chosen ? theme.ink : mixedHere ? theme.cross : theme.page, borderWidth: chosen ? 3 : mixedHere ? 2 : 1, borderType: mixedHere ? "dashed" : "solid" },
          label: { show: true, formatter: () => label(node), position: "bottom", distance: 3, color: theme.ink, fontSize: 11 } };
      })),
      labelLayout: (params) => ({ hideOverlap: params.dataType !== "edge" }),
      links: list.map((l, i) => ({ source: nodes[l.a].name, target: nodes[l.b].name, number: i,
        lineStyle: l.number ? { color: theme.cross, width: 1.2 + 3 * Math.sqrt(near(l.size) / widest || 0), opacity: 0.85, curveness: 0.06 } : { color: theme.faint, width: 1, opacity: 0.6, curveness: 0.06 },
        label: { show: few && list.length <= 60 && l.number > 0, formatter: brief(l.size), color: theme.cross, fontSize: 10 } })),
      edgeSymbol: ["none", list.length <= 400 ? "arrow" : "none"], edgeSymbolSize: 7,
      emphasis: { focus: few ? "adjacency" : "none", lineStyle: { width: 3 } },
    }],
  }, { notMerge: true });
  if (!made.wired) {
    made.wired = true;
    made.on("click", (params) => {
      if (params.dataType !== "node" || params.data.number < 0) return;
      const id = Number(params.data.name.slice(1));
      if (params.data.name[0] === "v") select(id, true);
      else open(id);
    });
    const wheel = (zooms) => made.setOption({ series: [{ roam: zooms ? true : "move" }] });
    box.addEventListener("focus", () => wheel(true));
    box.addEventListener("blur", () => wheel(false));
    box.addEventListener("mousedown", () => box.focus({ preventScroll: true }));
    box.addEventListener("keydown", (event) => {
      const by = { "+": 1.4, "=": 1.4, "-": 1 / 1.4 }[event.key];
      const move = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
      if (event.key === "0") drawGraph();
      else if (by) made.dispatchAction({ type: "graphRoam", seriesIndex: 0, zoom: by, originX: box.clientWidth / 2, originY: box.clientHeight / 2 });
      else if (move) made.dispatchAction({ type: "graphRoam", seriesIndex: 0, dx: move[0], dy: move[1] });
      else return;
      event.preventDefault();
    });
  }
  box.dataset.nodes = keys.length;
  box.setAttribute("aria-label", `Graph with ${counted(keys.length, "node")} and ${counted(list.length, "link")}. Plus and minus zoom, arrows move.`);
  const said = [];
  if (graph.by) said.push(`${counted(instance.vertices, "vertex", "vertices")} in groups by ${graph.by === "scope" ? "name scope" : graph.by === "part" ? "part of the graph" : "position in a topological order"}; click a group to open it.`);
  if (!whole) said.push("The innermost groups stand for many vertices each, which are not in this page.");
  if (result?.schedule) said.push(`Colours are devices${nodes.some((node) => node.isGroup && node.shares.size > 1) ? " (of a group with a dashed border, the most frequent)" : ""}; orange lines cross between devices${few && list.length <= 60 ? ", with the size that crosses" : ", wider for larger sizes"}.${whole ? ` In all, ${counted(crossing, "transfer")} of size ${shown(result.traffic)}.` : ""}`);
  else said.push(whole ? `Colours are ${graph.kinds.labels.some((l) => l.startsWith("depth ")) ? "depths" : "name scopes"}.` : "");
  said.push("Drag to move; click into it, then the wheel or + and − zoom.");
  $("graph-note").textContent = said.join(" ");
  drawGraphTools(nodes, expandable);
};
const open = (g) => {
  const more = children[g].length + (whole ? members[g].length : 0);
  if (!more) return;
  if (Number($("graph-chart").dataset.nodes) + more > MOST_NODES) {
    $("graph-note").textContent = `Opening ${graph.names[g]} would show more than ${MOST_NODES} nodes; close another group first.`;
    return;
  }
  state.open.add(g);
  drawGraph();
};
const drawGraphTools = (nodes, expandable) => {
  const box = $("graph-tools");
  const parts = [];
  if (graph.by) {
    const closed = nodes.filter((node) => expandable(node)).slice(0, 500);
    parts.push(el("label", {}, "Open ", el("select", { id: "open-group", on: { change: (event) => event.target.value && open(Number(event.target.value)) } },
      el("option", { value: "" }, "a group"), closed.map((node) => el("option", { value: node.id }, short(graph.names[node.id], 60))))));
    for (const g of [...state.open].slice(-6)) {
      parts.push(el("button", { on: { click: () => { state.open.delete(g); drawGraph(); } }, "aria-label": `Close ${graph.names[g]}` }, `${short(graph.names[g], 24)} ×`));
    }
    if (state.open.size) parts.push(el("button", { id: "close-all", on: { click: () => { state.open.clear(); drawGraph(); } } }, "Close all"));
  }
  parts.push(el("button", { on: { click: drawGraph } }, "Show all"));
  box.replaceChildren(...parts);
};

// --- the schedule as a table -----------------------------------------------------------------

const MOST_ROWS = 5000;
const fillTable = () => {
  const w = current()?.schedule?.whole;
  $("table").hidden = !w;
  if (!w || !$("table-box").open) return;
  const order = w.start.map((_, v) => v).sort((a, b) => near(w.start[a]) - near(w.start[b]) || w.device[a] - w.device[b] || a - b);
  const rows = order.slice(0, MOST_ROWS).map((v) => el("tr", { "data-vertex": v }, el("td", { class: "text" }, graph.vertex[v]), el("td", { class: "text" }, device(w.device[v])), el("td", {}, exact(w.start[v])), el("td", {}, exact(w.end[v]))));
  $("table-note").textContent = order.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${order.length} vertices, in the order of their starts.` : "In the order of their starts; times are exact.";
  $("table-rows").replaceChildren(el("thead", {}, el("tr", {}, el("th", { class: "text" }, "Vertex"), el("th", { class: "text" }, "Device"), el("th", {}, inUnit("Start")), el("th", {}, inUnit("End")))), el("tbody", {}, rows));
};
$("table-box").addEventListener("toggle", fillTable);

// --- all together ----------------------------------------------------------------------------

const draw = () => {
  readTheme();
  drawHeader();
  drawSummary();
  drawComparison();
  drawTools();
  drawSchedules();
  drawDetails();
  drawMemory();
  drawWhy();
  drawDevices();
  drawProgress();
  drawBounds();
  drawGraph();
  fillTable();
};
const choose = (i) => {
  state.result = i;
  if (state.other === i) state.other = -1;
  draw();
};
{
  const bound = results.length ? current().lower_bound : null;
  const tight = tightReason(bound);
  if (tight?.intervals.length) state.bound = tight.name;
}
if (reports && !picked) {
  drawOverview();
  document.body.dataset.ready = "yes";
  return;
}
draw();
document.body.dataset.ready = "yes";

let waiting = 0;
let wide = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === wide) return;
  wide = window.innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(draw, 120);
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
window.addEventListener("beforeprint", () => {
  document.documentElement.classList.add("printing");
  draw();
  for (const [id, made] of charts) {
    if ($(id).closest("[hidden]")) continue;
    const picture = el("img", { class: "print", alt: $(id).getAttribute("aria-label") ?? "", src: made.getDataURL({ pixelRatio: 2, backgroundColor: "#ffffff" }) });
    $(id).append(picture);
  }
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  document.querySelectorAll("img.print").forEach((picture) => picture.remove());
  draw();
});
})();
