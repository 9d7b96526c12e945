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
