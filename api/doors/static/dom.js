// What the views share. All that comes from files and from the service is set as text, never as HTML.

export const $ = (id) => document.getElementById(id);

export function make(tag, text, more = {}) {
  const found = document.createElement(tag);
  found.textContent = text;
  return Object.assign(found, more);
}

export function options(select, rows) {
  const before = select.value;
  select.replaceChildren(...rows.map(([value, text]) => make("option", text, { value })));
  if (rows.some(([value]) => value === before)) select.value = before;
}

export function fail(error) {
  $("error").textContent = error ? error.message : "";
  $("error").hidden = !error;
}

// Run what a reader asked for; say what goes wrong.
export function safely(act) {
  return async (...given) => {
    try {
      fail(null);
      return await act(...given);
    } catch (error) {
      fail(error);
    }
  };
}

// Have a file read, chosen or dropped. What was there before is refused from then on, whether the file is any good or not.
export function onFile(input, area, take, refuse) {
  const read = safely(async (file) => {
    if (!file) return;
    refuse(file.name, new Error(`${file.name}: is being read`));
    try {
      await take(await file.text(), file.name);
    } catch (error) {
      input.value = "";
      refuse(file.name, error);
      throw error;
    }
  });
  input.addEventListener("change", () => read(input.files[0]));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    area.addEventListener(kind, (event) => {
      event.preventDefault();
      area.classList.toggle("over", kind === "dragover");
      if (kind !== "drop") return;
      input.value = "";
      read(event.dataTransfer.files[0]);
    });
  }
}

export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", "", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

// Leave out what is empty on the right; small pictures are not blown up, large ones scroll on a small screen.
function crop(svg) {
  const [, , whole, height] = svg.getAttribute("viewBox").split(" ").map(Number), { x, width } = svg.getBBox();
  const right = width ? Math.min(whole, Math.ceil(x + width) + 24) : whole;
  svg.setAttribute("viewBox", `0 0 ${right} ${height}`);
  svg.style.minWidth = `${0.7 * right}px`;
  svg.style.maxWidth = `${1.1 * right}px`;
}

// Show an SVG of the service; pointer or arrow keys tell what each thing in it is.
export function picture(box, text) {
  const svg = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
  const details = make("p", "", { className: "details" });
  const told = new Map();
  for (const title of svg.querySelectorAll("title")) {
    told.set(title.parentNode, title.textContent);
    title.remove();
  }
  details.setAttribute("aria-live", "polite");
  details.textContent = told.size ? "Point at a thing, or use the arrow keys here, to be told what it is." : "";
  const items = [...svg.querySelectorAll(".item")];
  let at = -1;
  const choose = (item) => {
    svg.querySelector(".chosen")?.classList.remove("chosen");
    item.classList.add("chosen");
    details.textContent = told.get(item);
    details.classList.add("told");
  };
  const scroll = make("div", "", { className: "scroll", tabIndex: 0 });
  scroll.setAttribute("role", "group");
  scroll.setAttribute("aria-label", `${svg.getAttribute("aria-label")}: arrow keys go through what is drawn`);
  svg.addEventListener("pointerover", (event) => told.has(event.target) && choose(event.target));
  scroll.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!step || !items.length) return;
    event.preventDefault();
    at = Math.max(0, Math.min(items.length - 1, at + step));
    choose(items[at]);
    items[at].scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  const left = box.querySelector(".scroll")?.scrollLeft ?? 0;
  const focused = box.contains(document.activeElement);
  scroll.append(svg);
  box.replaceChildren(scroll, details);
  crop(svg);
  scroll.scrollLeft = left;
  if (focused) scroll.focus({ preventScroll: true });
}
