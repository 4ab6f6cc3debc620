"use strict";
// Connections to the robots: heartbeat, STOP and commands. The page shows what a robot reports, never what was asked for.
const $ = (id) => document.getElementById(id);
const say = (text) => { $("said").textContent = text; };
const BEAT_MS = 100, SILENT_MS = 700, RETRY_MS = 1000;
const token = new URLSearchParams(location.hash.slice(1)).get("token") || sessionStorage.getItem("token") || "";
if (token) sessionStorage.setItem("token", token);
addEventListener("hashchange", () => location.reload());
history.replaceState(null, "", location.pathname);
const secure = location.protocol === "https:" ? "s" : "";
const meta = (name) => document.querySelector(`meta[name=${name}]`).content;

class Link {
  constructor(name, port, controlPort) {
    Object.assign(this, { name, host: `${location.hostname}:${port}`, controlPort });
    this.control = null; this.mine = this.wasMine = this.over = false; this.eStop = null; this.speed = null; this.operator = "";
    this.heardAt = 0; this.roundTrip = null; this.beats = new Map(); this.beat = 0; this.presses = new Map();
    this.open();
  }

  get silentMs() { return performance.now() - this.heardAt; }
  get isSilent() { return this.heardAt === 0 || this.silentMs > SILENT_MS; }
  get isOpen() { return this.control.readyState === WebSocket.OPEN; }
  get page() { return `http${secure}://${this.host}`; }

  open() {
    this.control = new WebSocket(`ws${secure}://${location.hostname}:${this.controlPort}/`);
    this.control.onopen = () => this.send({ do: "hello", token });
    this.control.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.control.onclose = (event) => {
      this.mine = false; this.eStop = null; changed(this);
      if (event.code === 1008) { say(`${this.name} refused this page: ${event.reason}`); return; }
      if (!this.over) setTimeout(() => this.open(), RETRY_MS);
    };
  }

  send(message) {
    if (this.isOpen) { this.control.send(JSON.stringify(message)); return true; }
    say(`no connection to ${this.name}`);
    return false;
  }

  receive(message) {
    this.heardAt = performance.now();
    if (message.kind === "beat") {
      if (this.beats.has(message.n)) { this.roundTrip = this.heardAt - this.beats.get(message.n); this.beats.delete(message.n); }
      this.mine = message.yours; this.wasMine = message.yours; this.eStop = message.e_stop; this.speed = message.speed; this.operator = message.operator || "";
      changed(this);
    } else if (message.kind === "stopped") this.stopped(message, "WebSocket");
    else if (message.kind === "refused") say(`${message.why}; ${message.remedy}`);
    else if (message.kind === "done") say(["verdict", "answer"].includes(message.do) ? `written down: ${message.text}` : "");
  }

  sendBeat() {
    if (this.isOpen) {
      this.beats.set(++this.beat, performance.now());
      if (this.beats.size > 50) this.beats.delete(this.beats.keys().next().value);
      this.send({ do: "beat", n: this.beat });
    }
    if (this.silentMs > SILENT_MS && this.eStop !== null) { this.eStop = null; changed(this); }
  }

  // On two ways at once; the robot's side recognizes the second one by its id.
  stop(by) {
    const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
    this.presses.set(id, performance.now());
    if (this.isOpen) this.send({ do: "stop", id, by });
    this.post(id, 5);
    $("trip").textContent = `STOP sent to ${this.name}, no answer yet`;
  }

  post(id, tries) {
    fetch(`${this.page}/stop`, { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: JSON.stringify({ id }), keepalive: true })
      .then((answer) => answer.json()).then((answer) => this.stopped({ id, ...answer }, "HTTP"))
      .catch(() => {
        if (!this.presses.has(id)) return;
        if (tries > 1) setTimeout(() => this.post(id, tries - 1), BEAT_MS);
        else say(`STOP has not reached ${this.name} over HTTP`);
      });
  }

  stopped(answer, way) {
    if (!this.presses.has(answer.id)) return;
    if (!answer.done) { say(`STOP over ${way}: ${answer.text}`); return; }
    const took = performance.now() - this.presses.get(answer.id);
    this.presses.delete(answer.id);
    $("trip").textContent = `stopped: answer after ${took.toFixed(0)} ms over ${way}`;
    if (navigator.vibrate && navigator.userActivation && navigator.userActivation.hasBeenActive) navigator.vibrate(200);
  }

  leave(why) { if (this.mine && this.isOpen) this.send({ do: "leave", why }); }
}
