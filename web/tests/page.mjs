// The page in a browser, from a server and from a folder, against the program.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { FILES, FOLDER, dss, hear, launch, open, said, serve, text, write } from "./browser.mjs";

const SPEECH = `${FILES}/models/speech.safetensors`;
const TEXT = `${FILES}/models/text.safetensors`;
const CLIPS = readdirSync(`${FILES}/clips`).filter((name) => name.endsWith(".wav")).map((name) => name.slice(0, -4));
const WRITTEN = [
  { prompt: "ROMEO:", temperature: 0.8, topK: 0, topP: 1, seed: 1, length: 300 },
  { prompt: "To be, or", temperature: 1, topK: 10, topP: 0.9, seed: 12345678901, length: 200 },
  { prompt: "A", temperature: 0, topK: 0, topP: 1, seed: 0, length: 100 },
];

let browser, server;
before(async () => ([browser, server] = await Promise.all([launch(), serve()])));
after(async () => {
  await browser?.close();
  server?.stop();
});

/** The text of the program. */
const native = ({ prompt, temperature, topK, topP, seed, length }) =>
  dss(
    "generate", TEXT, "--prompt", prompt, "--temperature", temperature, "--top-k", topK, "--top-p", topP,
    "--seed", seed, "--length", length,
  ).slice(0, -1);

/** The probabilities of the program for a whole clip, by class. */
const nativeAnswer = (word) =>
  JSON.parse(dss("stream", SPEECH, `${FILES}/clips/${word}.wav`, "--json").trim().split("\n").at(-1)).probabilities;

/** The probabilities of the page for a clip, by class. */
const answer = (page, word) =>
  page.evaluate(async (word) => {
    const model = await Engine.load(await Assets.bytes("models/speech.safetensors"), 1);
    const samples = Sound.mono(await Sound.decode(await Assets.bytes(`clips/${word}.wav`), model.rate));
    await Engine.listen(0, 0);
    const { probabilities } = await Engine.push(samples, 160);
    const last = probabilities.slice(-model.labels.length);
    return Object.fromEntries(model.labels.map((label, i) => [label, last[i]]));
  }, word);

for (const [where, url] of [["a server", () => server.url], ["a folder", () => FOLDER]]) {
  describe(`from ${where}`, () => {
    test("loads, and asks nobody else", async () => {
      const { page, faults } = await open(browser, url());
      assert.match(await page.locator("#facts").textContent(), /WebAssembly with SIMD/);
      assert.match(await page.locator("#step").textContent(), /^[\d.\u202f]+ µs$/);
      assert.deepEqual(faults, []);
      await page.close();
    });

    test("classifies a real clip right, as the program does", async () => {
      const { page, faults } = await open(browser, url());
      assert.equal(await hear(page, "yes"), "yes");
      for (const word of CLIPS) {
        const [got, want] = [await answer(page, word), nativeAnswer(word)];
        assert.deepEqual(Object.keys(got).sort(), Object.keys(want).sort());
        for (const label in want) assert.ok(Math.abs(got[label] - want[label]) < 1e-4, `${word}: ${label}`);
      }
      assert.deepEqual(faults, []);
      await page.close();
    });

    test("writes the program's text", async () => {
      const { page, faults } = await open(browser, url());
      await text(page);
      for (const wanted of WRITTEN) assert.equal(await write(page, wanted), native(wanted));
      assert.match(await page.locator("#speed").textContent(), /tokens\/s$/);
      assert.deepEqual(faults, []);
      await page.close();
    });

    test("rejects broken files with a message, and keeps the current model", async () => {
      const { page } = await open(browser, url());
      const whole = readFileSync(SPEECH);
      const notFinite = Buffer.from(whole);
      notFinite.fill(0xff, whole.length - 8);
      for (const [buffer, message] of [
        [Buffer.from("hello"), /not a model that can be run/],
        [whole.subarray(0, whole.length / 2), /not a model that can be run/],
        [notFinite, /has the number NaN/],
        [Buffer.alloc(0), /not a model that can be run/],
      ]) {
        await page.locator("#model-file").setInputFiles({ name: "broken.safetensors", mimeType: "", buffer });
        await page.locator("#error").waitFor();
        assert.match(await page.locator("#error-text").textContent(), message);
        await page.getByRole("button", { name: "Close this message" }).click();
        assert.equal(await page.locator("#error").isVisible(), false);
      }
      await page.locator("#sound-file").setInputFiles({ name: "a.wav", mimeType: "audio/wav", buffer: Buffer.from("x") });
      await page.locator("#error").waitFor();
      assert.match(await page.locator("#error-text").textContent(), /not a sound file/);
      assert.equal(await hear(page, "yes"), "yes");
      await page.close();
    });

    test("hears the microphone", async () => {
      const { page, faults } = await open(browser, url());
      await page.getByRole("button", { name: "Microphone" }).click();
      await page.waitForFunction(() => parseFloat(document.getElementById("heard").textContent) > 1.5, null, {
        timeout: 30_000,
      });
      assert.match(await page.locator(".best .value").textContent(), /^\d+ %$/);
      await page.getByRole("button", { name: "Stop", exact: true }).click();
      await page.getByRole("button", { name: "Microphone" }).waitFor();
      assert.deepEqual(faults, []);
      await page.close();
    });
  });
}

