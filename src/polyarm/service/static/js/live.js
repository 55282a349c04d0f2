// Staying up to date: the server says that a study has changed, and the page fetches it again, not too often.

const SHORTEST_GAP = 1000;
const RETRY_AFTER = 3000;

/**
 * Calls `refresh` (async) whenever the study behind `path` has changed; `onStatus` gets live, reconnecting or paused.
 *
 * A page that nobody looks at gives its connection back: browsers allow six per server, all tabs together.
 */
export function follow(path, refresh, onStatus, signal) {
  const request = makeThrottle(refresh, signal);
  let source = null;
  let retry = null;

  function open() {
    close();
    source = new EventSource(path);
    source.addEventListener("open", () => onStatus("live"));
    source.addEventListener("changed", request);
    source.addEventListener("error", () => {
      onStatus("reconnecting");
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      request(); // asks in a way that says what is wrong: signed out, study deleted
      retry = setTimeout(open, RETRY_AFTER);
    });
  }

  function close() {
    clearTimeout(retry);
    source?.close();
  }

  function onVisibility() {
    if (document.hidden) {
      close();
      onStatus("paused");
    } else {
      open();
    }
  }

  document.addEventListener("visibilitychange", onVisibility, { signal });
  signal.addEventListener("abort", close);
  onVisibility();
  return request;
}

/** Runs a task at most once a second, one at a time, and once more if asked meanwhile; slow answers slow it down. */
function makeThrottle(task, signal) {
  let timer = null;
  let running = false;
  let again = false;
  let earliest = 0;

  async function run() {
    timer = null;
    running = true;
    again = false;
    const started = performance.now();
    const retryIn = await task();
    const now = performance.now();
    earliest = now + Math.max(SHORTEST_GAP, now - started, retryIn ?? 0);
    running = false;
    if (again || retryIn) request();
  }

  function request() {
    if (signal.aborted) return;
    again = running;
    if (running || timer !== null) return;
    timer = setTimeout(run, Math.max(0, earliest - performance.now()));
  }

  signal.addEventListener("abort", () => clearTimeout(timer));
  return request;
}
