// A log of a Scheduler, event by event.

import { drawCluster } from "./cluster.js";
import { $, onFile, safely } from "./dom.js";
import { ask } from "./net.js";

let found = null, shades = new Map(), timer = 0, drawing = false;
const at = () => Number($("step").value), last = () => found.frames.length - 1;

// What holds after an event: the frames up to it say what each changed.
function stateAt(step) {
  const state = { cluster: found.cluster, held: {}, down: [], waiting: [], waits: 0 };
  for (const { held, ...rest } of found.frames.slice(0, step + 1)) {
    Object.assign(state, rest);
    Object.assign(state.held, held);
  }
  for (const job in state.held) if (!state.held[job]) delete state.held[job];
  return state;
}

async function draw() {
  if (drawing) return;
  drawing = true;
  try {
    for (let step = -1; step !== at();) {
      step = at();  // it may move on meanwhile
      const state = stateAt(step), more = state.waits - state.waiting.length;
      $("step").setAttribute("aria-valuetext", state.text);
      $("replay-now").textContent = `${step + 1} of ${found.frames.length}, at ${+state.now.toFixed(3)} s: ${state.text}`;
      $("replay-waiting").textContent = state.waits ? `Waiting: ${state.waiting.join(", ")}${more ? ` and ${more} more` : ""}` : "Nobody waits.";
      await drawCluster($("replay-picture"), state, shades);
    }
  } finally {
    drawing = false;
  }
}

async function go(step) {
  $("step").value = step;
  await draw();
}

export function stop() {
  clearTimeout(timer);
  timer = 0;
  $("play").textContent = "Play";
}

const next = safely(async () => {
  await go(at() + 1);
  if (timer && at() < last()) timer = setTimeout(next, 1000 / Number($("speed").value));
  else stop();
});

export async function replay(log) {
  stop();
  found = await ask("POST", "/v1/replay", { log });
  if (!found.frames.length) throw new Error("log: has no event yet");
  // by the first start, so that colours are the same in whatever order events are looked at
  shades = new Map([...new Set(found.frames.flatMap(({ held }) => Object.keys(held ?? {})))].map((job, i) => [job, i]));
  $("step").max = last();
  $("player").hidden = false;
  await go(0);
}

for (const [id, kind, step] of [["back", "click", -1], ["forward", "click", 1], ["step", "input", 0]]) {
  $(id).addEventListener(kind, safely(() => {
    stop();
    return go(at() + step);
  }));
}
$("play").addEventListener("click", () => {
  if (timer) return stop();
  if (at() === last()) $("step").value = -1;
  $("play").textContent = "Pause";
  timer = setTimeout(next, 0);
});
onFile($("log-file"), $("replay-drop"), replay, () => {
  stop();
  $("player").hidden = true;
});
