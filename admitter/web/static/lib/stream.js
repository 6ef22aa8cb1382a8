// A shared worker: one stream of changes for all tabs of the console.

const RETRY_MS = 3000;
const ports = new Set();
let source = null;

function follow() {
  if (source !== null || ports.size === 0) return;
  source = new EventSource("/api/changes");
  source.onmessage = ({ data }) => ports.forEach((port) => port.postMessage(data));
  source.onerror = () => {
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    setTimeout(follow, RETRY_MS);
  };
}

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data === "follow") ports.add(port);
    else ports.delete(port);
    if (ports.size === 0) {
      source?.close();
      source = null;
    }
    follow();
  };
};
