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
// @ts-check
// Where sound comes from: a file, or a microphone.

const Sound = (() => {
  const MAX_FILE = 200e6;

  /** Where the script of the audio thread is. In a folder, only one within its own address may be loaded. */
  async function tapAddress() {
    if (location.protocol !== "file:") return "tap.js";
    return `data:text/javascript,${encodeURIComponent(new TextDecoder().decode(await Assets.bytes("tap.js")))}`;
  }

  /**
   * The samples of a sound file, as one channel at a rate.
   * @param {ArrayBuffer} file @param {number} rate
   * @returns {Promise<AudioBuffer>}
   */
  async function decode(file, rate) {
    if (file.byteLength > MAX_FILE) throw new Error("this file is too long for the page; cut it first");
    const context = new OfflineAudioContext(1, 1, rate);
    try {
      return await context.decodeAudioData(file.slice(0));
    } catch {
      throw new Error("this is not a sound file that the browser can read; try WAV, FLAC, MP3 or Ogg");
    }
  }

  /** The mean of all channels. @param {AudioBuffer} buffer */
  function mono(buffer) {
    const mixed = buffer.getChannelData(0).slice();
    for (let c = 1; c < buffer.numberOfChannels; c++) {
      const channel = buffer.getChannelData(c);
      for (let i = 0; i < mixed.length; i++) mixed[i] += channel[i];
    }
    if (buffer.numberOfChannels > 1) for (let i = 0; i < mixed.length; i++) mixed[i] /= buffer.numberOfChannels;
    return mixed;
  }

  /**
   * Listens to the microphone until `stop` is called. Browsers that cannot resample it hear it at their own rate.
   * @param {number} rate samples per second wished for
   * @param {(samples: Float32Array) => void} heard
   * @returns {Promise<{ rate: number, stop: () => void }>}
   */
  async function microphone(rate, heard) {
    if (!navigator.mediaDevices?.getUserMedia || !window.AudioWorkletNode)
      throw new Error("the browser gives the microphone only to pages from https, localhost or a folder");
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({
        audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false },
      });
    } catch (error) {
      const refused = error instanceof DOMException && error.name === "NotAllowedError";
      throw new Error(
        refused
          ? "the microphone was not allowed; allow it in the address bar, or open a sound file"
          : `no microphone could be opened (${error instanceof Error ? error.message : error})`,
      );
    }
    let context = new AudioContext({ sampleRate: rate });
    const stop = () => {
      for (const track of stream.getTracks()) track.stop();
      context.close();
    };
    try {
      let source;
      try {
        source = context.createMediaStreamSource(stream);
      } catch {
        context.close();
        context = new AudioContext();
        source = context.createMediaStreamSource(stream);
      }
      await context.audioWorklet.addModule(await tapAddress());
      const tap = new AudioWorkletNode(context, "tap", { numberOfInputs: 1, numberOfOutputs: 0 });
      tap.port.onmessage = ({ data }) => heard(data);
      source.connect(tap);
      await context.resume();
    } catch (error) {
      stop();
      throw error;
    }
    return { rate: context.sampleRate, stop };
  }

  /**
   * Plays sound aloud; the answer stops it.
   * @param {Float32Array} samples @param {number} rate @param {() => void} ended
   */
  function play(samples, rate, ended) {
    const context = new AudioContext();
    const buffer = context.createBuffer(1, samples.length, rate);
    buffer.copyToChannel(/** @type {Float32Array<ArrayBuffer>} */ (samples), 0);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(context.destination);
    source.onended = () => {
      context.close();
      ended();
    };
    source.start();
    return { seconds: () => context.currentTime, stop: () => source.stop() };
  }

  return { decode, mono, microphone, play };
})();
// @ts-check
// Pictures on canvases, sharp on every screen and in the colours of the page.

