"use strict";
// The page shows the robot's state, as the robot reports it, and never what was asked for.
const $ = (id) => document.getElementById(id);
const BEAT_MS = 100, SILENT_MS = 700, RETRY_MS = 1000;
const token = new URLSearchParams(location.hash.slice(1)).get("token") || sessionStorage.getItem("token") || "";
if (token) sessionStorage.setItem("token", token);
history.replaceState(null, "", location.pathname);
const secure = location.protocol === "https:" ? "s" : "";
const controlPort = document.querySelector("meta[name=control-port]").content;

let control = null, live = null, mine = false, eStop = null, heardAt = 0, roundTrip = null, beats = new Map(), beat = 0;
let state = {}, extent = null, mapImage = null, path = [], hasReference = false, judged = {}, held = null;
const presses = new Map();

// --- the operator's connection ------------------------------------------------------------------------------------------

function openControl() {
  control = new WebSocket(`ws${secure}://${location.hostname}:${controlPort}/`);
  control.onopen = () => control.send(JSON.stringify({ do: "hello", token }));
  control.onmessage = (event) => heard(JSON.parse(event.data));
  control.onclose = (event) => {
    mine = false; eStop = null; showStop();
    if (event.code === 1008) { say(`the robot refused this page: ${event.reason}`); return; }
    setTimeout(openControl, RETRY_MS);
  };
}

function send(message) {
  if (control && control.readyState === WebSocket.OPEN) { control.send(JSON.stringify(message)); return true; }
  say("no connection to the robot");
  return false;
}

function heard(message) {
  heardAt = performance.now();
  if (message.kind === "beat") {
    if (beats.has(message.n)) { roundTrip = heardAt - beats.get(message.n); beats.delete(message.n); }
    mine = message.yours; eStop = message.e_stop; state.operator = message.operator || "";
    showStop(); showWho();
  } else if (message.kind === "stopped") stopped(message, "WebSocket");
  else if (message.kind === "refused") say(`${message.why}; ${message.remedy}`);
  else if (message.kind === "done") say(message.do === "verdict" ? `judged: ${message.text}` : "");
}

setInterval(() => {
  if (control && control.readyState === WebSocket.OPEN) {
    beats.set(++beat, performance.now());
    if (beats.size > 50) beats.delete(beats.keys().next().value);
    control.send(JSON.stringify({ do: "beat", n: beat }));
  }
  if (performance.now() - heardAt > SILENT_MS) { eStop = null; showStop(); }
  showLink();
}, BEAT_MS);

// --- stop ----------------------------------------------------------------------------------------------------------------

function pressStop(event) {
  if (event) event.preventDefault();
  letGo();
  const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
  presses.set(id, performance.now());
  if (control && control.readyState === WebSocket.OPEN) {
    control.send(JSON.stringify({ do: "stop", id, by: $("name").value.trim() }));
  }
  fetch("/stop", { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: JSON.stringify({ id }), keepalive: true })
    .then((answer) => answer.json()).then((answer) => stopped({ id, ...answer }, "HTTP"))
    .catch(() => { if (presses.has(id)) say("STOP has not reached the robot over HTTP"); });
  $("trip").textContent = "STOP sent, no answer yet";
}

function stopped(answer, way) {
  if (!presses.has(answer.id)) return;
  if (!answer.done) { say(`STOP over ${way}: ${answer.text}`); return; }
  const took = performance.now() - presses.get(answer.id);
  presses.delete(answer.id);
  $("trip").textContent = `stopped: answer after ${took.toFixed(0)} ms over ${way}`;
  if (navigator.vibrate && navigator.userActivation && navigator.userActivation.hasBeenActive) navigator.vibrate(200);
}

$("stop").addEventListener("pointerdown", pressStop);
$("stop").addEventListener("keydown", (event) => { if (!event.repeat && (event.key === " " || event.key === "Enter")) pressStop(event); });

function showStop() {
  const button = $("stop");
  button.className = eStop === null ? "unknown" : eStop ? "held" : "";
  button.textContent = eStop ? "STOPPED" : "STOP";
  $("release").disabled = !eStop;
}

