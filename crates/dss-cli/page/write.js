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
