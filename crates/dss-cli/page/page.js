// @ts-check
// What all panels share: elements, numbers for people, errors.

const Page = (() => {
  /** The element with an id. @param {string} id @returns {any} */
  function element(id) {
    const found = document.getElementById(id);
    if (!found) throw new Error(`the page has no element ${id}`);
    return found;
  }

  /** Three digits, no more. @param {number} x */
  function number(x) {
    if (!Number.isFinite(x)) return "–";
    if (Math.abs(x) >= 100) return Math.round(x).toLocaleString("en").replaceAll(",", "\u202f");
    return String(Number(x.toPrecision(Math.abs(x) < 10 ? 2 : 3)));
  }

  /** Shows what went wrong. @param {unknown} error */
  function fail(error) {
    element("error-text").textContent = error instanceof Error ? error.message : String(error);
    element("error").hidden = false;
  }

  function clear() {
    element("error").hidden = true;
  }

  /** Runs something that may fail. @param {() => Promise<void>} action */
  async function attempt(action) {
    clear();
    try {
      await action();
    } catch (error) {
      fail(error);
    }
  }

  /** For those who listen to the page. @param {string} text */
  function say(text) {
    element("said").textContent = text;
  }

  /** The next moment to draw; soon, even if the page is out of sight. */
  const frame = () =>
    new Promise((resolve) => {
      requestAnimationFrame(resolve);
      setTimeout(resolve, 50);
    });

  element("error-close").onclick = clear;

  return { element, number, fail, clear, attempt, say, frame };
})();
