// The stream in which the server tells of changes.

const RETRY_MS = 3000;
const SILENT_MS = 40000; // the server says something every 15 s

// Tells {revision} of each change, {lost: true} when the stream breaks off, and {lost: false} when it is there again.
// It is opened again and again: by the browser, or here if the server has refused, or is silent since a network has
// gone that ends no connection. What is returned ends it.
export function changes(tell) {
  let source = null;
  let silence = 0;
  function within(time) {
    clearTimeout(silence);
    silence = setTimeout(anew, time);
  }
  function anew() {
    tell({ lost: true });
    source.close();
    open();
  }
  function open() {
    source = new EventSource("/api/changes");
    source.onopen = () => tell({ lost: false });
    source.onmessage = ({ data }) => {
      within(SILENT_MS);
      tell({ revision: data });
    };
    source.addEventListener("still", () => within(SILENT_MS));
    source.onerror = () => {
      tell({ lost: true });
      if (source.readyState === EventSource.CLOSED) within(RETRY_MS);
    };
    within(SILENT_MS);
  }
  open();
  return () => {
    clearTimeout(silence);
    source.close();
  };
}