const Plot = (() => {
  /**
   * A canvas ready to be drawn on, in CSS pixels, and empty.
   * @param {HTMLCanvasElement} canvas
   */
  function begin(canvas) {
    const scale = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
  }

  /** A colour of the style sheet. @param {string} name */
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  /**
   * A wave: samples [from, from + span) across the canvas.
   * @param {HTMLCanvasElement} canvas @param {Float32Array} samples @param {number} count how many there are
   * @param {number} from @param {number} span
   */
  function wave(canvas, samples, count, from, span) {
    const { context, width, height } = begin(canvas);
    const middle = height / 2;
    context.fillStyle = colour("line");
    context.fillRect(0, middle - 0.5, width, 1);
    let peak = 0.05;
    for (let i = from; i < count; i++) peak = Math.max(peak, Math.abs(samples[i]));
    context.fillStyle = colour("wave");
    for (let x = 0; x < width; x++) {
      const start = from + Math.floor((x / width) * span);
      const end = Math.min(Math.max(from + Math.floor(((x + 1) / width) * span), start + 1), count);
      if (start >= count) break;
      let [low, high] = [0, 0];
      for (let i = start; i < end; i++) {
        low = Math.min(low, samples[i]);
        high = Math.max(high, samples[i]);
      }
      const [top, bottom] = [high, low].map((y) => middle - (y / peak) * (middle - 2));
      context.fillRect(x, top, 1, Math.max(1, bottom - top));
    }
  }

  /**
   * One class's probability over time, as bars.
   * @param {HTMLCanvasElement} canvas @param {(i: number) => number} value @param {number} count how many there are
   * @param {number} from @param {number} span @param {boolean} strong
   */
  function bars(canvas, value, count, from, span, strong) {
    const { context, width, height } = begin(canvas);
    context.fillStyle = colour("line");
    context.fillRect(0, height - 1, width, 1);
    context.fillStyle = colour(strong ? "accent" : "bar");
    for (let x = 0; x < width; x++) {
      const i = from + Math.floor((x / width) * span);
      if (i >= count) break;
      const tall = value(i) * height;
      context.fillRect(x, height - tall, 1, tall);
    }
  }

  /**
   * A time axis: round seconds in [begin, begin + span], as many as there is room for.
   * @param {HTMLElement} axis @param {number} begin @param {number} span
   */
  function times(axis, begin, span) {
    const rough = span / Math.max(1, axis.clientWidth / 60);
    const decade = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5].map((factor) => factor * decade).find((size) => size >= rough) ?? 10 * decade;
    const ticks = [];
    for (let i = Math.ceil(begin / step - 1e-6); i * step <= begin + span * (1 + 1e-6); i++) {
      const tick = document.createElement("span");
      tick.textContent = `${Number((i * step).toPrecision(6))} s`;
      tick.style.left = `${(100 * (i * step - begin)) / span}%`;
      ticks.push(tick);
    }
    axis.replaceChildren(...ticks);
  }

  /** A vertical line. @param {HTMLCanvasElement} canvas @param {number} share from 0 to 1 */
  function mark(canvas, share) {
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.fillStyle = colour("ink");
    context.fillRect(share * canvas.clientWidth, 0, 1, canvas.clientHeight);
  }

  /** @param {string} hex #rrggbb */
  const parts = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

  /**
   * Numbers from -1 to 1 as colours, one pixel each; the style sheet makes it as large as it has to be.
   * @param {HTMLCanvasElement} canvas @param {Float32Array} values @param {number} rows
   */
  function heat(canvas, values, rows) {
    const columns = values.length / rows;
    [canvas.width, canvas.height] = [columns, rows];
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const image = context.createImageData(columns, rows);
    const [zero, plus, minus] = ["heat-zero", "heat-plus", "heat-minus"].map((name) => parts(colour(name)));
    values.forEach((x, i) => {
      const end = x < 0 ? minus : plus;
      // Small numbers are most of a kernel: the root brings them out.
      const share = Math.sqrt(Math.min(1, Math.abs(x)));
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = zero[c] + (end[c] - zero[c]) * share;
      image.data[4 * i + 3] = 255;
    });
    context.putImageData(image, 0, 0);
  }

  return { wave, bars, times, mark, heat };
})();
// @ts-check
// The panel of models that take sound: where it comes from, what is heard, how fast.

