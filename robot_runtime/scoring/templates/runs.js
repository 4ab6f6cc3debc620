"use strict";
const form = document.querySelector("form"), rows = [...document.querySelectorAll("tbody tr")];
form.addEventListener("input", () => {
  const wanted = Object.fromEntries(new FormData(form));
  for (const row of rows)
    row.hidden = Object.entries(wanted).some(([name, value]) => value && (
      name === "since" ? row.dataset.date < value :
      name === "until" ? row.dataset.date > value : row.dataset[name] !== value));
  document.querySelector("output").textContent = rows.filter((row) => !row.hidden).length + " of " + rows.length;
});
