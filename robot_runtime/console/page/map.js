"use strict";
// The map: free space, rooms, path, start, goal, robot with its heading, scale.
function drawMap() {
  if (!mapImage || !extent) return;
  const pose = state.pose || lastPose, old = !state.pose || state.stage !== "running" || isOld();
  if (!pose) return;
  lastPose = pose;
  $("map").hidden = false;
  const canvas = $("map-canvas"), [x, y, yaw, sigma] = pose, goals = state.goals || [], start = state.start;
  const xs = path.map((p) => p[0]).concat(x, start ? start[0] : x, goals.map((g) => g[0])), ys = path.map((p) => p[1]).concat(y, start ? start[1] : y, goals.map((g) => g[1]));
  const width = Math.max(...xs) - Math.min(...xs) + 2, height = Math.max(...ys) - Math.min(...ys) + 2;
  const scale = Math.min(canvas.width / Math.max(5, width), canvas.height / Math.max(4, height)), r = extent.resolution_m;
  const left = (Math.max(...xs) + Math.min(...xs)) / 2 - canvas.width / 2 / scale, top = (Math.max(...ys) + Math.min(...ys)) / 2 + canvas.height / 2 / scale;
  const unit = canvas.width / (canvas.clientWidth || 400);  // one pixel of the page
  const c = canvas.getContext("2d"), px = (mx) => (mx - left) * scale, py = (my) => (top - my) * scale;
  c.globalAlpha = 1; c.fillStyle = "#888"; c.fillRect(0, 0, canvas.width, canvas.height);
  c.imageSmoothingEnabled = false;
  c.drawImage(mapImage, px(extent.left_m), py(extent.top_m), mapImage.width * r * scale, mapImage.height * r * scale);
  const write = (text, tx, ty, ink = "#223") => { c.lineWidth = 3 * unit; c.strokeStyle = "#fff"; c.lineJoin = "round"; c.strokeText(text, tx, ty); c.fillStyle = ink; c.fillText(text, tx, ty); };
  c.textAlign = "center"; c.font = `${12 * unit}px system-ui, sans-serif`;
  for (const [name, rx, ry] of extent.rooms || []) {
    const half = c.measureText(name).width / 2 + 4 * unit;  // whole, wherever the map ends
    if (px(rx) > 0 && px(rx) < canvas.width) write(name, Math.max(half, Math.min(canvas.width - half, px(rx))), py(ry), "#555");
  }
  c.globalAlpha = old ? .45 : 1;
  c.lineWidth = 2 * unit; c.strokeStyle = "#1769c2"; c.beginPath();
  path.forEach((p, i) => i ? c.lineTo(px(p[0]), py(p[1])) : c.moveTo(px(p[0]), py(p[1])));
  if (path.length && !old) c.lineTo(px(x), py(y));
  c.stroke();
  if (start) { c.fillStyle = "#1769c2"; c.fillRect(px(start[0]) - 5 * unit, py(start[1]) - 5 * unit, 10 * unit, 10 * unit); write("start", px(start[0]), py(start[1]) + 26 * unit, "#1769c2"); }
  goals.forEach(([gx, gy], i) => { star(c, px(gx), py(gy), unit); if (!i) write("goal", px(gx), py(gy) - 12 * unit, "#0f6b43"); });
  c.fillStyle = "rgb(23 105 194 / .2)"; c.beginPath(); c.arc(px(x), py(y), Math.max(0, 2 * sigma * scale), 0, 7); c.fill();
  const radius = Math.max(6 * unit, extent.radius_m * scale);
  c.fillStyle = "#d33c1d"; c.strokeStyle = "#fff"; c.lineWidth = 3; c.beginPath(); c.arc(px(x), py(y), radius, 0, 7); c.fill(); c.stroke();
  c.save(); c.translate(px(x), py(y)); c.rotate(-yaw); c.fillStyle = "#d33c1d"; c.beginPath();
  c.moveTo(2 * radius, 0); c.lineTo(.9 * radius, .8 * radius); c.lineTo(.9 * radius, -.8 * radius); c.closePath(); c.fill(); c.stroke(); c.restore();
  c.globalAlpha = 1;
  const meters = [.1, .2, .5, 1, 2, 5, 10, 20].find((one) => one * scale > 50 * unit) || 50, end = canvas.width - 12 * unit, base = canvas.height - 12 * unit;
  c.lineWidth = 5 * unit; for (const color of ["#fff", "#223"]) { c.strokeStyle = color; c.beginPath(); c.moveTo(end - meters * scale, base); c.lineTo(end, base); c.stroke(); c.lineWidth = 2 * unit; }
  write(`${meters} m`, end - meters * scale / 2, base - 7 * unit);
  $("pose-text").textContent = old ? (state.pose ? "where the robot was last" : "where the robot was in the run before") : `x ${x.toFixed(2)} y ${y.toFixed(2)} m, ±${(200 * sigma).toFixed(0)} cm`;
  $("map").classList.toggle("old", old);
}

function star(c, x, y, unit) {
  c.beginPath();
  for (let i = 0; i < 10; i++) { const length = (i % 2 ? 3 : 8) * unit, angle = Math.PI * (i / 5 - .5); c.lineTo(x + length * Math.cos(angle), y + length * Math.sin(angle)); }
  c.closePath(); c.fillStyle = "#0f8a55"; c.fill(); c.lineWidth = 2; c.strokeStyle = "#fff"; c.stroke();
}