function leave(why) {
  letGo();
  if (mine && control.readyState === WebSocket.OPEN) control.send(JSON.stringify({ do: "leave", why }));
}
document.addEventListener("visibilitychange", () => { if (document.hidden) leave("hidden"); });
addEventListener("pagehide", () => leave("closed"));
document.addEventListener("freeze", () => leave("frozen"));

// --- driving: hold to run ------------------------------------------------------------------------------------------------

const KEYS = { w: "move_forward", arrowup: "move_forward", a: "turn_left", arrowleft: "turn_left", j: "turn_left", d: "turn_right", arrowright: "turn_right", l: "turn_right", z: "look_up", i: "look_up", c: "look_down", k: "look_down", f: "stop", g: "grab_release" };
const driving = () => mine && !$("pad").hidden;

function hold(action) {
  if (!driving() || held === action) return;
  held = action;
  send(action === "stop" ? { do: "press", action } : { do: "hold", action });
  showPad();
}
function letGo() {
  if (held === null) return;
  held = null;
  if (mine) send({ do: "let_go" });
  showPad();
}
function showPad() { for (const button of document.querySelectorAll("#pad button")) button.classList.toggle("held", button.dataset.action === held); }

for (const button of document.querySelectorAll("#pad button")) {
  button.addEventListener("pointerdown", (event) => { event.preventDefault(); button.setPointerCapture(event.pointerId); hold(button.dataset.action); });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) button.addEventListener(end, letGo);
}
addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = KEYS[event.key.toLowerCase()];
  if (event.key === " ") { if (!event.repeat) pressStop(event); return; }
  if (action && driving()) { event.preventDefault(); if (!event.repeat) hold(action); }
});
addEventListener("keyup", (event) => { if (KEYS[event.key.toLowerCase()] === held) letGo(); });
addEventListener("blur", letGo);

// --- buttons -------------------------------------------------------------------------------------------------------------

$("name").value = localStorage.getItem("name") || "";
$("take").onclick = () => { localStorage.setItem("name", $("name").value); send({ do: "control", by: $("name").value.trim() }); };
$("give").onclick = () => send({ do: "control", want: false });
for (const name of ["release", "pause", "resume", "abort", "takeover", "handback"]) $(name).onclick = () => send({ do: name });
for (const button of document.querySelectorAll("[data-judgment]")) {
  button.onclick = () => send({ do: "verdict", by: $("name").value.trim(), log: $("judge-log").value, judgment: button.dataset.judgment, note: $("note").value });
}
$("judge-log").onchange = showFinal;
$("show-overlay").onchange = showPlacement;
const say = (text) => { $("said").textContent = text; };

// --- the live connection -------------------------------------------------------------------------------------------------

function openLive() {
  live = new WebSocket(`ws${secure}://${location.host}/live`);
  live.binaryType = "arraybuffer";
  live.onopen = () => live.send(token);
  live.onmessage = (event) => typeof event.data === "string" ? told(JSON.parse(event.data)) : pictured(event.data);
  live.onclose = (event) => { if (event.code !== 1008) setTimeout(openLive, RETRY_MS); };
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
  image.src = URL.createObjectURL(new Blob([bytes], { type: "image/jpeg" }));
  if (before.startsWith("blob:")) URL.revokeObjectURL(before);
}

function told(message) {
  if (message.kind === "state") { state = message; if (!mine && performance.now() - heardAt > SILENT_MS) eStop = message.e_stop; showState(); }
  else if (message.kind === "path") path = message.points;
  else if (message.kind === "extent") extent = message;
  else if (message.kind === "judge") { judged = message.logs; showJudge(message.newest); }
  else if (message.kind === "campaign") showCampaign(message);
}

function light(id, text, level) { const item = $(id); item.querySelector("b").textContent = text; item.className = level; }
function showLink() {
  const silent = performance.now() - heardAt;
  if (heardAt === 0 || silent > SILENT_MS) light("l-link", heardAt ? `silent ${(silent / 1000).toFixed(1)} s` : "none", "bad");
  else light("l-link", roundTrip === null ? "–" : `${roundTrip.toFixed(0)} ms`, roundTrip > 150 ? "warn" : "good");
}

function soon(minutes, limit) { return minutes !== null && minutes < limit; }
function lasts(minutes) { return minutes === null || minutes === undefined || minutes > 600 ? "" : `, ${minutes} min left`; }

