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
