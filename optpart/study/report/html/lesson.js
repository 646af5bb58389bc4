"use strict";
// The page of `optpart lesson`. Names from files reach the document as text only, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const rules = rulesOf(data);
const n = data.vertices.length;
const $ = (id) => document.getElementById(id);

// --- numbers and words -------------------------------------------------------------------------

/** Six digits of a quotient, rounded up, or down for bounds. */
const quotient = (top, bottom, up = true) => {
  [top, bottom] = [BigInt(top), BigInt(bottom)];
  const whole = top / bottom;
  const places = BigInt(Math.max(0, whole ? 6 - String(whole).length : 5 + String(bottom).length - String(top).length));
  const shifted = top * 10n ** places;
  const rest = shifted % bottom !== 0n;
  const digits = String(shifted / bottom + (up && rest ? 1n : 0n)).padStart(Number(places) + 1, "0");
  const point = digits.length - Number(places);
  const decimals = digits.slice(point).replace(/0+$/, "");
  return `${BigInt(digits.slice(0, point)).toLocaleString("en-US")}${decimals ? `.${decimals}` : ""}`;
};
/** Ticks as time. */
const bare = (ticks, up = true) => quotient(BigInt(ticks) * BigInt(data.tick[0]), data.tick[1], up);
const time = (ticks, up = true) => `${bare(ticks, up)} ${data.unit}`.trim();
/** Hundredths of a percent, rounded up. */
const percent = (part, whole) => `${quotient((BigInt(part) * 10000n + BigInt(whole) - 1n) / BigInt(whole), 100n)}%`;
const memory = (amount) => quotient(amount, data.memory);
const counted = (number, noun, plural = `${noun}s`) => `${number} ${number === 1 ? noun : plural}`;
const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words.join(""));
const short = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
const vertex = (v) => short(data.vertices[v], 40);
const device = (d) => short(data.devices[d], 40);

// --- elements ----------------------------------------------------------------------------------