function showState() {
  const s = state, base = s.base;
  $("robot").textContent = s.robot;
  $("episode").textContent = s.total ? `episode ${s.number} of ${s.total}` : "";
  light("l-base", base ? `${(1000 * base.age_s).toFixed(0)} ms` : "silent", base ? (base.age_s > 0.1 ? "warn" : "good") : "bad");
  light("l-camera", s.frame_age_s === null ? "–" : `${s.frame_age_s.toFixed(1)} s`, s.frame_age_s === null ? "" : s.frame_age_s > 5 ? "bad" : s.frame_age_s > 1 ? "warn" : "good");
  light("l-pose", s.lost ? "lost" : s.pose ? "ok" : "–", s.lost ? "bad" : s.pose ? "good" : "");
  const charge = base && base.battery_fraction;
  const left = base && base.battery_minutes;
  light("l-battery", base ? base.battery + lasts(left) : "–", charge === null || !base ? "" : charge < 0.15 || soon(left, 5) ? "bad" : charge < 0.3 || soon(left, 15) ? "warn" : "good");
  $("l-disk").hidden = !s.disk;
  if (s.disk) light("l-disk", `${s.disk.free_gb} GB free${lasts(s.disk.minutes)}`, soon(s.disk.minutes, 15) || s.disk.free_gb < 1 ? "bad" : soon(s.disk.minutes, 60) || s.disk.free_gb < 5 ? "warn" : "good");
  for (const zone of ["left", "center", "right"]) $(`z-${zone}`).classList.toggle("pressed", !!base && base.bumper.includes(zone));
  const stages = { idle: "no episode yet", placing: s.paused ? "paused before the episode" : "going to the start", running: s.waits ? "paused" : "running", over: `over: ${s.end || ""}` };
  let stage = stages[s.stage] || s.stage;
  if (s.e_stop) stage = "emergency stop: the wheels are held";
  else if (base && !["none", "expired"].includes(base.halt)) stage += `, held by ${base.halt.replace("_", " ")}`;
  if (s.taken_over) stage += ` · ${s.taken_over} drives`;
  $("stage").textContent = stage; $("stage").classList.toggle("held", !!s.e_stop);
  $("action").textContent = s.step ? `step ${s.step} of ${s.max_steps}: ${s.action} – ${s.outcome}` : "";
  const away = s.offset_to_goal;
  $("goal").textContent = [s.goal && `goal: ${s.goal}`, away && `goal ${away[0]} m away, ${Math.abs(away[1])}° ${away[1] >= 0 ? "left" : "right"}`, s.lost, s.stage === "over" && s.end_detail].filter(Boolean).join(" · ");
  $("frame-age").textContent = s.frame_age_s > 1 ? `${s.frame_age_s.toFixed(1)} s old` : "";
  $("pause").hidden = s.paused; $("resume").hidden = !s.paused; $("resume").textContent = s.stage === "running" ? "Go on" : "Start";
  const human = s.human;
  $("takeover").hidden = human || !!s.taken_over; $("handback").hidden = !s.taken_over;
  $("pad").hidden = !(s.taken_over || human);
  for (const button of document.querySelectorAll("#pad button")) button.disabled = !!s.actions && !s.actions.includes(button.dataset.action);
  showWho(); showPlacement(); drawMap();
  if (!mine) showStop();
}

function showWho() {
  $("operate").hidden = !mine; $("give").hidden = !mine; $("take").hidden = mine;
  $("take").disabled = !!state.operator && !mine;
  $("operator").textContent = mine ? "you are in control: a page that is hidden, closed or silent for 0.5 s stops the robot" : state.operator ? `${state.operator} is in control` : "nobody is in control";
}

