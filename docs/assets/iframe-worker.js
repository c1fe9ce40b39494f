// Browsers refuse workers to pages that are opened from the disk. There, the search of the site runs in a hidden frame.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      frame.contentDocument.open();
      frame.contentDocument.write("<!doctype html><title>search</title>");
      frame.contentDocument.close();
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = async (...scripts) => {
        for (const script of scripts) await this.load(script);
      };
      this.loaded = this.load(url);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`cannot load ${url}`));
        this.inside.document.body.append(script);
      });
    }

    // in order, and not before the script listens
    postMessage(data) {
      this.loaded = this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  }

  window.IFrameWorker = window.Worker = IFrameWorker;
}