const filled = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
const el = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const colour = (d) => data.colours[d];
/** Black or white, whichever is easier to read on a colour. */
const textOn = (background) => {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(background.slice(i, i + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b < 100 ? "#ffffff" : "#111111";
};

// --- state: a placement, the schedule that is shown if it is not that of list scheduling, and the chosen vertex -----

let place = new Array(n).fill(null);
let shown = null;
let chosen = data.order[0];
const chips = [];
const buttons = [];

const fromHash = () => {
  const text = /^#p=([0-9-]*)$/.exec(location.hash)?.[1];
  if (text?.length !== n) return;
  const read = [...text].map((c) => (c === "-" ? null : Number(c)));
  if (read.some((d) => d >= data.devices.length)) return;
  place = read;
  shown = null;
  draw();
};
const put = (v, d) => {
  if (d !== null && d >= data.devices.length) return;
  place = place.map((old, w) => (w === v ? d : old));
  shown = null;
  if (d !== null) choose(data.order.find((w) => place[w] === null) ?? v);
  draw();
};
const choose = (v, focus = false) => {
  chosen = v;
  if (focus) chips[v].focus();
};
const show = (name) => {
  place = [...data[name].placement];
  shown = name;
  draw();
};

// --- the graph ---------------------------------------------------------------------------------

/** Rows of vertices by depth, each sorted by the places of its predecessors. */
const rowsOf = () => {
  const depth = new Array(n).fill(0);
  for (const v of data.order) for (const [u] of rules.into[v]) depth[v] = Math.max(depth[v], depth[u] + 1);
  const rows = Array.from({ length: Math.max(...depth) + 1 }, () => []);
  data.order.forEach((v) => rows[depth[v]].push(v));
  const at = new Array(n).fill(0);
  for (const row of rows) {
    const mean = new Map(row.map((v) => [v, rules.into[v].reduce((sum, [u]) => sum + at[u], 0) / Math.max(1, rules.into[v].length)]));
    row.sort((a, b) => mean.get(a) - mean.get(b));
    row.forEach((v, i) => { at[v] = (i + 0.5) / row.length; });
  }
  return rows;
};
const buildGraph = () => {
  for (const row of rowsOf()) {
    $("graph").append(el("div", { class: "row" }, ...row.map((v) => {
      const chip = el("button", { class: "vertex", draggable: "true", title: data.vertices[v] }, el("span", {}, data.vertices[v]), el("span", { class: "where" }));
      chip.addEventListener("click", () => { choose(v); draw(); });
      chip.addEventListener("focus", () => { choose(v); draw(); });
      chip.addEventListener("dragstart", (event) => { choose(v); event.dataTransfer.setData("text/plain", String(v)); });
      chips[v] = chip;
      return chip;
    })));
  }
  const sequence = rowsOf().flat();
  $("graph").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) choose(sequence[(sequence.indexOf(chosen) + step + n) % n], true);
    else if (/^[1-9]$/.test(event.key)) { put(chosen, Number(event.key) - 1); chips[chosen].focus(); }
    else if (event.key === "Delete" || event.key === "Backspace") put(chosen, null);
    else return;
    event.preventDefault();
  });
};
const drawEdges = (made) => {
  $("graph").querySelector("svg")?.remove();
  const box = $("graph").getBoundingClientRect();
  const picture = svg("svg", { "aria-hidden": "true" });
  const critical = new Set(made.path.flatMap((step, i) => {
    const before = made.path[i - 1];
    if (step.v === undefined) return [`${step.u} ${step.for}`];
    return before?.v !== undefined && step.behind < 0 ? [`${before.v} ${step.v}`] : [];
  }));
  const pairs = new Map(data.edges.map(([u, v, tensor]) => [`${u} ${v}`, [u, v, tensor]]));
  const costs = [];
  for (const [key, [u, v, tensor]] of pairs) {
    const [a, b] = [chips[u].getBoundingClientRect(), chips[v].getBoundingClientRect()];
    const [x1, y1, x2, y2] = [a.left + a.width / 2 - box.left, a.bottom - box.top, b.left + b.width / 2 - box.left, b.top - box.top];
    const crosses = place[u] !== null && place[v] !== null && place[u] !== place[v];
    const bend = Math.max(14, (y2 - y1) / 2);
    picture.append(svg("path", { class: `edge${crosses ? " crosses" : ""}${critical.has(key) ? " critical" : ""}`, d: `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}` }));
    const cost = crosses ? data.crossing[tensor][place[u]][place[v]] : null;
    if (cost && pairs.size <= 24) costs.push(svg("text", { class: "cost", x: x1 * 0.3 + x2 * 0.7, y: y1 * 0.3 + y2 * 0.7 + 4, "text-anchor": "middle" }, bare(cost)));
  }
  picture.append(...costs);
  $("graph").prepend(picture);
};
const drawGraph = (made) => {
  const critical = new Set(made.path.map((step) => step.v));
  chips.forEach((chip, v) => {
    const d = place[v];
    chip.className = `vertex${d === null ? "" : " placed"}${critical.has(v) ? " critical" : ""}${d !== null && made.start[v] === null ? " wrong" : ""}`;
    chip.style.background = d === null ? "" : colour(d);
    chip.style.color = d === null ? "" : textOn(colour(d));
    chip.setAttribute("aria-pressed", v === chosen);
    chip.lastChild.textContent = d === null ? "–" : device(d);
    chip.setAttribute("aria-label", `${vertex(v)}, ${d === null ? "not placed" : `on ${device(d)}`}`);
    chip.tabIndex = v === chosen ? 0 : -1;
  });
  drawEdges(made);
  const inputs = rules.into[chosen].map(([u]) => vertex(u));
  const parts = [
    data.capacity.some((most) => most !== null) ? `memory ${memory(data.need[chosen])}` : "",
    inputs.length ? `needs ${listed([...new Set(inputs)])}` : "needs nothing",
    ...data.groups.filter((group) => group.includes(chosen)).map((group) => `shares a device with ${listed(group.filter((v) => v !== chosen).map(vertex))}`),
    ...data.apart.filter((pair) => pair.includes(chosen)).map(([u, v]) => `must not share a device with ${vertex(u === chosen ? v : u)}`),
  ].filter(Boolean);
  $("details").replaceChildren(el("b", {}, vertex(chosen)), `: ${parts.join("; ")}`);
};

// --- the devices -------------------------------------------------------------------------------