test("both builds of the engine give the same", async () => {
  const results = [];
  for (const build of ["plain", "simd"]) {
    const { page, faults } = await open(browser, `${server.url}?engine=${build}`);
    const answers = [];
    for (const word of CLIPS) answers.push(await answer(page, word));
    await text(page);
    assert.match(await page.locator("#facts").textContent(), build === "plain" ? /without SIMD/ : /with SIMD/);
    results.push({ answers, written: await write(page, WRITTEN[0]) });
    assert.deepEqual(faults, []);
    await page.close();
  }
  const [plain, simd] = results;
  assert.equal(plain.written, simd.written);
  plain.answers.forEach((answer, i) => {
    for (const label in answer) assert.ok(Math.abs(answer[label] - simd.answers[i][label]) < 1e-5);
  });
});

test("a dropped file is a model or a sound", async () => {
  const { page } = await open(browser, server.url);
  const drop = (name, type, bytes) =>
    page.evaluate(
      ({ name, type, bytes }) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(bytes)], name, { type }));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
      },
      { name, type, bytes: [...bytes] },
    );
  await drop("word.wav", "audio/wav", readFileSync(`${FILES}/clips/yes.wav`));
  await said(page, "word.wav: yes");
  await drop("mine.safetensors", "", readFileSync(SPEECH));
  await said(page, "mine.safetensors is ready");
  await page.close();
});

test("another rate is another step", async () => {
  const { page } = await open(browser, server.url);
  await hear(page, "yes");
  await page.getByLabel("Rate").selectOption({ index: 0 });
  await page.waitForFunction(() => document.getElementById("said").textContent.includes("yes"));
  assert.equal(await page.locator("#heard").textContent(), "1 s");
  await page.close();
});

/** A sound file of silence. @param {number} seconds */
function silence(seconds) {
  const samples = 16000 * seconds;
  const wav = Buffer.alloc(44 + 2 * samples);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(36 + 2 * samples, 4);
  wav.write("WAVEfmt ", 8);
  [16, 1 | (1 << 16), 16000, 32000, 2 | (16 << 16)].forEach((field, i) => wav.writeUInt32LE(field, 16 + 4 * i));
  wav.write("data", 36);
  wav.writeUInt32LE(2 * samples, 40);
  return wav;
}

test("silence is not a word", async () => {
  const { page } = await open(browser, server.url);
  const shown = () => Promise.all(["#word", "#sure"].map((id) => page.locator(id).textContent()));
  const [word, hint] = await shown();
  assert.equal(word, "");
  assert.match(hint, /^Nothing heard yet/);
  await page.locator("#sound-file").setInputFiles({ name: "a.wav", mimeType: "audio/wav", buffer: silence(2) });
  await said(page, "a.wav: ");
  assert.deepEqual(await shown(), ["", "only silence"]);
  assert.equal(await page.locator(".best").count(), 0);
  assert.equal(await hear(page, "yes"), "yes");
  await page.close();
});

test("the wave has a time axis", async () => {
  const { page } = await open(browser, server.url);
  await hear(page, "yes");
  const ticks = await page.locator("#times span").allTextContents();
  assert.deepEqual([ticks[0], ticks.at(-1)], ["0 s", "1 s"]);
  const wide = await page.locator("#times span").last().evaluate((tick) => tick.offsetLeft);
  assert.equal(wide, await page.locator("#wave").evaluate((wave) => wave.clientWidth));
  await page.setViewportSize({ width: 360, height: 700 });
  await page.waitForFunction((before) => document.querySelectorAll("#times span").length < before, ticks.length);
  await page.close();
});

test("everything can be reached with the keyboard", async () => {
  const { page } = await open(browser, server.url);
  const press = async (name) => {
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press("Tab");
      const found = await page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent?.trim());
      if (found === name) return;
    }
    assert.fail(`${name} cannot be reached`);
  };
  await press("Text");
  await page.keyboard.press("Enter");
  await said(page, "text.safetensors is ready");
  await press("prompt");
  await page.keyboard.press("Enter");
  await said(page, "500 tokens written");
  await press("2");
  await page.keyboard.press("Space");
  assert.equal(await page.getByRole("button", { name: "Layer 2" }).getAttribute("aria-pressed"), "true");
  await page.close();
});

test("wrong settings are named", async () => {
  const { page } = await open(browser, server.url);
  await text(page);
  for (const [id, value, message] of [
    ["prompt", "", /at least one character/],
    ["prompt", "漢", /does not occur/],
    ["seed", "-1", /the seed/],
    ["seed", "99999999999999999999", /the seed/],
  ]) {
    const field = page.locator(`#${id}`);
    const before = await field.inputValue();
    await field.fill(value);
    await page.getByRole("button", { name: "Write" }).click();
    await page.locator("#error").waitFor();
    assert.match(await page.locator("#error-text").textContent(), message);
    await field.fill(before);
    await page.getByRole("button", { name: "Close this message" }).click();
  }
  await page.close();
});

test("nothing sticks out of a narrow window", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page } = await open(browser, server.url, { viewport: { width: 320, height: 700 }, colorScheme });
    const width = () => page.evaluate(() => document.documentElement.scrollWidth);
    await hear(page, "yes");
    assert.equal(await width(), 320);
    for (const id of ["rate", "window"])
      assert.ok((await page.locator(`#${id}`).boundingBox()).width > 200, `${id} shows its choice whole`);
    await text(page);
    await write(page, { ...WRITTEN[0], length: 50 });
    assert.equal(await width(), 320);
    await page.close();
  }
});
