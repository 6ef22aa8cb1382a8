// A shared worker: one stream of changes for all tabs of the console.

import { changes } from "/lib/changes.js";

const ports = new Set(); // of the tabs that follow
let end = null; // ends the stream; null: there is none
let lost = false;

function tell(said) {
  lost = said.lost ?? lost;
  ports.forEach((port) => port.postMessage(said));
}

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data === "follow") ports.add(port);
    else ports.delete(port);
    if (ports.size > 0) {
      end ??= changes(tell);
      port.postMessage({ lost });
    } else {
      end?.();
      end = null;
      lost = false;
    }
  };
};
