"use strict";
// The page of one robot at a time; of the others it shows whether they are held, and can stop them.
let link = null, live = null, state = {}, extent = null, mapImage = null, path = [], hasReference = false, judged = {}, campaign = null;
let known = new Set(), lastPose = null, toldAt = 0, pending = null, wasLost = false;
const links = [], OLD_MS = 1500, UNDO_MS = 10000;
// What the page shows is as old as the last message, whatever that message said.
const sinceTold = () => toldAt ? performance.now() - toldAt : Infinity;
const isOld = () => sinceTold() > OLD_MS;

// --- robots --------------------------------------------------------------------------------------------------------------

function changed(one) {
  showRobots();
  if (one === link) { showStop(); showWho(); }
}

function showRobots() {
  $("robots").hidden = links.length < 2;
  if (links.length < 2) return;
  if (!$("robots").children.length) {
    for (const one of links) {
      const button = document.createElement("button");
      button.append(Object.assign(document.createElement("span"), { textContent: one.name }), document.createElement("small"));
      button.onclick = () => choose(one);
      $("robots").append(button);
    }
    const all = Object.assign(document.createElement("button"), { id: "stop-all", textContent: "STOP ALL" });
    all.addEventListener("pointerdown", (event) => { event.preventDefault(); letGo(); for (const one of links) one.stop(myName()); });
    $("robots").append(all);
  }
  links.forEach((one, i) => {
    const button = $("robots").children[i], word = one.eStop === null ? "silent" : one.eStop ? "stopped" : one.speed && one.speed.some(Boolean) ? "moves" : "rests";
    button.className = word; button.lastChild.textContent = one.mine ? `${word}, yours` : word;
    button.setAttribute("aria-pressed", one === link);
  });
}

function choose(one) {
  if (one === link) return;
  letGo();
  link = one;
  state = {}; extent = mapImage = campaign = lastPose = null; toldAt = 0; path = []; hasReference = false; judged = {}; known = new Set();
  for (const id of ["depth", "map", "judge", "campaign", "overlay"]) $(id).hidden = true;
  for (const id of ["color-img", "depth-img", "final"]) $(id).removeAttribute("src");
  if (live) { live.onclose = null; live.close(); }
  openLive(); changed(one);
}

setInterval(() => { for (const one of links) one.sendBeat(); showLights(); showBanner(); showUndo(); }, BEAT_MS);

// --- stop ----------------------------------------------------------------------------------------------------------------

const myName = () => $("name").value.trim();

function pressStop(event) {
  if (event) event.preventDefault();
  letGo();
  link.stop(myName());
}
$("stop").addEventListener("pointerdown", pressStop);
$("stop").addEventListener("keydown", (event) => { if (!event.repeat && (event.key === " " || event.key === "Enter")) { event.stopPropagation(); pressStop(event); } });

function showStop() {
  const button = $("stop");
  button.className = link.eStop === null ? "unknown" : link.eStop ? "held" : "";
  button.textContent = link.eStop ? "STOPPED" : "STOP";
  $("release").hidden = !link.eStop;
}

function leave(why) {
  letGo(); sendPending();
  for (const one of links) one.leave(why);
}
document.addEventListener("visibilitychange", () => { if (document.hidden) leave("hidden"); });
addEventListener("pagehide", () => leave("closed"));
document.addEventListener("freeze", () => leave("frozen"));

// --- driving: hold to run ------------------------------------------------------------------------------------------------

const KEYS = { w: "move_forward", arrowup: "move_forward", s: "move_backward", arrowdown: "move_backward", a: "turn_left", arrowleft: "turn_left", j: "turn_left", d: "turn_right", arrowright: "turn_right", l: "turn_right", z: "look_up", i: "look_up", c: "look_down", k: "look_down", f: "stop", g: "grab_release" };
const STICKS = { move_forward: [1, 0], move_backward: [-1, 0], turn_left: [0, 1], turn_right: [0, -1] };
let held = [];  // actions, the newest last
const driving = () => link.mine && !$("pad").hidden;
const withSticks = () => state.steers || state.continuous;

