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
