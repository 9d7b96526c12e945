// @ts-check
// The engine in its own thread, as functions that return promises.

/**
 * What the engine says about a model.
 * @typedef {object} Description
 * @property {string} mixer
 * @property {number} layers
 * @property {number} h
 * @property {number} n
 * @property {number} kernels rows of a picture of kernels
 * @property {number} len training length
 * @property {number | null} maxLen the most positions of a stream
 * @property {string[]} labels
 * @property {string} task
 * @property {string} simd
 * @property {"sound" | "text" | "kernels"} use
 * @property {number} rate samples per second (sound)
 * @property {number} trainedRate
 * @property {string} why nothing but kernels
 */

const Engine = (() => {
  // (func (result v128) (i8x16.popcnt (i8x16.splat (i32.const 0))))
  const SIMD = Uint8Array.of(
    0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
  );

  /** @type {Promise<Worker> | undefined} */
  let worker;
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
  const waiting = new Map();
  let count = 0;

  /** Which build this browser runs; `?engine=plain` or `?engine=simd` in the address decides otherwise. */
  function build() {
    const wanted = new URLSearchParams(location.search).get("engine");
    if (wanted === "plain" || wanted === "simd") return wanted;
    return WebAssembly.validate(SIMD) ? "simd" : "plain";
  }

  async function start() {
    const [source, module] = await Promise.all([Assets.bytes("worker.js"), Assets.bytes(`dss-${build()}.wasm`)]);
    // From a blob, since a page in a folder may not start a thread from a file.
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const thread = new Worker(url);
    URL.revokeObjectURL(url);
    thread.onmessage = ({ data }) => {
      const promise = waiting.get(data.id);
      waiting.delete(data.id);
      if (data.fatal) stop(thread, data.error);
      if (data.error === undefined) promise?.resolve(data.value);
      else promise?.reject(new Error(data.error));
    };
    thread.onerror = (event) => stop(thread, event.message || "the engine could not be started");
    await send(thread, "start", { module });
    return thread;
  }

  /** @param {Worker} thread @param {string} why */
  function stop(thread, why) {
    thread.terminate();
    worker = undefined;
    for (const { reject } of waiting.values()) reject(new Error(why));
    waiting.clear();
  }

  /** @param {Worker} thread @param {string} op @param {object} message @returns {Promise<any>} */
  function send(thread, op, message) {
    return new Promise((resolve, reject) => {
      const id = ++count;
      waiting.set(id, { resolve, reject });
      thread.postMessage({ id, op, ...message });
    });
  }

  /** @param {string} op @param {object} [message] @returns {Promise<any>} */
  async function call(op, message = {}) {
    worker ??= start();
    worker.catch(() => (worker = undefined));
    return send(await worker, op, message);
  }

  return {
    build,
    /** @param {ArrayBuffer} file @param {number} ratio @returns {Promise<Description>} */
    load: (file, ratio) => call("load", { file, ratio }),
    /** @param {number} window @param {number} hop @returns {Promise<void>} */
    listen: (window, hop) => call("listen", { window, hop }),
    /** @param {Float32Array} samples @param {number} block
     *  @returns {Promise<{ probabilities: Float32Array, micros: number }>} */
    push: (samples, block) => call("push", { samples, block }),
    /** @param {number} block @param {number} limit @returns {Promise<{ step: number, blockStep: number }>} */
    measure: (block, limit) => call("measure", { block, limit }),
    /** @param {{ prompt: string, temperature: number, topK: number, topP: number, seed: bigint }} settings
     *  @returns {Promise<{ micros: number }>} */
    begin: (settings) => call("begin", settings),
    /** @param {number} count @param {number} milliseconds
     *  @returns {Promise<{ bytes: Uint8Array, tokens: number, micros: number }>} */
    write: (count, milliseconds) => call("write", { count, milliseconds }),
    /** @param {number} layer @param {number} columns @param {boolean} logarithmic @returns {Promise<Float32Array>} */
    kernels: (layer, columns, logarithmic) => call("kernels", { layer, columns, logarithmic }),
  };
})();
