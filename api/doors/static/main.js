// The views of the page, by the part of the address after #.

import * as cluster from "./cluster.js";
import { $, safely } from "./dom.js";
import * as replay from "./replay.js";
import * as solve from "./solve.js";

const views = { solve, cluster, replay };
const started = new Set();

async function turn() {
  const name = location.hash.slice(1) in views ? location.hash.slice(1) : "solve";
  for (const link of document.querySelectorAll("nav a")) {
    const mine = link.hash === `#${name}`;
    if (mine) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    $(link.hash.slice(1)).hidden = !mine;
    if (!mine) views[link.hash.slice(1)].stop?.();
  }
  dispatchEvent(new Event("resize"));  // what was hidden could not be drawn
  if (started.has(name) && name !== "cluster") return;
  started.add(name);
  await views[name].start?.();
}

// a file that misses its place would leave the page
for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
addEventListener("hashchange", safely(turn));
safely(turn)();
