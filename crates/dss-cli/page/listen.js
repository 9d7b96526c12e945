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