const buildDevices = () => {
  $("devices").append(el("p", {}));
  data.devices.forEach((name, d) => {
    const button = el("button", { class: "device", title: name, style: `background:${colour(d)};color:${textOn(colour(d))}` }, `${d + 1} ${short(name, 24)}`, el("small"));
    button.addEventListener("click", () => put(chosen, d));
    button.addEventListener("dragover", (event) => { event.preventDefault(); button.classList.add("over"); });
    button.addEventListener("dragleave", () => button.classList.remove("over"));
    button.addEventListener("drop", (event) => {
      event.preventDefault();
      button.classList.remove("over");
      const v = Number(event.dataTransfer.getData("text/plain"));
      if (Number.isInteger(v) && v >= 0 && v < n) put(v, d);
    });
    buttons.push(button);
    $("devices").append(button);
  });
};
const drawDevices = (made, violations) => {
  $("devices").firstChild.replaceChildren(el("b", {}, bare(made.makespan)), ` · optimum ${time(data.optimum.makespan)} · ${violations.length ? `${counted(violations.length, "rule")} violated · ` : ""}place `, el("b", {}, vertex(chosen)), " on:");
  buttons.forEach((button, d) => {
    const run = data.run[chosen][d];
    button.lastChild.textContent = run === null ? "not allowed" : `takes ${bare(run)}`;
    button.setAttribute("aria-pressed", place[chosen] === d);
  });
};

// --- the schedule ------------------------------------------------------------------------------

/** A step of 1, 2 or 5 times a power of ten of the unit, of which at most so many fit. */
const tickStep = (span, most) => {
  const least = span / most;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((f) => f * power).find((step) => step >= least * 0.999999);
};
const written = (value) => (value < 1e5 ? String(Number(value.toPrecision(6))) : value.toLocaleString("en-US", { notation: "compact" }));
const drawGantt = (made) => {
  const width = Math.max(260, $("gantt").clientWidth);
  const left = Math.min(90, 18 + 6.5 * Math.max(...data.devices.map((name) => Math.min(name.length, 12))));
  const [row, bar] = [46, 26];
  const span = Math.max(made.makespan, data.optimum.makespan, 1);
  const x = (ticks) => left + ((width - left - 14) * ticks) / span;
  const y = (d) => 22 + row * d;
  const bottom = y(data.devices.length);
  const picture = svg("svg", { width, height: bottom + 20, viewBox: `0 0 ${width} ${bottom + 20}` });
  const unit = data.tick[1] / data.tick[0]; // ticks per unit of time, near enough for an axis
  const step = tickStep(span / unit, width < 500 ? 4 : 8);
  for (let i = 0; i * step * unit <= span; i += 1) {
    const at = x(i * step * unit);
    picture.append(svg("line", { class: "axis", x1: at, x2: at, y1: 18, y2: bottom }), svg("text", { x: at, y: bottom + 14, "text-anchor": "middle" }, written(i * step)));
  }
  const critical = new Set(made.path.filter((s) => s.v !== undefined).map((s) => s.v));
  const moved = new Set(made.path.filter((s) => s.v === undefined).map((s) => `${s.tensor} ${place[s.for]}`));
  data.devices.forEach((name, d) => picture.append(svg("text", { x: 4, y: y(d) + bar / 2 + 4 }, short(name, 12), svg("title", {}, name))));
  for (const { u, tensor, device: d, from, to } of made.transfers) {
    const down = place[u] < d;
    const key = moved.has(`${tensor} ${d}`) ? " critical" : "";
    picture.append(svg("path", { class: `transfer${key}`, d: `M${x(from)} ${y(place[u]) + (down ? bar : 0)} L${x(to)} ${y(d) + (down ? 0 : bar)}` }, svg("title", {}, `${data.vertices[u]} → ${data.devices[d]}: ${bare(from)} to ${bare(to)}`)));
  }
  made.start.forEach((at, v) => {
    if (at === null) return;
    const d = place[v];
    const wide = Math.max(1, x(made.end[v]) - x(at));
    const box = svg("rect", { class: critical.has(v) ? "critical" : "", x: x(at) + 0.5, y: y(d), width: Math.max(1, wide - 1), height: bar, rx: 3, fill: colour(d) }, svg("title", {}, `${data.vertices[v]} on ${data.devices[d]}: ${bare(at)} to ${bare(made.end[v])}`));
    box.addEventListener("click", () => { choose(v, true); draw(); });
    picture.append(box);
    const room = Math.floor((wide - 6) / 7);
    if (room >= 2 || data.vertices[v].length <= room) picture.append(svg("text", { x: x(at) + wide / 2, y: y(d) + bar / 2 + 4, "text-anchor": "middle", style: `fill:${textOn(colour(d))};pointer-events:none` }, short(data.vertices[v], room)));
    if (critical.has(v) && at > made.ready[v]) picture.append(svg("rect", { class: "wait", x: x(made.ready[v]), y: y(d) + bar + 3, width: x(at) - x(made.ready[v]), height: 4 }, svg("title", {}, `${data.vertices[v]} waits`)));
  });
  const best = x(data.optimum.makespan);
  picture.append(svg("line", { class: "optimum", x1: best, x2: best, y1: 14, y2: bottom }), svg("text", { x: best, y: 11, "text-anchor": best > width - 60 ? "end" : "middle" }, `optimum ${bare(data.optimum.makespan)}`));
  $("gantt").replaceChildren(picture);
  $("gantt").setAttribute("aria-label", `Schedule of length ${time(made.makespan)} on ${counted(data.devices.length, "device")}.`);
};

