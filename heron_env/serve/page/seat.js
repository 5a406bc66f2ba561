"use strict";
// The page of a seat: shows the open question, and sends the answer. What others wrote is only ever text.

const base = location.pathname.replace(/\/+$/, "");
const SVG = "http://www.w3.org/2000/svg";
const [INNER, OUTER, SIZE] = [130, 225, 26];
const narrow = matchMedia("(max-width: 600px)"); // a narrow window shows an upright picture
const at = (id) => document.getElementById(id);
const colourClass = (scene, code) => (code < scene.colours.length ? `c${code % 8}` : "unknown");
let shown = { version: -1, number: 0 };
let draft = {}; // by place in the action
let ends = null; // when the open question does, by performance.now()
let busy = false;

function made(name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

// Asking and answering

async function listen() {
  for (;;) {
    try {
      const answer = await fetch(`${base}/asked?after=${shown.version}&wait=20`);
      if (answer.status === 200) show(await answer.json());
      else if (answer.status !== 204) throw new Error(String(answer.status));
      if (shown.over) return;
    } catch (error) {
      say("The connection is lost; trying again ...");
      at("done").disabled = true;
      shown.version = -1;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

async function send(event) {
  event.preventDefault();
  if (busy || !shown.request) return;
  busy = at("done").disabled = true;
  const body = { number: shown.number, action: action(), letters: letters() };
  let words = "";
  try {
    const answer = await fetch(`${base}/answer`, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) words = (await answer.json()).error.message;
    else {
      at("text").value = "";
      keep(body.number);
    }
  } catch (error) {
    words = "It could not be sent; the connection is lost. Try again.";
  }
  at("fault").textContent = words;
  busy = false;
  at("done").disabled = !words;
}

// What was chosen and written outlives a reload of the page, until the turn is done.
const stored = () => JSON.parse(sessionStorage.getItem(base) ?? "{}");

function keep(sent = stored().sent ?? 0) {
  const told = { number: shown.number, draft, satisfied: at("satisfied").checked, text: at("text").value, sent };
  sessionStorage.setItem(base, JSON.stringify(told));
}

function restore() {
  const before = stored();
  const same = before.number === shown.number;
  draft = same ? before.draft : {};
  at("satisfied").checked = before.satisfied ?? false;
  if (same && !at("text").value) at("text").value = before.text ?? "";
  const missed = shown.number > 1 && (before.sent ?? 0) < shown.number - 1;
  at("fault").textContent = missed ? "The last question was not answered here: its time was up, or another page did." : "";
}

function action() {
  const { scene, request } = shown;
  const space = request.decision.action_space;
  if (scene.kind === "graph") {
    const chosen = [space.n].flat().map((_, place) => draft[place] ?? scene.keep);
    chosen[scene.voice] = at("satisfied").checked ? 1 : 0;
    return chosen;
  }
  const values = [...at("fields").querySelectorAll("input, select")].map((field) => Number(field.value));
  const numbers = values.slice(0, space.low.length);
  const choices = values.slice(space.low.length);
  return { box: numbers, discrete: choices[0], multi_discrete: choices, mixed: { c: numbers, d: choices.length > 1 ? choices : choices[0] } }[space.type];
}

function letters() {
  const text = at("text").value.trim();
  if (!text) return [];
  const all = [...at("receiver").options].map((option) => option.value).filter(Boolean);
  const receivers = at("receiver").value ? [at("receiver").value] : all;
  return receivers.map((receiver) => ({ receiver, kind: "text", body: { text } }));
}

// Showing

function say(words) { at("status").textContent = words; }

function show(given) {
  const fresh = given.request && given.number !== shown.number;
  shown = given;
  at("title").textContent = document.title = `Seat of ${given.agent}`;
  at("done").disabled = !given.request;
  if (given.over) say(`The end: ${given.over}.`);
  else if (!given.request) say("Waiting for the others ...");
  else {
    const { step, time_s, observation } = given.request.decision;
    const now = given.scene.time === undefined ? time_s : observation.vector[given.scene.time];
    say(`Your turn (step ${step}, ${Number(now.toFixed(1))} s)`);
  }
  ends = typeof given.seconds_left === "number" ? performance.now() + 1000 * given.seconds_left : null;
  tick();
  if (!given.request) return;
  if (fresh) restore();
  given.scene.kind === "graph" ? graph() : table(fresh);
  if (fresh) correspondence();
}

function tick() {
  const left = ends === null ? null : Math.max(0, Math.round((ends - performance.now()) / 1000));
  at("left").textContent = left === null ? "" : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`;
}

function vector() { return shown.request.decision.observation.vector; }

function code(node) { return draft[node.acts] ?? Math.round(vector()[node.seen]); }

function places(scene) {
  const own = scene.nodes.filter((node) => node.owner === scene.title);
  const angle = {};
  own.forEach((node, i) => { angle[node.name] = (2 * Math.PI * i) / own.length - Math.PI / 2; });
  const foreign = scene.nodes.filter((node) => node.owner !== scene.title).map((node) => {
    const near = scene.edges.filter(([, other]) => other === node.name).map(([mine]) => angle[mine]);
    const wanted = Math.atan2(near.reduce((sum, a) => sum + Math.sin(a), 0), near.reduce((sum, a) => sum + Math.cos(a), 0));
    return { node, wanted };
  }).sort((a, b) => a.wanted - b.wanted);
  const gap = Math.min(narrow.matches ? 0.85 : 0.55, (2 * Math.PI) / Math.max(foreign.length, 1)); // neighbours on the outer ring do not overlap
  for (let round = 0; round < 60; round++) {
    foreign.forEach((one, i) => {
      const next = foreign[(i + 1) % foreign.length];
      const between = (next.wanted - one.wanted + (i + 1 < foreign.length ? 0 : 2 * Math.PI));
      if (foreign.length > 1 && between < gap) { one.wanted -= (gap - between) / 2; next.wanted += (gap - between) / 2; }
    });
  }
  foreign.forEach(({ node, wanted }) => { angle[node.name] = wanted; });
  return Object.fromEntries(scene.nodes.map((node) => {
    const radius = node.owner === scene.title ? INNER : OUTER;
    const wide = narrow.matches ? 0.8 : 1.25;
    return [node.name, [radius * wide * Math.cos(angle[node.name]), radius * Math.sin(angle[node.name])]];
  }));
}

function graph() {
  const { scene } = shown;
  const place = places(scene);
  const byName = Object.fromEntries(scene.nodes.map((node) => [node.name, node]));
  const focused = document.activeElement?.dataset?.node;
  const parts = [];
  const torn = [];
  at("graph").setAttribute("viewBox", narrow.matches ? "-240 -285 480 605" : "-370 -280 740 560");
  for (const [u, v] of scene.edges) {
    const same = code(byName[u]) === code(byName[v]) && code(byName[u]) < scene.colours.length;
    if (same) torn.push(`${u} and ${v}`);
    const [[x1, y1], [x2, y2]] = [place[u], place[v]];
    parts.push(made("line", { x1, y1, x2, y2, class: same ? "torn" : "" }));
  }
  for (const node of scene.nodes) parts.push(drawn(node, place[node.name]));
  at("graph").replaceChildren(...parts);
  if (focused) at("graph").querySelector(`[data-node="${CSS.escape(focused)}"]`)?.focus();
  for (const id of ["graph", "hint", "key", "voice"]) at(id).removeAttribute("hidden"); // an SVG has no .hidden
  at("conflicts").textContent = torn.length ? `Same colour, as far as you know: ${torn.join(", ")}` : "No conflicts at your nodes, as far as you know";
  at("conflicts").className = torn.length ? "torn" : "";
  key(scene);
}

function drawn(node, [x, y]) {
  const { scene } = shown;
  const [now, own] = [code(node), node.owner === scene.title];
  const colour = scene.colours[now] ?? "not told yet";
  const free = node.acts !== null;
  const changed = draft[node.acts] !== undefined;
  const seconds = node.told_at === undefined ? 0 : vector()[node.told_at];
  const ago = Math.max(0, Math.round(vector()[scene.time] - seconds));
  const notes = own ? (free ? [] : ["fixed"]) : [node.owner, now < scene.colours.length ? `${ago} s ago` : "not told yet"];
  const group = made("g", { class: `${own ? "own" : "foreign"} ${free ? "free" : ""} ${changed ? "changed" : ""}`, "data-node": node.name, "data-colour": colour });
  group.setAttribute("aria-label", `${node.name}, ${colour}${changed ? ", changed" : ""}${notes.map((note) => `, ${note}`).join("")}`);
  const shape = own
    ? made("circle", { cx: x, cy: y, r: SIZE })
    : made("rect", { x: x - SIZE * .85, y: y - SIZE * .85, width: SIZE * 1.7, height: SIZE * 1.7, rx: 6 });
  shape.setAttribute("class", `shape ${colourClass(scene, now)}`);
  const letter = now < scene.colours.length ? scene.colours[now][0].toUpperCase() : "?";
  const middle = made("text", { x, y, class: now < scene.colours.length ? "letter" : "" }, letter);
  const outward = own ? [x * (narrow.matches ? 0.42 : 0.6), y * 0.6 - 8 * notes.length] : [x, y - SIZE - 12];
  group.append(shape, middle, made("text", { x: outward[0], y: outward[1] }, node.name));
  const lines = narrow.matches ? notes : notes.length ? [notes.join(", ")] : [];
  lines.forEach((line, i) => {
    const [left, top] = own ? [outward[0], outward[1] + 17] : [x, y + SIZE + 12];
    group.append(made("text", { x: left, y: top + 18 * i, class: "note" }, line));
  });
  if (!free) return group;
  group.setAttribute("role", "button");
  group.setAttribute("tabindex", "0");
  group.addEventListener("click", () => paint(node, (code(node) + 1) % scene.colours.length));
  group.addEventListener("keydown", (event) => {
    const found = scene.colours.findIndex((name, i) => event.key === String(i + 1) || event.key.toLowerCase() === name[0].toLowerCase());
    if (event.key === "Enter" || event.key === " ") paint(node, (code(node) + 1) % scene.colours.length);
    else if (found >= 0 && !event.ctrlKey && !event.metaKey) paint(node, found);
    else return;
    event.preventDefault();
  });
  return group;
}

function paint(node, chosen) {
  if (!shown.request) return;
  if (chosen === Math.round(vector()[node.seen])) delete draft[node.acts];
  else draft[node.acts] = chosen;
  keep();
  graph();
}

function key(scene) {
  const entries = scene.colours.map((name, i) => [`c${i % 8}`, name[0].toUpperCase(), name]);
  at("key").replaceChildren(...entries.map(([kind, letter, name]) => {
    const item = document.createElement("li");
    const svg = made("svg", { viewBox: "0 0 40 40", "aria-hidden": "true" });
    svg.append(made("circle", { cx: 20, cy: 20, r: 18, class: kind }), made("text", { x: 20, y: 21, class: "letter" }, letter));
    item.append(svg, ` ${name}`);
    return item;
  }));
}

function table(fresh) {
  const { observation, action_space: space, action_mask: mask } = shown.request.decision;
  const row = (name, value) => {
    const line = document.createElement("tr");
    for (const words of [name, value]) line.append(Object.assign(document.createElement("td"), { textContent: words }));
    return line;
  };
  const unit = (i) => (observation.units[i] ? ` ${observation.units[i]}` : "");
  at("numbers").tBodies[0].replaceChildren(...observation.vector.map((value, i) => row(observation.names[i] || `number ${i}`, `${Number(value.toPrecision(6))}${unit(i)}`)));
  at("numbers").hidden = false;
  if (!fresh) return;
  const noop = [].concat(space.noop?.c ?? [], space.type === "mixed" ? space.noop.d : space.noop);
  const numbers = space.low.map((low, i) => Object.assign(document.createElement("input"), { type: "number", min: low, max: space.high[i], step: "any", value: noop[i] ?? 0 }));
  const several = Array.isArray(space.n);
  const choices = [space.n].flat().map((n, i) => {
    const field = document.createElement("select");
    for (let c = 0; c < n; c++) field.add(Object.assign(new Option(String(c), c), { disabled: mask ? !(several ? mask[i] : mask)[c] : false }));
    field.value = String(noop[space.low.length + i] ?? 0);
    return field;
  });
  at("fields").replaceChildren(...[...numbers, ...choices].map((field, i) => {
    const label = document.createElement("label");
    label.append(`action ${i + 1}${field.min ? ` (${field.min} to ${field.max})` : ""} `, field);
    return label;
  }));
}

function words(content) {
  try {
    const body = JSON.parse(content);
    return typeof body === "object" && body !== null && typeof body.text === "string" ? body.text : content;
  } catch { return content; }
}

function correspondence() {
  const { topology_edge_context: { can_message: all }, conversation_context: { last_k_turns: turns } } = shown.request;
  at("writing").hidden = !all.length;
  const before = at("receiver").value;
  at("receiver").replaceChildren(...(all.length > 1 ? [new Option("all of them", "")] : []), ...all.map((name) => new Option(name, name)));
  if (all.includes(before)) at("receiver").value = before;
  at("letters").replaceChildren(...turns.map((turn) => {
    const item = document.createElement("li");
    const seconds = Math.round(Date.parse(turn.timestamp) / 1000);
    for (const [kind, text] of [["from", turn.sender], ["when", ` ${seconds} s: `], ["words", words(turn.content)]]) {
      item.append(Object.assign(document.createElement("span"), { className: kind, textContent: text }));
    }
    return item;
  }));
  at("none").hidden = turns.length > 0;
}

at("turn").addEventListener("submit", send);
at("turn").addEventListener("input", () => keep());
narrow.addEventListener("change", () => { if (shown.scene?.kind === "graph") graph(); });
setInterval(tick, 1000);
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("turn").requestSubmit();
});
listen();