const Listen = (() => {
  /** Seconds of the microphone that are shown. */
  const SHOWN = 5;
  /** A sound that stays below this is silence: what a model says about it means nothing. */
  const SILENCE = 0.003;
  /** Microseconds per sample of one stream. */
  let cost = 0;

  const $ = Page.element;
  /** @type {Description} */
  let model;
  /** @type {ArrayBuffer} */
  let file;
  /** The sound of the last file and its name, to be heard again after a change of the settings.
   *  @type {{ bytes: ArrayBuffer, name: string } | undefined} */
  let last;
  /** @type {Tape | undefined} */
  let tape;
  /** @type {(() => void) | undefined} */
  let stopMicrophone;
  /** @type {ReturnType<typeof Sound.play> | undefined} */
  let player;
  /** Only the newest run draws. */
  let run = 0;
  /** @type {{ item: HTMLElement, canvas: HTMLCanvasElement, value: HTMLElement }[]} */
  let rows = [];

  /** What was heard, and what was said about it after each block. */
  class Tape {
    /** @param {number} rate @param {number} block @param {number} classes @param {number} span samples shown at once */
    constructor(rate, block, classes, span) {
      this.rate = rate;
      this.block = block;
      this.classes = classes;
      this.span = span;
      this.samples = new Float32Array(2 * span);
      this.count = 0;
      this.answers = new Float32Array(2 * Math.ceil(span / block) * classes);
      this.rows = 0;
      this.heard = 0;
      this.micros = 0;
    }

    /** @param {Float32Array} samples whole blocks, but for the last @param {Float32Array} answers @param {number} micros */
    add(samples, answers, micros) {
      if (this.count + samples.length > this.samples.length) {
        const gone = Math.floor((this.count - this.span) / this.block) * this.block;
        this.samples.copyWithin(0, gone, this.count);
        this.answers.copyWithin(0, (gone / this.block) * this.classes, this.rows * this.classes);
        this.count -= gone;
        this.rows -= gone / this.block;
      }
      this.samples.set(samples, this.count);
      this.answers.set(answers, this.rows * this.classes);
      this.count += samples.length;
      this.rows += answers.length / this.classes;
      this.heard += samples.length;
      this.micros += micros;
    }

    /** The first sample that is shown. */
    from() {
      return Math.max(0, this.count - this.span);
    }

    /** Whether the newest so many samples are silent. @param {number} length */
    silent(length) {
      const newest = this.samples.subarray(Math.max(0, this.count - length), this.count);
      return newest.every((x) => Math.abs(x) < SILENCE);
    }

    /** The newest answer. */
    now() {
      return this.answers.subarray((this.rows - 1) * this.classes, this.rows * this.classes);
    }
  }

  const blockOf = (/** @type {Description} */ { rate }) => Math.max(1, Math.round(rate / 100));

  /** Begins to listen, as the settings say: with as many looks at the same sound as this machine has time for. */
  async function begin() {
    const looks = [4, 2].find((count) => count * cost * model.rate < 0.7e6) ?? 1;
    const hop = Math.max(1, Math.floor(model.len / looks));
    const everything = $("window").value === "all";
    await Engine.listen(everything ? 0 : looks * hop, everything ? 0 : hop);
  }

  /** The model for another rate. @param {number} rate */
  async function setRate(rate) {
    if (rate === model.rate) return;
    model = await Engine.load(file, model.trainedRate / rate);
    await measure();
  }

  async function measure() {
    const block = blockOf(model);
    const { step, blockStep } = await Engine.measure(block, Math.min(model.maxLen ?? Infinity, 1 << 20));
    cost = blockStep;
    $("step").textContent = `${Page.number(step)} µs`;
    $("block").textContent = `${Page.number(blockStep)} µs`;
    showSpeed(blockStep);
  }

  /** @param {number} micros per sample, of all looks together */
  function showSpeed(micros) {
    $("factor").textContent = `${Page.number(1e6 / (micros * model.rate))} ×`;
  }

  function draw() {
    if (!tape) return;
    const from = tape.from();
    const { samples, count, span, block, classes, answers } = tape;
    Plot.wave($("wave"), samples, count, from, span);
    Plot.times($("times"), (tape.heard - count + from) / tape.rate, span / tape.rate);
    const now = tape.rows ? tape.now() : undefined;
    const silent = tape.silent($("window").value === "all" ? count : model.len);
    const best = now && !silent ? now.indexOf(Math.max(...now)) : -1;
    rows.forEach(({ item, canvas, value }, c) => {
      item.classList.toggle("best", c === best);
      value.textContent = now ? `${Math.round(100 * now[c])} %` : "";
      const probability = (/** @type {number} */ i) => answers[i * classes + c];
      Plot.bars(canvas, probability, tape?.rows ?? 0, Math.floor(from / block), span / block, c === best);
    });
    $("word").textContent = best < 0 ? "" : model.labels[best];
    if (!now) $("sure").textContent = "Nothing heard yet: use the microphone, a clip or a sound file";
    else $("sure").textContent = silent ? "only silence" : `${Math.round(100 * now[best])} %`;
    $("heard").textContent = `${Page.number(tape.heard / tape.rate)} s`;
    if (player) for (const canvas of [$("wave"), ...rows.map((row) => row.canvas)])
      Plot.mark(canvas, (player.seconds() * tape.rate) / span);
  }

  function drawWhilePlaying() {
    if (!player) return;
    draw();
    requestAnimationFrame(drawWhilePlaying);
  }

  function halt() {
    run++;
    stopMicrophone?.();
    stopMicrophone = undefined;
    player?.stop();
    player = undefined;
    $("microphone").setAttribute("aria-pressed", "false");
    $("microphone").textContent = "Microphone";
    $("play").textContent = "Play";
  }

  /** Hears a sound file. @param {ArrayBuffer} bytes @param {string} name */
  async function hear(bytes, name) {
    halt();
    const mine = run;
    await setRate(Number($("rate").value));
    const samples = Sound.mono(await Sound.decode(bytes, model.rate));
    if (!samples.length) throw new Error("this sound file is empty");
    if (mine !== run) return;
    last = { bytes, name };
    await begin();
    const block = blockOf(model);
    tape = new Tape(model.rate, block, model.labels.length, Math.max(samples.length, block));
    $("source").textContent = name;
    // A tenth of a second at a time, so that there is something to see.
    const stride = 10 * block;
    for (let at = 0; at < samples.length; at += stride) {
      const part = samples.slice(at, at + stride);
      const { probabilities, micros } = await Engine.push(part, block);
      if (mine !== run) return;
      tape.add(part, probabilities, micros);
      showSpeed(tape.micros / tape.heard);
      draw();
    }
    $("play").disabled = false;
    Page.say(`${name}: ${$("word").textContent}, ${$("sure").textContent}`);
  }

  async function microphone() {
    if (stopMicrophone) {
      halt();
      return;
    }
    halt();
    const mine = run;
    /** @type {Float32Array[]} */
    let pending = [];
    let busy = false;
    const input = await Sound.microphone(Number($("rate").value), (samples) => {
      pending.push(samples);
      if (!busy) take().catch((error) => { halt(); Page.fail(error); });
    });
    stopMicrophone = input.stop;
    if (mine !== run) return input.stop();
    busy = true;
    await setRate(input.rate);
    await begin();
    const block = blockOf(model);
    tape = new Tape(model.rate, block, model.labels.length, Math.round(SHOWN * model.rate));
    const current = tape;
    $("microphone").setAttribute("aria-pressed", "true");
    $("microphone").textContent = "Stop";
    $("source").textContent = "the microphone";
    $("play").disabled = true;
    pending = [];
    busy = false;

    async function take() {
      const all = new Float32Array(pending.reduce((sum, part) => sum + part.length, 0));
      let at = 0;
      for (const part of pending) {
        all.set(part, at);
        at += part.length;
      }
      const whole = Math.floor(all.length / block) * block;
      if (!whole || mine !== run) return;
      if (all.length > 2 * model.rate) throw new Error("this browser is too slow for this model at this rate");
      busy = true;
      pending = [all.slice(whole)];
      const samples = all.slice(0, whole);
      const { probabilities, micros } = await Engine.push(samples, block);
      busy = false;
      if (mine !== run) return;
      current.add(samples, probabilities, micros);
      showSpeed(current.micros / current.heard);
      draw();
    }
  }

  function play() {
    if (player) {
      halt();
      draw();
      return;
    }
    if (!tape) return;
    const ended = () => {
      player = undefined;
      $("play").textContent = "Play";
      draw();
    };
    player = Sound.play(tape.samples.slice(0, tape.count), tape.rate, ended);
    $("play").textContent = "Stop";
    drawWhilePlaying();
  }

  /** Nothing is heard yet. */
  function forget() {
    tape = new Tape(model.rate, blockOf(model), model.labels.length, model.len);
    $("source").textContent = "";
    $("play").disabled = true;
    draw();
  }

  /** Shows a model. @param {Description} description @param {ArrayBuffer} bytes */
  async function open(description, bytes) {
    [model, file, last] = [description, bytes, undefined];
    const trained = model.trainedRate;
    const rates = [0.5, 1, 2, 3].map((factor) => factor * trained).filter((rate) => rate >= 3000 && rate <= 96000);
    const kilo = (/** @type {number} */ rate) => `${rate / 1000} kHz`;
    $("rate").replaceChildren(
      ...rates.map((rate) => {
        const factor = trained / rate;
        const how = factor === 1 ? "trained" : factor > 1 ? `Δ × ${factor}` : `Δ ÷ ${1 / factor}`;
        return new Option(`${kilo(rate)}, ${how}`, String(rate), rate === trained, rate === trained);
      }),
    );
    const seconds = Page.number(model.len / model.rate);
    $("window").replaceChildren(new Option(`the last ${seconds} s`, "last"), new Option("everything so far", "all"));
    $("window").options[1].disabled = model.maxLen !== null;
    $("classes").replaceChildren();
    rows = model.labels.map((label) => {
      const item = document.createElement("li");
      const name = document.createElement("span");
      const canvas = document.createElement("canvas");
      const value = document.createElement("span");
      name.textContent = label;
      name.className = "name";
      value.className = "value";
      canvas.setAttribute("aria-hidden", "true");
      item.append(name, canvas, value);
      $("classes").append(item);
      return { item, canvas, value };
    });
    forget();
    await measure();
  }

  const again = () => Page.attempt(async () => {
    if (stopMicrophone) {
      halt();
      await microphone();
    } else if (last) await hear(last.bytes, last.name);
    else {
      await setRate(Number($("rate").value));
      forget();
    }
  });

  $("microphone").onclick = () => Page.attempt(microphone);
  $("play").onclick = () => Page.attempt(async () => play());
  $("rate").onchange = again;
  $("window").onchange = again;
  $("sound-file").onchange = () => Page.attempt(async () => {
    const chosen = $("sound-file").files[0];
    if (chosen) await hear(await chosen.arrayBuffer(), chosen.name);
    $("sound-file").value = "";
  });
  for (const button of document.querySelectorAll("[data-clip]")) {
    const name = String(button.getAttribute("data-clip"));
    /** @type {HTMLElement} */ (button).onclick = () =>
      Page.attempt(async () => hear(await Assets.bytes(`clips/${name}.wav`), `the clip “${name}”`));
  }

  return { open, hear, halt, draw };
})();
// @ts-check
// The panel of models that write text.

