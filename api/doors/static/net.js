// Requests to the service, with the token of this tab.

const KEY = "gangplan-token";
const dialog = document.getElementById("ask-token");
let asked = null;

function askToken() {
  // one question, however many requests wait for its answer
  asked ??= new Promise((resolve) => {
    const field = document.getElementById("token");
    field.value = "";
    dialog.showModal();
    dialog.addEventListener("close", () => {
      if (field.value) sessionStorage.setItem(KEY, field.value);
      asked = null;
      resolve(Boolean(field.value));
    }, { once: true });
  });
  return asked;
}

// A body whose parts are JSON text already: documents have a hash of their text, in which 1.0 is not 1.
export function joined(texts, rest) {
  const parts = Object.entries(rest).filter(([, value]) => value != null && value !== "");
  const all = [...Object.entries(texts), ...parts.map(([key, value]) => [key, JSON.stringify(value)])];
  return `{${all.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(",")}}`;
}

export async function request(method, path, body) {
  const token = sessionStorage.getItem(KEY);
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  const content = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(path, { method, headers, body: content });
  if (response.status === 401 && (sessionStorage.getItem(KEY) !== token || await askToken())) {
    return request(method, path, body);
  }
  if (response.ok) return response;
  let error = { field: "service", problem: `answers ${response.status}` };
  try {
    error = (await response.json()).error ?? error;
  } catch { /* it was no JSON: the status says enough */ }
  throw new Error(`${error.field}: ${error.problem}`);
}

export async function ask(method, path, body) {
  return (await request(method, path, body)).json();
}

// Server-sent events by fetch, since an EventSource bears no token.
export async function* events(path) {
  const reader = (await request("GET", path)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s, 2)));
      if (fields.data) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}
