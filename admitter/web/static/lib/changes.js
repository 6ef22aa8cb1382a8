// The stream in which the server tells of changes.

const RETRY_MS = 3000;

// Tells {revision} of each change, {lost: true} when the stream breaks off, and {lost: false} when it is there again.
// It is opened again and again: by the browser, or here if the server has refused. What is returned ends it.
export function changes(tell) {
  let source = null;
  let retry = 0;
  function open() {
    source = new EventSource("/api/changes");
    source.onopen = () => tell({ lost: false });
    source.onmessage = ({ data }) => tell({ revision: data });
    source.onerror = () => {
      tell({ lost: true });
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS);
    };
  }
  open();
  return () => {
    clearTimeout(retry);
    source.close();
  };
}
