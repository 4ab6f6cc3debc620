"use strict";
// Each episode gets a slider of its steps, and its sources of poses can be hidden. Both are read from what is drawn.
const SVG = "http://www.w3.org/2000/svg";
const made = (name, attributes, ...inside) => {
  const one = document.createElement(name);
  Object.assign(one, attributes);
  one.append(...inside);
  return one;
};

function addSlider(figures) {
  const map = figures.querySelector("svg.map");
  const places = [...map.querySelectorAll(".track")].flatMap((line) =>
    line.getAttribute("points").trim().split(/\s+/).map((pair) => pair.split(",")));
  const last = places.length - 1;
  if (last < 1) return;
  const dot = document.createElementNS(SVG, "circle");
  dot.setAttribute("class", "now");
  dot.setAttribute("r", 0.016 * Math.max(map.viewBox.baseVal.width, map.viewBox.baseVal.height));
  map.querySelector(".map-lines").append(dot);
  const spots = new Map([...figures.querySelectorAll(".spot")].map((spot) => [parseInt(spot.textContent.slice(5)), spot]));
  const cursor = document.createElementNS(SVG, "circle");
  cursor.setAttribute("class", "now");
  cursor.setAttribute("r", 5);
  if (spots.size) spots.values().next().value.parentNode.append(cursor);
  const images = [...figures.querySelectorAll(".strip figure")].map((one) => [parseInt(one.textContent), one]);
  const slider = made("input", { type: "range", min: 0, max: last, value: 0, ariaLabel: "step of the episode" });
  const said = made("output", {});
  const go = (step) => {
    slider.value = step;
    dot.setAttribute("cx", places[step][0]);
    dot.setAttribute("cy", places[step][1]);
    const spot = spots.get(step);
    cursor.style.display = spot ? "" : "none";
    if (spot) for (const name of ["cx", "cy"]) cursor.setAttribute(name, spot.getAttribute(name));
    const shown = images.filter(([at]) => at <= step).pop();
    for (const [, one] of images) one.classList.toggle("shown", Boolean(shown) && one === shown[1]);
    said.textContent = `step ${step} of ${last}${spot ? `: ${spot.textContent.split(": ")[1]} to the goal` : ""}`;
  };
  slider.addEventListener("input", () => go(Number(slider.value)));
  for (const [at, one] of images) one.addEventListener("click", () => go(at));
  for (const [at, spot] of spots) spot.addEventListener("click", () => go(at));
  map.after(made("div", { className: "timebar small" }, slider, said));
  go(0);
}

function addSources(plot) {
  const marks = [...plot.querySelectorAll("[data-source]")];
  const boxes = marks.map((mark) => {
    const box = made("input", { type: "checkbox", checked: true });
    box.addEventListener("input", () => {
      for (const shape of plot.querySelectorAll(`.${mark.getAttribute("class")}`))
        if (shape !== mark) shape.style.display = box.checked ? "" : "none";
    });
    return made("label", {}, box, ` ${mark.dataset.source}`);
  });
  if (boxes.length) plot.after(made("div", { className: "sources small muted" }, "show ", ...boxes));
}

document.querySelectorAll(".figures").forEach(addSlider);
document.querySelectorAll("svg.plot").forEach(addSources);