function showPlacement() {
  const o = state.offset, placing = state.stage === "placing" && o;
  $("placement").hidden = !placing;
  $("overlay").hidden = !(state.stage === "placing" && hasReference && $("show-overlay").checked);
  if (!placing) return;
  const known = "ahead_m" in o;
  $("target").style.display = known ? "" : "none";
  if (known) {
    const away = Math.hypot(o.ahead_m, o.left_m), scale = Math.min(1, away) * 50 / Math.max(away, 1e-6);
    $("target").setAttribute("transform", `translate(${-o.left_m * scale} ${-o.ahead_m * scale}) rotate(${-o.turn_deg})`);
    $("target").setAttribute("class", o.near && o.turned ? "near" : "");
    const cm = (value) => `${(100 * Math.abs(value)).toFixed(0)} cm`;
    $("offset").textContent = `${cm(o.ahead_m)} ${o.ahead_m >= 0 ? "ahead" : "back"}, ${cm(o.left_m)} ${o.left_m >= 0 ? "left" : "right"}, turn ${Math.abs(o.turn_deg)}° ${o.turn_deg >= 0 ? "left" : "right"}. ${o.note}`;
  } else $("offset").textContent = `no pose of the robot: ${o.note}`;
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
  $("judged").textContent = (judged[log] || []).length ? `judged by ${judged[log].join(", ")}` : "nobody has judged it yet";
  fetch(`/final/${encodeURIComponent(log)}`, { headers: { Authorization: `Bearer ${token}` } })
    .then((answer) => answer.ok ? answer.arrayBuffer() : Promise.reject(new Error())).then((bytes) => show("final", bytes)).catch(() => setTimeout(() => $("judge-log").value === log && !$("final").src && showFinal(), 500));
}

function showCampaign(c) {
  $("campaign").hidden = false; $("campaign-title").textContent = c.title; $("campaign-bar").value = c.total ? c.done / c.total : 0;
  $("campaign-answer").textContent = [`${c.done} of ${c.total}`, c.eta_s && `${Math.round(c.eta_s / 60)} min left`, c.answer].filter(Boolean).join(" · ");
  $("campaign-rows").replaceChildren(...(c.rows || []).map((row) => { const item = document.createElement("li"); item.textContent = `${row.name}: ${row.state}`; return item; }));
}

// --- map -----------------------------------------------------------------------------------------------------------------

function drawMap() {
  if (!mapImage || !extent || !state.pose) return;
  $("map").hidden = false;
  const canvas = $("map-canvas"), [x, y, yaw, sigma] = state.pose;
  const xs = path.map((p) => p[0]).concat(x, state.start[0]), ys = path.map((p) => p[1]).concat(y, state.start[1]);
  const size = Math.max(4, Math.max(...xs) - Math.min(...xs) + 2, Math.max(...ys) - Math.min(...ys) + 2);
  const left = (Math.max(...xs) + Math.min(...xs) - size) / 2, top = (Math.max(...ys) + Math.min(...ys) + size) / 2;
  const c = canvas.getContext("2d"), scale = canvas.width / size, r = extent.resolution_m;
  const px = (mx) => (mx - left) * scale, py = (my) => (top - my) * scale;
  c.fillStyle = "#888"; c.fillRect(0, 0, canvas.width, canvas.height);
  c.imageSmoothingEnabled = false;
  c.drawImage(mapImage, px(extent.left_m), py(extent.top_m), mapImage.width * r * scale, mapImage.height * r * scale);
  c.lineWidth = 3; c.strokeStyle = "#1769c2"; c.beginPath();
  path.forEach((p, i) => i ? c.lineTo(px(p[0]), py(p[1])) : c.moveTo(px(p[0]), py(p[1])));
  c.lineTo(px(x), py(y)); c.stroke();
  c.fillStyle = "rgb(23 105 194 / .2)"; c.beginPath(); c.arc(px(x), py(y), Math.max(0, 2 * sigma * scale), 0, 7); c.fill();
  c.fillStyle = "#d33c1d"; c.strokeStyle = "#fff"; c.lineWidth = 2; c.beginPath(); c.arc(px(x), py(y), extent.radius_m * scale, 0, 7); c.fill(); c.stroke();
  c.beginPath(); c.moveTo(px(x), py(y)); c.lineTo(px(x + Math.cos(yaw) * extent.radius_m), py(y + Math.sin(yaw) * extent.radius_m)); c.stroke();
  $("pose-text").textContent = `x ${x.toFixed(2)} y ${y.toFixed(2)} m, ±${(200 * sigma).toFixed(0)} cm`;
}

showStop(); showWho(); openControl(); openLive();
