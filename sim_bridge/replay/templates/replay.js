"use strict";
// One number, the step, drives everything that is shown.
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const slider = at("step");
const rows = new Map([...document.querySelectorAll("#actions tbody tr")].map((row) => [Number(row.dataset.step), row]));
const PLAY_MS = 250;
let step = data.first;
let timer = null;

/** The last of ascending numbers that is not beyond a limit. */
function before(numbers, limit) {
  let low = 0, high = numbers.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (numbers[middle] <= limit) low = middle; else high = middle - 1;
  }
  return low;
}

function showImages() {
  if (!data.shown.length) return;
  const number = before(data.shown, step);
  for (const name of ["recorded", "simulated", "error"]) at(name).src = data.images[name][number];
  const other = data.shown[number] === step ? "" : ` (images: step ${data.shown[number]})`;
  at("frame-text").textContent = (data.texts[step - data.first] || "this step was not compared") + other;
}

function showMarkers() {
  for (const [name, track] of Object.entries(data.tracks)) {
    const pose = track[Math.min(step - data.first, track.length - 1)];
    const marker = at(`marker-${name}`);
    marker.style.display = pose ? "" : "none";
    if (pose) marker.setAttribute("transform", `translate(${pose[0]} ${-pose[1]}) rotate(${-pose[2]})`);
  }
}

function showCursors() {
  for (const plot of document.querySelectorAll(".timed")) {
    const { first, last } = plot.dataset;
    const x = data.left + (data.right - data.left) * (step - first) / (last - first);
    const cursor = plot.querySelector(".cursor");
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
  }
  const now = document.querySelector(".bands .now");
  if (now) now.setAttribute("points", data.bands[step - data.first] || "");
}

function showRow() {
  for (const row of document.querySelectorAll("#actions tr.current")) row.classList.remove("current");
  const row = rows.get(step);
  if (!row) return;
  row.classList.add("current");
  const list = row.closest(".actions");
  const top = row.offsetTop - list.querySelector("thead").offsetHeight;
  // Only the list is scrolled: the page stays where the reader is.
  if (top < list.scrollTop) list.scrollTop = top;
  else if (row.offsetTop + row.offsetHeight > list.scrollTop + list.clientHeight)
    list.scrollTop = row.offsetTop + row.offsetHeight - list.clientHeight;
}

function go(to) {
  step = Math.max(data.first, Math.min(data.last, Math.round(to)));
  slider.value = step;
  at("where").textContent = `step ${step} of ${data.last} · ${data.labels[step - data.first]}`;
  showImages();
  showMarkers();
  showCursors();
  showRow();
  history.replaceState(null, "", `#step=${step}`);
}

function stop() {
  clearInterval(timer);
  timer = null;
  at("play").textContent = "▶";
  at("play").setAttribute("aria-label", "play");
}

function play() {
  if (timer !== null) return stop();
  if (step === data.last) go(data.first);
  timer = setInterval(() => { if (step < data.last) go(step + 1); else stop(); }, PLAY_MS);
  at("play").textContent = "❚❚";
  at("play").setAttribute("aria-label", "pause");
}

const KEYS = {
  ArrowLeft: (event) => go(step - (event.shiftKey ? 10 : 1)),
  ArrowRight: (event) => go(step + (event.shiftKey ? 10 : 1)),
  Home: () => go(data.first),
  End: () => go(data.last),
  " ": play,
  d: () => { if (data.divergence !== null) go(data.divergence); },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  // A button that has the focus is pressed by the space bar itself.
  if (event.key === " " && event.target.tagName === "BUTTON") return;
  event.preventDefault();
  KEYS[event.key](event);
});
slider.addEventListener("input", () => go(Number(slider.value)));
at("play").addEventListener("click", play);
at("back").addEventListener("click", () => go(step - 1));
at("ahead").addEventListener("click", () => go(step + 1));
if (data.divergence !== null) at("divergence").addEventListener("click", () => go(data.divergence));
for (const [number, row] of rows) row.addEventListener("click", () => go(number));
for (const plot of document.querySelectorAll(".timed")) {
  plot.addEventListener("click", (event) => {
    const box = plot.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * data.width - data.left) / (data.right - data.left);
    go(Number(plot.dataset.first) + share * (plot.dataset.last - plot.dataset.first));
  });
}
for (const path of document.querySelectorAll(".path")) {
  path.addEventListener("click", (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(path.getScreenCTM().inverse());
    const off = data.tracks[path.dataset.track].map((pose) => pose ? Math.hypot(pose[0] - point.x, -pose[1] - point.y) : Infinity);
    go(data.first + off.indexOf(Math.min(...off)));
  });
}
const asked = /^#step=(\d+)$/.exec(location.hash);
go(asked ? Number(asked[1]) : data.first);