const Write = (() => {
  const $ = Page.element;
  /** Milliseconds of work between two looks at the page. */
  const SLICE = 30;
  let run = 0;
  /** The file's name, for the command. */
  let name = "";

  /** The number in a field. @param {string} id @param {string} what @param {number} low @param {number} high */
  function field(id, what, low, high) {
    const value = $(id).value.trim() === "" ? NaN : Number($(id).value);
    if (!(value >= low && value <= high)) throw new Error(`${what} must be a number from ${low} to ${high}`);
    return value;
  }

  function settings() {
    const prompt = $("prompt").value;
    if (!prompt) throw new Error("write a prompt of at least one character");
    const seed = $("seed").value.trim();
    if (!/^\d{1,19}$/.test(seed)) throw new Error("the seed must be a whole number of at most 19 digits");
    const topK = field("top-k", "top-k", 0, 1e6);
    const length = field("length", "the length", 1, 1e6);
    if (!Number.isInteger(topK) || !Number.isInteger(length))
      throw new Error("top-k and the length must be whole numbers");
    return {
      prompt,
      temperature: field("temperature", "the temperature", 0, 100),
      topK,
      topP: field("top-p", "top-p", 1e-6, 1),
      seed: BigInt(seed),
      length,
    };
  }

  /** The command that writes the same text. @param {ReturnType<typeof settings>} wanted */
  function command({ prompt, temperature, topK, topP, seed, length }) {
    const quoted = `'${prompt.replaceAll("'", "'\\''")}'`;
    return (
      `dss generate ${name} --prompt ${quoted} --temperature ${temperature} --top-k ${topK} --top-p ${topP} ` +
      `--seed ${seed} --length ${length}`
    );
  }

  function halt() {
    run++;
    $("write").textContent = "Write";
  }

  async function write() {
    if ($("write").textContent === "Stop") return halt();
    const wanted = settings();
    const mine = ++run;
    const decoder = new TextDecoder();
    $("write").textContent = "Stop";
    $("text-out").replaceChildren();
    const given = document.createElement("b");
    given.textContent = wanted.prompt;
    const made = document.createTextNode("");
    $("text-out").append(given, made);
    $("command").textContent = command(wanted);
    $("same").hidden = false;
    let [tokens, micros] = [0, 0];
    try {
      await Engine.begin(wanted);
      while (tokens < wanted.length) {
        const part = await Engine.write(wanted.length - tokens, SLICE);
        if (mine !== run) return;
        tokens += part.tokens;
        micros += part.micros;
        const box = $("text-out");
        const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
        made.data += decoder.decode(part.bytes, { stream: true });
        if (atEnd) box.scrollTop = box.scrollHeight;
        $("speed").textContent = `${Page.number((1e6 * tokens) / micros)} tokens/s`;
        $("token-time").textContent = `${Page.number(micros / tokens)} µs`;
        $("written").textContent = `${tokens} of ${wanted.length}`;
        await Page.frame();
        if (mine !== run) return;
      }
      Page.say(`${tokens} tokens written`);
    } finally {
      if (mine === run) halt();
    }
  }

  /** Shows a model. @param {string} file its name */
  async function open(file) {
    name = file;
    $("text-out").replaceChildren();
    $("same").hidden = true;
    for (const id of ["speed", "token-time", "written"]) $(id).textContent = "–";
  }

  $("text-form").onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    Page.attempt(write);
  };
  $("new-seed").onclick = () => {
    $("seed").value = String(crypto.getRandomValues(new Uint32Array(1))[0]);
  };
  // Enter writes, as in every prompt; Shift+Enter begins a line.
  $("prompt").onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $("text-form").requestSubmit();
  };

  return { open, halt };
})();
// @ts-check
// The panel with the pictures of the kernels.