// --- what it is worth, and why -----------------------------------------------------------------

const wording = (found) => ({
  device: () => `${vertex(found.v)} may not run on ${device(found.d)}, only on ${listed(data.devices.filter((_, d) => data.run[found.v][d] !== null)) || "no device"}${data.kinds[found.v] ? ` (it needs a device of type ${data.kinds[found.v]})` : ""}.`,
  together: () => `${listed(found.group.map(vertex))} must share a device, but are on ${listed(found.devices.map(device))}.`,
  apart: () => `${vertex(found.u)} and ${vertex(found.v)} must not share a device, but both are on ${device(found.d)}.`,
  link: () => `Nothing can be sent from ${device(place[found.u])} to ${device(place[found.v])}, but ${vertex(found.v)} needs ${vertex(found.u)}.`,
  memory: () => `${device(found.d)} has memory for ${memory(found.most)}, but its vertices need ${memory(found.need)}.`,
})[found.rule]();
const longer = (made) => {
  const best = data.optimum.makespan;
  return `${time(made.makespan - best)} more than the optimum ${time(best)}${best ? ` (${percent(made.makespan - best, best)})` : ""}`;
};
const drawVerdict = (made, violations) => {
  const missing = place.filter((d) => d === null).length;
  const optimal = !missing && !violations.length && made.makespan === data.optimum.makespan;
  $("verdict").className = `verdict ${violations.length ? "violated" : optimal ? "optimal" : missing ? "" : "valid"}`;
  const what = violations.length ? `Not valid: ${counted(violations.length, "rule")} violated.`
    : missing ? `${n - missing} of ${counted(n, "vertex", "vertices")} placed; so far ${time(made.makespan)}. The optimum of all is ${time(data.optimum.makespan)}.`
    : optimal ? `Makespan ${time(made.makespan)}: optimal. No schedule is shorter.`
    : `Makespan ${time(made.makespan)}: ${longer(made)}.`;
  const notes = [];
  if (shown) {
    const again = rules.schedule(place).makespan;
    notes.push(`${shown === "heft" ? "This is HEFT's own schedule" : `This is the schedule that ${data.optimum.method} proved optimal`}. ${again === made.makespan ? "Longest path first takes as long" : `In the order of longest path first, the same placement takes ${time(again)}`}.`);
  } else if (!missing && !optimal && place.every((d, v) => d === data.optimum.placement[v])) {
    notes.push("This is the placement of the optimum: only the order on the devices differs.");
  }
  $("verdict").replaceChildren(what, ...notes.map((note) => el("p", {}, note)));
  $("rules").replaceChildren(...violations.map((found) => el("li", {}, wording(found))));
};
const drawWhy = (made, complete) => {
  const total = (steps) => steps.reduce((sum, step) => sum + step.to - step.from, 0);
  const [runs, moves] = [made.path.filter((s) => s.v !== undefined), made.path.filter((s) => s.v === undefined)];
  const waits = runs.filter((step) => step.behind >= 0 && step.waited > 0);
  const said = [];
  if (runs.length) {
    said.push(`The critical path, marked in pink, is ${time(total(runs))} in ${counted(runs.length, "vertex", "vertices")}${moves.length ? ` and ${time(total(moves))} in ${counted(moves.length, "transfer")}` : ", without a transfer"}.${waits.length ? ` ${counted(waits.length, "vertex", "vertices")} on it had to wait for a busy device.` : " No vertex on it waits for a busy device."}`);
    const heaviest = made.load.indexOf(Math.max(...made.load));
    const [load, longest] = [made.load[heaviest], made.longest];
    const best = data.optimum.makespan;
    const reasons = [[longest, `its longest path, transfers included, takes ${time(longest, longest === made.makespan)}`], [load, `the vertices on ${device(heaviest)} take ${time(load, load === made.makespan)}`]].sort((a, b) => b[0] - a[0]);
    if (complete && made.makespan > best) {
      if (reasons[0][0] > best) said.push(`No order makes this placement optimal: ${listed(reasons.filter(([at]) => at > best).map(([, text]) => text))}. Move a vertex.`);
      else said.push(`The placement alone does not rule the optimum out (${reasons[0][1]}); the order and what waits for it cost the rest.`);
    } else said.push(`In any order of this placement, ${reasons[0][1]}.`);
  } else said.push("Nothing runs yet.");
  $("why").replaceChildren(...said.map((text) => el("p", {}, text)));
  $("path").replaceChildren(...made.path.map((step) => {
    const times = `${bare(step.from)}–${bare(step.to)}`;
    if (step.v === undefined) return el("li", { class: "transfer" }, `transfer ${vertex(step.u)} → ${device(place[step.for])}: ${times}`);
    return el("li", { class: "vertex-step" }, `${vertex(step.v)} on ${device(place[step.v])}: ${times}${step.behind >= 0 && step.waited > 0 ? ` (ready at ${bare(step.from - step.waited)}, waits for ${vertex(step.behind)})` : ""}`);
  }));
};
const drawBounds = (made) => {
  const load = Math.max(...made.load);
  const line = (name, text, note, binds) => el("tr", binds ? { class: "binds" } : {}, el("td", { class: "text" }, name), el("td", {}, text), el("td", { class: "text" }, note));
  $("bounds").replaceChildren(
    ...data.bounds.map((bound) => line(bound.name, `≥ ${bound.text} ${data.unit}`.trim(), "of every placement", bound.binds)),
    line("optimum", time(data.optimum.makespan), `proven by ${data.optimum.method}`),
    line("longest path", `≥ ${time(made.longest, made.longest === made.makespan)}`, "of yours, transfers included", made.longest >= load),
    line("largest load", `≥ ${time(load, load === made.makespan)}`, "of yours, without idle times", load >= made.longest),
  );
  $("binding").textContent = data.binding;
};

