// A browser starts no Worker for a page that was opened from a file: run the search in a hidden frame instead, with the
// same messages. The theme asks for Worker(url), postMessage, "message"; its script knows that name by IFrameWorker.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((done, fail) => {
        const script = inside.document.createElement("script");
        Object.assign(script, { src: url, onload: done, onerror: fail });
        inside.document.body.append(script);
      });
      this.inside = inside;
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