const Kernels = (() => {
  const $ = Page.element;
  /** @type {Description | undefined} */
  let model;
  let layer = 0;
  /** @type {Float32Array | undefined} */
  let picture;

  async function show() {
    if (!model) return;
    // A column per pixel of the screen.
    const columns = Math.min(1500, Math.max(200, Math.round($("heat").clientWidth * (window.devicePixelRatio || 1))));
    picture = await Engine.kernels(layer, columns, $("logarithmic").checked);
    draw();
  }

  function draw() {
    if (!model || !picture) return;
    Plot.heat($("heat"), picture, model.kernels);
    $("heat").classList.toggle("coarse", model.kernels < $("heat").clientHeight / 2);
    const length = model.rate ? `${Page.number(model.len / model.rate)} s` : `${model.len} steps`;
    $("heat").setAttribute("aria-label", `${model.kernels} kernels of layer ${layer + 1} over ${length}`);
    $("heat-from").textContent = model.rate ? "0 s" : "step 1";
    $("heat-to").textContent = length;
  }

  /** Shows a model. @param {Description} description */
  async function open(description) {
    [model, layer] = [description, 0];
    // Most of a long memory is short.
    $("logarithmic").checked = description.len > 4000;
    $("layers").replaceChildren(
      ...Array.from({ length: description.layers }, (_, i) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = String(i + 1);
        button.setAttribute("aria-label", `Layer ${i + 1}`);
        button.setAttribute("aria-pressed", String(i === 0));
        button.onclick = () => {
          layer = i;
          for (const [j, other] of [...$("layers").children].entries())
            other.setAttribute("aria-pressed", String(i === j));
          Page.attempt(show);
        };
        return button;
      }),
    );
    await show();
  }

  $("logarithmic").onchange = () => Page.attempt(show);

  return { open, draw };
})();
// @ts-check
// The model, and which panel it gets.

