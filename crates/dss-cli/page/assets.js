// @ts-check
// Files that come with the page. A file server gives them as they are; a page opened from a folder may not read files,
// but may load scripts, so the build also writes each of them as a script that calls `dssAsset` with its bytes in base64.

const Assets = (() => {
  /** @type {Map<string, Promise<ArrayBuffer>>} */
  const loaded = new Map();
  /** @type {Map<string, string>} */
  const inlined = new Map();

  /** Called by the scripts. @type {any} */ (window).dssAsset = (
    /** @type {string} */ name,
    /** @type {string} */ base64,
  ) => inlined.set(name, base64);

  /** @param {string} base64 @returns {ArrayBuffer} */
  function decoded(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes.buffer;
  }

  /** @param {string} name @returns {Promise<ArrayBuffer>} */
  function fromScript(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `inline/${name}.js`;
      script.onload = () => {
        const base64 = inlined.get(name);
        script.remove();
        inlined.delete(name);
        if (base64 === undefined) reject(new Error(`${name} is damaged: build the page again`));
        else resolve(decoded(base64));
      };
      script.onerror = () => reject(new Error(`${name} is missing: build the page with web/build`));
      document.head.append(script);
    });
  }

  /** @param {string} name @returns {Promise<ArrayBuffer>} */
  async function fromServer(name) {
    let reply;
    try {
      reply = await fetch(name);
    } catch {
      throw new Error(`${name} could not be fetched: is the server still running?`);
    }
    if (!reply.ok) throw new Error(`${name} could not be fetched: the server says ${reply.status}`);
    return reply.arrayBuffer();
  }

  /**
   * The bytes of a file of this page. They are read once; callers may not change them.
   * @param {string} name
   * @returns {Promise<ArrayBuffer>}
   */
  function bytes(name) {
    let promise = loaded.get(name);
    if (!promise) {
      promise = location.protocol === "file:" ? fromScript(name) : fromServer(name);
      promise.catch(() => loaded.delete(name));
      loaded.set(name, promise);
    }
    return promise;
  }

  return { bytes };
})();