// --- all together ------------------------------------------------------------------------------

const hash = () => `#p=${place.map((d) => d ?? "-").join("")}`;
const draw = () => {
  const made = rules.schedule(place, shown && data[shown].start);
  const violations = rules.violations(place);
  drawGraph(made);
  drawDevices(made, violations);
  drawVerdict(made, violations);
  drawGantt(made);
  drawWhy(made, place.every((d) => d !== null) && !violations.length);
  drawBounds(made);
  try {
    if (location.hash !== hash()) history.replaceState(null, "", hash());
  } catch { /* Some browsers limit how often the address may change. */ }
  $("shared").hidden = true;
};
$("title").textContent = `Place ${short(data.name, 80)} by hand`;
$("facts").textContent = `${counted(n, "vertex", "vertices")}, ${counted(data.devices.length, "device")}. A vertex waits for what it needs from another device; transfers do not wait for each other.`;
$("footer").textContent = `optpart ${data.optpart}. A free device runs the vertex with the longest remaining path, as optpart simulate does with the scheduler pct. Times are computed exactly; lengths are shown rounded up, lower bounds down.`;
$("keys").textContent = "Pink: the critical path; a pink line below a vertex: it waits for its device. Dashed: transfers.";
$("heft").disabled = data.heft === null;
$("heft").title = data.heft === null ? "HEFT finds no valid schedule here." : "";
$("heft").addEventListener("click", () => show("heft"));
$("optimum").addEventListener("click", () => show("optimum"));
$("reset").addEventListener("click", () => { place.fill(null); shown = null; chosen = data.order[0]; draw(); });
$("share").addEventListener("click", () => {
  $("shared").hidden = false;
  $("link").value = location.href.replace(/#.*|$/, hash());
  $("link").select();
  navigator.clipboard?.writeText($("link").value).catch(() => {}); // not everywhere allowed: the field holds it, too
});
buildGraph();
buildDevices();
fromHash(); // first, since drawing writes the address
draw();
window.addEventListener("hashchange", fromHash);
window.addEventListener("resize", draw);
document.body.dataset.ready = "yes";
