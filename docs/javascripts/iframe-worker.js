// The search runs in a worker, which browsers do not start for pages opened as files: there a hidden frame is one.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script>window.postMessage = data => parent.postMessage(data, "*")</script>
        <script src="${address}"></script>`;
      this.frame = new Promise((resolve) => frame.addEventListener("load", () => resolve(frame.contentWindow)));
      window.addEventListener("message", ({ source, data }) => {
        if (source === frame.contentWindow) this.dispatchEvent(new MessageEvent("message", { data }));
      });
      document.body.append(frame);
    }

    postMessage(data) {
      // The frame's own postMessage now answers, so this page's is called for it.
      this.frame.then((frame) => window.postMessage.call(frame, data, "*"));
    }
  };
}