const App = (() => {
  const $ = Page.element;
  const PANELS = { sound: "sound-panel", text: "text-panel", kernels: "why-panel" };

  /**
   * Loads a model and shows what it can do. The one before stays if it cannot be loaded.
   * @param {ArrayBuffer} bytes @param {string} name
   */
  async function open(bytes, name) {
    document.body.setAttribute("aria-busy", "true");
    try {
      const model = await Engine.load(bytes, 1);
      Listen.halt();
      Write.halt();
      const size = bytes.byteLength < 1e6 ? `${Math.round(bytes.byteLength / 1e3)} kB` : `${(bytes.byteLength / 1e6).toFixed(1)} MB`;
      const facts = [
        model.mixer,
        model.layers === 1 ? "1 layer" : `${model.layers} layers`,
        `H ${model.h}`,
        `N ${model.n}`,
        `trained at length ${model.len}`,
        size,
        model.simd === "simd128" ? "WebAssembly with SIMD" : "WebAssembly without SIMD",
      ];
      const title = document.createElement("b");
      title.textContent = name;
      $("facts").replaceChildren(
        title,
        ...facts.flatMap((fact) => {
          const item = document.createElement("span");
          item.textContent = fact;
          return [" ", item];
        }),
      );
      for (const button of document.querySelectorAll("[data-model]"))
        button.setAttribute("aria-pressed", String(button.getAttribute("data-model") === name));
      for (const [use, panel] of Object.entries(PANELS)) $(panel).hidden = use !== model.use;
      $("kernel-panel").hidden = false;
      if (model.use === "sound") await Listen.open(model, bytes);
      if (model.use === "text") await Write.open(name);
      if (model.use === "kernels") $("why").textContent = model.why;
      await Kernels.open(model);
      Page.say(`${name} is ready`);
    } finally {
      document.body.removeAttribute("aria-busy");
    }
  }

  /** A file that was dropped or chosen: a model, or sound for the one that is there. @param {File} file */
  async function take(file) {
    const bytes = await file.arrayBuffer();
    if (file.type.startsWith("audio/") || /\.(wav|flac|mp3|ogg|opus|m4a|aac|webm)$/i.test(file.name)) {
      if ($("sound-panel").hidden) throw new Error("this is a sound file, but the model does not take sound; choose a speech model first");
      await Listen.hear(bytes, file.name);
    } else {
      await open(bytes, file.name);
    }
  }

  /** A model that comes with the page. @param {string} name */
  const shipped = (name) => Page.attempt(async () => open(await Assets.bytes(`models/${name}`), name));

  for (const button of document.querySelectorAll("[data-model]"))
    /** @type {HTMLElement} */ (button).onclick = () => shipped(String(button.getAttribute("data-model")));
  $("model-file").onchange = () => Page.attempt(async () => {
    const chosen = $("model-file").files[0];
    if (chosen) await open(await chosen.arrayBuffer(), chosen.name);
    $("model-file").value = "";
  });

  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("drop");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("drop");
  });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("drop");
    const file = event.dataTransfer?.files[0];
    if (file) Page.attempt(() => take(file));
  });

  const redraw = () => {
    Listen.draw();
    Kernels.draw();
  };
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  shipped("speech.safetensors");

  return { open };
})();