function hold(action) {
  if (!driving() || held.includes(action)) return;
  if (action === "stop") { if (!state.steers) link.send({ do: "press", action }); return; }
  held.push(action);
  sendHeld();
}
function letGo(action) {
  const before = held.length;
  held = action ? held.filter((one) => one !== action) : [];
  if (held.length < before) sendHeld();
}
function sendHeld() {
  showPad();
  if (!link.mine) return;
  const newest = held[held.length - 1];
  if (!newest) link.send({ do: "let_go" });
  else if (withSticks() && newest in STICKS) {
    const sum = (axis) => Math.max(-1, Math.min(1, held.reduce((total, one) => total + (STICKS[one] || [0, 0])[axis], 0)));
    link.send({ do: "hold", action: "velocity_control", stick: [sum(0), sum(1)] });
  } else if (newest !== "move_backward") link.send({ do: "hold", action: newest });
}
function showPad() { for (const button of document.querySelectorAll("#pad button")) button.classList.toggle("held", held.includes(button.dataset.action)); }

for (const button of document.querySelectorAll("#pad button")) {
  button.addEventListener("pointerdown", (event) => { event.preventDefault(); button.setPointerCapture(event.pointerId); hold(button.dataset.action); });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) button.addEventListener(end, () => letGo(button.dataset.action));
}
addEventListener("keydown", (event) => {
  if (event.target.matches("input:not([type=checkbox]), select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = KEYS[event.key.toLowerCase()];
  if (event.key === " ") { if (!event.repeat) pressStop(event); else event.preventDefault(); return; }
  if (action && driving()) { event.preventDefault(); if (!event.repeat) hold(action); }
});
addEventListener("keyup", (event) => { const action = KEYS[event.key.toLowerCase()]; if (action) letGo(action); });
addEventListener("blur", () => letGo());

// --- buttons -------------------------------------------------------------------------------------------------------------

$("name").value = localStorage.getItem("name") || "";
$("take").onclick = () => { localStorage.setItem("name", $("name").value); link.send({ do: "control", by: myName() }); };
$("give").onclick = () => link.send({ do: "control", want: false });
for (const name of ["release", "pause", "resume", "abort", "takeover", "handback"]) $(name).onclick = () => link.send({ do: name });
const verdict = (said) => ({ do: "verdict", by: myName(), log: $("judge-log").value, note: $("note").value, ...said });
function judge(said) { link.send(verdict(said)); $("note").value = ""; }
// A verdict can be taken back for ten seconds; a second tap, another page or the end of this one writes it down at once.
function judgeSoon(judgment) {
  if (pending && pending.message.judgment === judgment && performance.now() - pending.at > 1000) { sendPending(); return; }
  if (!myName()) { say("type a name or a pseudonym first"); return; }
  pending = { at: performance.now(), message: verdict({ judgment }), to: link };
  showUndo();
}
function sendPending() {
  if (!pending || !pending.to.isOpen) return;
  pending.to.send(pending.message); pending = null; $("note").value = ""; showUndo();
}
function showUndo() {
  if (pending && performance.now() - pending.at > UNDO_MS) sendPending();
  $("undo-line").hidden = !pending;
  if (!pending) return;
  const left = Math.max(0, Math.ceil((UNDO_MS - performance.now() + pending.at) / 1000));
  $("undo-text").textContent = `${pending.message.judgment} for ${pending.message.log}, by ${pending.message.by}: ${left ? `is written down in ${left} s, or by a second tap` : "waits for the connection"}`;
}
$("undo").onclick = () => { pending = null; showUndo(); };
for (const button of document.querySelectorAll("[data-judgment]")) button.onclick = () => judgeSoon(button.dataset.judgment);
$("noted").onclick = () => judge({});
$("helped").onclick = () => judge({ helped: true });
$("join").ontoggle = () => {
  if (!$("join").open) return;
  const here = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  $("join-text").textContent = here ? "This address reaches this computer alone: start with --console 0.0.0.0:8900, and open the page at the computer's name in the network." : "Scan it to open this page; whoever has it can operate the robot.";
  fetch(`${link.page}/join`, { headers: { Authorization: `Bearer ${token}` } }).then((answer) => answer.arrayBuffer()).then((bytes) => show("join-img", bytes)).catch(() => say("no connection"));
};
$("allow").onclick = () => Notification.requestPermission().then(showNotify);
$("judge-log").onchange = showFinal;
$("show-overlay").onchange = showPlacement;

// --- the live connection -------------------------------------------------------------------------------------------------

function openLive() {
  live = new WebSocket(`ws${secure}://${link.host}/live`);
  live.binaryType = "arraybuffer";
  live.onopen = () => live.send(token);
  live.onmessage = (event) => typeof event.data === "string" ? told(JSON.parse(event.data)) : pictured(event.data);
  live.onclose = (event) => { if (event.code !== 1008 && !link.over) setTimeout(openLive, RETRY_MS); };
}

function pictured(data) {
  const kind = String.fromCharCode(new Uint8Array(data, 0, 1)[0]), bytes = data.slice(1);
  if (kind === "c") show("color-img", bytes);
  else if (kind === "d") { $("depth").hidden = false; show("depth-img", bytes); }
  else if (kind === "r") { hasReference = bytes.byteLength > 0; if (hasReference) show("overlay", bytes); showPlacement(); }
  else if (kind === "m") createImageBitmap(new Blob([bytes])).then((image) => { mapImage = image; drawMap(); });
}
function show(id, bytes) {
  const image = $(id), before = image.src;
  if (id === "color-img") $("no-picture").hidden = true;
  image.src = URL.createObjectURL(new Blob([bytes], { type: "image/jpeg" }));
  if (before.startsWith("blob:")) URL.revokeObjectURL(before);
}

function told(message) {
  if (message.kind === "closing") showClosing(message);
  else if (message.kind === "state") { state = message; toldAt = performance.now(); showState(); }
  else if (message.kind === "path") path = message.points;
  else if (message.kind === "extent") extent = message;
  else if (message.kind === "judge") { judged = message.logs; showJudge(message.newest); }
  else if (message.kind === "campaign") { campaign = message; showCampaign(message); showAlerts(); }
}

function light(id, text, level) { const item = $(id); item.querySelector("b").textContent = text; item.className = level; }
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
// The robot's program names robots and starts by numbers from 0.
function human(text) {
  return text.replace(/^robot (\d+): /, (all, number) => links.length > 1 && links[number] ? `${links[number].name}: ` : "").replace(/^let go of it$/, "take your hands off the robot");
}
const words = (name) => (name || "").replaceAll("_", " ");
function soon(minutes, limit) { return minutes !== null && minutes < limit; }
function lasts(minutes) { return minutes === null || minutes === undefined || minutes > 600 ? "" : `, ${minutes} min left`; }

// Ages are those that the robot reported, and the time since then.
function showLights() {
  const { silentMs, heardAt, roundTrip } = link, s = state, base = s.base, since = sinceTold(), old = isOld();
  if (link.isSilent) light("l-link", heardAt ? `silent ${seconds(silentMs)}` : "none", "bad");
  else light("l-link", roundTrip === null ? "–" : `${roundTrip.toFixed(0)} ms`, roundTrip > 150 ? "warn" : "good");
  if (!toldAt) return;
  const graded = (ms, warn, bad) => ms > bad ? "bad" : ms > warn ? "warn" : "good";
  const baseMs = base ? 1000 * base.age_s + (old ? since : 0) : 0;
  light("l-base", base ? (baseMs < 1000 ? `${baseMs.toFixed(0)} ms` : seconds(baseMs)) : "silent", base ? graded(baseMs, 100, 1000) : "bad");
  const frameMs = s.frame_age_s === null ? null : 1000 * s.frame_age_s + since;
  light("l-camera", frameMs === null ? "–" : seconds(frameMs), frameMs === null ? "" : graded(frameMs, 1500, 5000));
  light("l-pose", old ? `${seconds(since)} old` : s.lost ? "lost" : s.pose ? "ok" : "–", old ? "bad" : s.lost ? "bad" : s.pose ? "good" : "");
  const charge = base && base.battery_fraction, left = base && base.battery_minutes;
  light("l-battery", base ? base.battery + (old ? "?" : lasts(left)) : "–", old ? "warn" : charge === null || !base ? "" : charge < 0.15 || soon(left, 5) ? "bad" : charge < 0.3 || soon(left, 15) ? "warn" : "good");
  $("l-disk").hidden = !s.disk;
  if (s.disk) light("l-disk", `${s.disk.free_gb} GB free${old ? "?" : lasts(s.disk.minutes)}`, old ? "warn" : soon(s.disk.minutes, 15) || s.disk.free_gb < 1 ? "bad" : soon(s.disk.minutes, 60) || s.disk.free_gb < 5 ? "warn" : "good");
  $("frame-age").textContent = frameMs > 1500 ? `${seconds(frameMs)} old` : "";
  $("stage").classList.toggle("old", old);
  document.body.classList.toggle("stale", old);
  if (old && !$("map").hidden && !$("map").classList.contains("old")) drawMap();
}

function showBanner() {
  const lost = link.isSilent && link.heardAt > 0 && !link.over, old = isOld() && toldAt > 0 && !link.over;
  $("banner").hidden = !lost && !old;
  if (lost) $("banner").textContent = link.wasMine ? "Connection lost, the robot has stopped: it stops by itself when it hears nothing of the page in control." : "Connection lost: what you see is old, and STOP does not reach the robot from here.";
  else if (old) $("banner").textContent = "No news of the robot: pictures and values are old. STOP works.";
  if (wasLost !== lost) { wasLost = lost; showWho(); }
}

function showClosing(message) {
  for (const one of links) if (one === link) one.over = true;
  $("closing").hidden = false; $("banner").hidden = true;
  $("closing-title").textContent = message.title;
  $("closing-lines").replaceChildren(...[...message.lines, message.log && `log: ${message.log}`].filter(Boolean).map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  document.title = message.title;
}

function showState() {
  const s = state, base = s.base;
  $("robot").textContent = s.robot;
  $("episode").textContent = s.total > 1 ? `episode ${s.number} of ${s.total}` : "";
  for (const zone of ["left", "center", "right"]) $(`z-${zone}`).classList.toggle("pressed", !!base && base.bumper.includes(zone));
  const stages = { idle: "no episode yet", placing: s.paused ? "paused before the episode" : "going to the start", running: s.waits ? "paused" : "running", over: `over: ${words(s.end)}` };
  let stage = stages[s.stage] || s.stage;
  if (s.e_stop) stage = `emergency stop: the wheels are held${s.stop_reason ? ` (${s.stop_reason})` : ""}`;
  else if (base && !["none", "expired"].includes(base.halt)) stage += `, held by ${words(base.halt)}`;
  if (s.taken_over) stage += ` · ${s.taken_over} drives`;
  $("stage").textContent = stage; $("stage").classList.toggle("held", !!s.e_stop);
  $("action").textContent = s.step ? `step ${s.step} of ${s.max_steps}: ${words(s.action)} – ${words(s.outcome)}` : "";
  const away = s.offset_to_goal;
  $("goal").textContent = [s.goal && `goal: ${s.goal}`, away && `goal ${away[0]} m away, ${Math.abs(away[1])}° ${away[1] >= 0 ? "left" : "right"}`, !s.e_stop && s.lost, !s.e_stop && s.stage === "over" && s.end_detail].filter(Boolean).join(" · ");
  $("pause").hidden = s.paused; $("resume").hidden = !s.paused; $("resume").textContent = s.stage === "running" ? "Go on" : "Start";
  $("abort").hidden = !["placing", "running"].includes(s.stage);
  const human = s.human;
  $("takeover").hidden = human || !!s.taken_over || s.stage !== "running"; $("handback").hidden = !s.taken_over;
  $("pad").hidden = !(s.taken_over || human || s.steers);
  if ($("pad").hidden) letGo();
  const drives = !$("pad").hidden && link.mine;
  if (document.body.classList.contains("drives") !== drives) { document.body.classList.toggle("drives", drives); $("more").open = !drives; }
  for (const button of document.querySelectorAll("#pad button")) {
    const action = button.dataset.action, sticks = withSticks() && action in STICKS;
    button.hidden = action === "move_backward" && !sticks;
    button.disabled = !sticks && (s.steers || (!!s.actions && !s.actions.includes(action)));
  }
  $("keys-help").textContent = s.steers ? "hold a button or key to drive to the start" : "hold a button or key to drive";
  showLights(); showWho(); showPlacement(); drawMap(); showAlerts();
}

function showWho() {
  const { operator } = link, mine = link.mine && !link.isSilent;
  document.body.classList.toggle("mine", mine);
  $("operate").hidden = !mine; $("give").hidden = !mine; $("take").hidden = mine;
  $("take").disabled = !link.isOpen || (!!operator && !mine);
  $("operator").textContent = link.isSilent ? "no connection: who is in control is not known" : mine ? "you are in control: a page that is hidden, closed or silent stops the robot" : operator ? `${operator} is in control` : "no person is in control";
}

// Conditions that need a person: shown, and told by the browser where it may.
function showAlerts() {
  const asks = (campaign && campaign.asks) || [];
  const all = [...(state.alerts || []), ...asks.map((ask) => ({ kind: "asks", text: human(ask.text) }))], texts = all.map((one) => one.text);
  $("alerts").hidden = !texts.length;
  if ($("alerts").textContent !== texts.join("")) $("alerts").replaceChildren(...all.map((one) => Object.assign(document.createElement("li"), { textContent: one.text, className: ({ e_stop: "held", waits: "request", asks: "request" })[one.kind] || "warning" })));
  document.title = texts.length ? `(${texts.length}) ${link.name}` : "Robot console";
  const fresh = texts.filter((text) => !known.has(text.replace(/[0-9.]+/g, "")));
  known = new Set(texts.map((text) => text.replace(/[0-9.]+/g, "")));
  if (fresh.length && window.Notification && Notification.permission === "granted" && document.hidden) {
    try { new Notification(link.name, { body: fresh.join("; ") }); } catch { /* phones have it for service workers only */ }
  }
}
function showNotify() { $("notify").hidden = !(window.Notification && isSecureContext && Notification.permission === "default"); }

function showPlacement() {
  const o = state.offset, placing = state.stage === "placing" && o;
  $("placement").hidden = !placing;
  $("overlay").hidden = $("overlay-word").hidden = !(state.stage === "placing" && hasReference && $("show-overlay").checked);
  if (!placing) return;
  const known = "ahead_m" in o;
  $("target").style.display = known ? "" : "none";
  if (known) {
    const away = Math.hypot(o.ahead_m, o.left_m), scale = Math.min(1, away) * 50 / Math.max(away, 1e-6);
    $("target").setAttribute("transform", `translate(${-o.left_m * scale} ${-o.ahead_m * scale}) rotate(${-o.turn_deg})`);
    $("target").setAttribute("class", o.near && o.turned ? "near" : "");
    const cm = (value) => `${(100 * Math.abs(value)).toFixed(0)} cm`;
    $("offset").textContent = `${cm(o.ahead_m)} ${o.ahead_m >= 0 ? "ahead" : "back"}, ${cm(o.left_m)} ${o.left_m >= 0 ? "left" : "right"}, turn ${Math.abs(o.turn_deg)}° ${o.turn_deg >= 0 ? "left" : "right"}. ${human(o.note)}`;
  } else $("offset").textContent = `the robot does not know where it is: ${human(o.note)}`;
}

function showJudge(newest) {
  const select = $("judge-log"), logs = Object.keys(judged).reverse();
  $("judge").hidden = logs.length === 0;
  select.replaceChildren(...logs.map((log) => new Option(`${log} (${judged[log].length} verdicts)`, log)));
  select.value = newest;
  showFinal();
}
function showFinal() {
  const log = $("judge-log").value;
  $("judged").textContent = (judged[log] || []).length ? `judged by ${judged[log].join(", ")}` : "not judged yet";
  fetch(`${link.page}/final/${encodeURIComponent(log)}`, { headers: { Authorization: `Bearer ${token}` } })
    .then((answer) => answer.ok ? answer.arrayBuffer() : Promise.reject(new Error())).then((bytes) => show("final", bytes)).catch(() => setTimeout(() => $("judge-log").value === log && !$("final").src && showFinal(), 500));
}

function showCampaign(c) {
  $("campaign").hidden = false; $("campaign-title").textContent = c.title; $("campaign-bar").value = c.total ? c.done / c.total : 0;
  $("campaign-answer").textContent = [`${c.done} of ${c.total}`, c.eta_s && `${Math.round(c.eta_s / 60)} min left`, c.answer].filter(Boolean).join(" · ");
  $("asks").replaceChildren(...(c.asks || []).map((ask) => {
    const item = Object.assign(document.createElement("li"), { textContent: human(ask.text) }), done = Object.assign(document.createElement("button"), { textContent: "Done" });
    done.onclick = () => link.send({ do: "answer", ask: ask.id, by: myName() });
    item.append(done);
    return item;
  }));
  $("campaign-rows").replaceChildren(...(c.rows || []).map((row) => { const item = document.createElement("li"); item.textContent = `start ${row.name.replace(/^(\d+): (.*)$/, (all, n, id) => `${+n + 1}, episode ${id}`)}: ${row.state}`; return item; }));
}

$("keys").open = matchMedia("(hover: hover) and (min-width: 801px)").matches;
links.push(new Link(meta("name"), location.port || (secure ? 443 : 80), meta("control-port")));
for (const other of JSON.parse(meta("others"))) links.push(new Link(other.name, other.port, other.control_port));
choose(links[0]); showNotify();
