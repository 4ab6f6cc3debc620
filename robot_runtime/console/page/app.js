"use strict";
// The page of one robot at a time; of the others it shows whether they are held, and can stop them.
let link = null, live = null, state = {}, extent = null, mapImage = null, path = [], hasReference = false, judged = {}, campaign = null;
let known = new Set();
const links = [];

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
  state = {}; extent = mapImage = campaign = null; path = []; hasReference = false; judged = {}; known = new Set();
  for (const id of ["depth", "map", "judge", "campaign", "overlay"]) $(id).hidden = true;
  for (const id of ["color-img", "depth-img", "final"]) $(id).removeAttribute("src");
  if (live) { live.onclose = null; live.close(); }
  openLive(); changed(one);
}

setInterval(() => { for (const one of links) one.sendBeat(); showLink(); }, BEAT_MS);

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
  $("release").disabled = !link.eStop;
}

function leave(why) {
  letGo();
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
function judge(said) {
  link.send({ do: "verdict", by: myName(), log: $("judge-log").value, note: $("note").value, ...said });
  $("note").value = "";
}
for (const button of document.querySelectorAll("[data-judgment]")) button.onclick = () => judge({ judgment: button.dataset.judgment });
$("noted").onclick = () => judge({});
$("helped").onclick = () => judge({ helped: true });
$("allow").onclick = () => Notification.requestPermission().then(showNotify);
$("judge-log").onchange = showFinal;
$("show-overlay").onchange = showPlacement;

// --- the live connection -------------------------------------------------------------------------------------------------

function openLive() {
  live = new WebSocket(`ws${secure}://${link.host}/live`);
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
  if (message.kind === "state") { state = message; showState(); }
  else if (message.kind === "path") path = message.points;
  else if (message.kind === "extent") extent = message;
  else if (message.kind === "judge") { judged = message.logs; showJudge(message.newest); }
  else if (message.kind === "campaign") { campaign = message; showCampaign(message); showAlerts(); }
}

function light(id, text, level) { const item = $(id); item.querySelector("b").textContent = text; item.className = level; }
function showLink() {
  const { silentMs, heardAt, roundTrip } = link;
  if (heardAt === 0 || silentMs > SILENT_MS) light("l-link", heardAt ? `silent ${(silentMs / 1000).toFixed(1)} s` : "none", "bad");
  else light("l-link", roundTrip === null ? "–" : `${roundTrip.toFixed(0)} ms`, roundTrip > 150 ? "warn" : "good");
}

const words = (name) => (name || "").replaceAll("_", " ");
function soon(minutes, limit) { return minutes !== null && minutes < limit; }
function lasts(minutes) { return minutes === null || minutes === undefined || minutes > 600 ? "" : `, ${minutes} min left`; }

function showState() {
  const s = state, base = s.base;
  $("robot").textContent = s.robot;
  $("episode").textContent = s.total > 1 ? `episode ${s.number} of ${s.total}` : "";
  light("l-base", base ? `${(1000 * base.age_s).toFixed(0)} ms` : "silent", base ? (base.age_s > 0.1 ? "warn" : "good") : "bad");
  light("l-camera", s.frame_age_s === null ? "–" : `${s.frame_age_s.toFixed(1)} s`, s.frame_age_s === null ? "" : s.frame_age_s > 5 ? "bad" : s.frame_age_s > 1 ? "warn" : "good");
  light("l-pose", s.lost ? "lost" : s.pose ? "ok" : "–", s.lost ? "bad" : s.pose ? "good" : "");
  const charge = base && base.battery_fraction;
  const left = base && base.battery_minutes;
  light("l-battery", base ? base.battery + lasts(left) : "–", charge === null || !base ? "" : charge < 0.15 || soon(left, 5) ? "bad" : charge < 0.3 || soon(left, 15) ? "warn" : "good");
  $("l-disk").hidden = !s.disk;
  if (s.disk) light("l-disk", `${s.disk.free_gb} GB free${lasts(s.disk.minutes)}`, soon(s.disk.minutes, 15) || s.disk.free_gb < 1 ? "bad" : soon(s.disk.minutes, 60) || s.disk.free_gb < 5 ? "warn" : "good");
  for (const zone of ["left", "center", "right"]) $(`z-${zone}`).classList.toggle("pressed", !!base && base.bumper.includes(zone));
  const stages = { idle: "no episode yet", placing: s.paused ? "paused before the episode" : "going to the start", running: s.waits ? "paused" : "running", over: `over: ${words(s.end)}` };
  let stage = stages[s.stage] || s.stage;
  if (s.e_stop) stage = "emergency stop: the wheels are held";
  else if (base && !["none", "expired"].includes(base.halt)) stage += `, held by ${words(base.halt)}`;
  if (s.taken_over) stage += ` · ${s.taken_over} drives`;
  $("stage").textContent = stage; $("stage").classList.toggle("held", !!s.e_stop);
  $("action").textContent = s.step ? `step ${s.step} of ${s.max_steps}: ${words(s.action)} – ${words(s.outcome)}` : "";
  const away = s.offset_to_goal;
  $("goal").textContent = [s.goal && `goal: ${s.goal}`, away && `goal ${away[0]} m away, ${Math.abs(away[1])}° ${away[1] >= 0 ? "left" : "right"}`, !s.e_stop && s.lost, !s.e_stop && s.stage === "over" && s.end_detail].filter(Boolean).join(" · ");
  $("frame-age").textContent = s.frame_age_s > 1 ? `${s.frame_age_s.toFixed(1)} s old` : "";
  $("pause").hidden = s.paused; $("resume").hidden = !s.paused; $("resume").textContent = s.stage === "running" ? "Go on" : "Start";
  $("abort").hidden = !["placing", "running"].includes(s.stage);
  const human = s.human;
  $("takeover").hidden = human || !!s.taken_over || s.stage !== "running"; $("handback").hidden = !s.taken_over;
  $("pad").hidden = !(s.taken_over || human || s.steers);
  if ($("pad").hidden) letGo();
  for (const button of document.querySelectorAll("#pad button")) {
    const action = button.dataset.action, sticks = withSticks() && action in STICKS;
    button.hidden = action === "move_backward" && !sticks;
    button.disabled = !sticks && (s.steers || (!!s.actions && !s.actions.includes(action)));
  }
  $("keys-help").textContent = s.steers ? "hold to drive to the start: buttons, or w a s d and arrows" : "hold to drive: buttons, or w a d z c and arrows; f is done";
  showWho(); showPlacement(); drawMap(); showAlerts();
}

function showWho() {
  const { mine, operator } = link;
  document.body.classList.toggle("mine", mine);
  $("operate").hidden = !mine; $("give").hidden = !mine; $("take").hidden = mine;
  $("take").disabled = !link.isOpen || (!!operator && !mine);
  $("operator").textContent = mine ? "you are in control: a page that is hidden, closed or silent stops the robot" : operator ? `${operator} is in control` : "no person is in control";
}

// Conditions that need a person: shown, and told by the browser where it may.
function showAlerts() {
  const asks = (campaign && campaign.asks) || [];
  const texts = [...(state.alerts || []), ...asks.map((ask) => ask.text)];
  $("alerts").hidden = !texts.length;
  if ($("alerts").textContent !== texts.join("")) $("alerts").replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
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
  $("judged").textContent = (judged[log] || []).length ? `judged by ${judged[log].join(", ")}` : "not judged yet";
  fetch(`${link.page}/final/${encodeURIComponent(log)}`, { headers: { Authorization: `Bearer ${token}` } })
    .then((answer) => answer.ok ? answer.arrayBuffer() : Promise.reject(new Error())).then((bytes) => show("final", bytes)).catch(() => setTimeout(() => $("judge-log").value === log && !$("final").src && showFinal(), 500));
}

function showCampaign(c) {
  $("campaign").hidden = false; $("campaign-title").textContent = c.title; $("campaign-bar").value = c.total ? c.done / c.total : 0;
  $("campaign-answer").textContent = [`${c.done} of ${c.total}`, c.eta_s && `${Math.round(c.eta_s / 60)} min left`, c.answer].filter(Boolean).join(" · ");
  $("asks").replaceChildren(...(c.asks || []).map((ask) => {
    const item = Object.assign(document.createElement("li"), { textContent: ask.text }), done = Object.assign(document.createElement("button"), { textContent: "Done" });
    done.onclick = () => link.send({ do: "answer", ask: ask.id, by: myName() });
    item.append(done);
    return item;
  }));
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

links.push(new Link(meta("name"), location.port || (secure ? 443 : 80), meta("control-port")));
for (const other of JSON.parse(meta("others"))) links.push(new Link(other.name, other.port, other.control_port));
choose(links[0]); showNotify();
