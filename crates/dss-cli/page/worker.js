// @ts-check
// The engine's own thread: one WebAssembly module, one model. Messages are { id, op, ...arguments }; each gets one
// answer, { id, value } or { id, error, fatal }.

/** @type {any} */
let wasm;

/** @param {Uint8Array} bytes */
function put(bytes) {
  const at = wasm.dss_input(bytes.length);
  if (!at && bytes.length) throw new Error("there is not enough memory");
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
}

/** A copy of what a call left. */
function output() {
  return new Uint8Array(wasm.memory.buffer, wasm.dss_output(), wasm.dss_output_len()).slice();
}

const text = () => new TextDecoder().decode(output());
const numbers = () => new Float32Array(output().buffer);

/** @param {number} status */
function check(status) {
  if (status !== 0) throw new Error(text());
}

/** @param {Float32Array} samples */
function push(samples) {
  put(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength));
  check(wasm.dss_push());
}

/** Microseconds per call of `run`, over at least 20 calls and about so many milliseconds. */
function timed(run, milliseconds) {
  for (let i = 0; i < 20; i++) run();
  const start = performance.now();
  let calls = 0;
  let spent = 0;
  while (spent < milliseconds) {
    for (let i = 0; i < 20; i++) run();
    calls += 20;
    spent = performance.now() - start;
  }
  return (spent / calls) * 1000;
}

/** @type {Record<string, (message: any) => any>} */
const operations = {
  async start({ module }) {
    const { instance } = await WebAssembly.instantiate(module, {});
    wasm = instance.exports;
    wasm.dss_start();
  },

  load({ file, ratio }) {
    put(new Uint8Array(file));
    check(wasm.dss_load(ratio));
    return JSON.parse(text());
  },

  listen({ window, hop }) {
    check(wasm.dss_listen(window, hop));
  },

  /** Samples, block by block: the probabilities after each, one row after the other. */
  push({ samples, block }) {
    /** @type {Float32Array[]} */
    const rows = [];
    const start = performance.now();
    for (let at = 0; at < samples.length; at += block) {
      push(samples.subarray(at, at + block));
      rows.push(numbers());
    }
    const micros = (performance.now() - start) * 1000;
    const width = rows.length ? rows[0].length : 0;
    const probabilities = new Float32Array(rows.length * width);
    rows.forEach((row, i) => probabilities.set(row, i * width));
    return { probabilities, micros };
  },

  /** How long one step takes, alone and in blocks; the stream has to begin again after it. */
  measure({ block, limit }) {
    const one = Float32Array.of(0.01);
    const many = new Float32Array(block).fill(0.01);
    let position = Infinity;
    const run = (/** @type {Float32Array} */ samples) => () => {
      if (position + samples.length > limit) {
        check(wasm.dss_listen(0, 0));
        position = 0;
      }
      push(samples);
      position += samples.length;
    };
    return { step: timed(run(one), 60), blockStep: timed(run(many), 120) / block };
  },

  begin({ prompt, temperature, topK, topP, seed }) {
    put(new TextEncoder().encode(prompt));
    const start = performance.now();
    check(wasm.dss_begin(temperature, topK, topP, Number(seed & 0xffffffffn), Number(seed >> 32n)));
    return { micros: (performance.now() - start) * 1000 };
  },

  /** Tokens, one after the other, until there are enough or the time is up. */
  write({ count, milliseconds }) {
    const parts = [];
    const start = performance.now();
    let spent = 0;
    while (parts.length < count && spent < milliseconds) {
      if (wasm.dss_write(1) !== 0) {
        if (parts.length === 0) throw new Error(text());
        break;
      }
      parts.push(output());
      spent = performance.now() - start;
    }
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return { bytes, tokens: parts.length, micros: spent * 1000 };
  },

  kernels({ layer, columns, logarithmic }) {
    check(wasm.dss_kernels(layer, columns, logarithmic));
    return numbers();
  },
};

onmessage = async ({ data }) => {
  try {
    postMessage({ id: data.id, value: await operations[data.op](data) });
  } catch (error) {
    // A trap is a defect of the engine; its last words are in the output.
    const fatal = error instanceof WebAssembly.RuntimeError;
    const words = fatal ? `the engine stopped (${wasm ? text() || error.message : error.message}); load the model again` : error.message;
    postMessage({ id: data.id, error: words, fatal });
  }
};
