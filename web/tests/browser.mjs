// Chromium, the page in it, and the program to compare with.

import { execFileSync, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { chromium } from "playwright-core";

const WEB = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
/** The models and clips of the page. */
export const FILES = path.join(WEB, "../crates/dss-cli/page");
const { CHROMIUM, DSS } = process.env;

/** What `dss` prints. @param {string[]} args */
export const dss = (...args) => execFileSync(DSS, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

/** The page of web/build, from its folder. */
export const FOLDER = `file://${WEB}/dist/index.html`;

/** The page in the program, from `dss web`. */
export async function serve() {
  const child = spawn(DSS, ["web", "--no-open", "--port", "0"]);
  const url = await new Promise((resolve, reject) => {
    child.stdout.once("data", (line) => resolve(String(line).trim()));
    child.once("exit", () => reject(new Error("dss web ended")));
  });
  return { url, stop: () => child.kill() };
}

export const launch = () =>
  chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--use-fake-ui-for-media-stream",
      "--use-fake-device-for-media-stream",
      `--use-file-for-fake-audio-capture=${FILES}/clips/yes.wav`,
      "--autoplay-policy=no-user-gesture-required",
    ],
  });

/**
 * Opens the page and waits for its model. Anything on the console that is an error, and any request to elsewhere, is
 * collected in `faults`.
 */
export async function open(browser, url, options = {}) {
  const page = await browser.newPage(options);
  const faults = [];
  const home = new URL(url);
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (!["blob:", "data:"].includes(to.protocol) && to.origin !== home.origin) faults.push(`asks ${to}`);
  });
  await page.goto(url);
  await said(page, "speech.safetensors is ready");
  return { page, faults };
}

/** Waits until the page has said something. */
export async function said(page, what) {
  await page.waitForFunction(
    (text) => document.getElementById("said").textContent.includes(text) || !document.getElementById("error").hidden,
    what,
    { timeout: 60_000 },
  );
  const error = await page.locator("#error-text").textContent();
  if (await page.locator("#error").isVisible()) throw new Error(`the page says: ${error}`);
}

/** Takes the text model. */
export async function text(page) {
  await page.getByRole("button", { name: "Text" }).click();
  await said(page, "text.safetensors is ready");
}

/** What the page writes. */
export async function write(page, { prompt, temperature, topK, topP, seed, length }) {
  const fields = { prompt, temperature, "top-k": topK, "top-p": topP, seed, length };
  for (const [id, value] of Object.entries(fields)) await page.locator(`#${id}`).fill(String(value));
  await page.locator("#said").evaluate((element) => (element.textContent = ""));
  await page.getByRole("button", { name: "Write" }).click();
  await said(page, `${length} tokens written`);
  return page.locator("#text-out").textContent();
}

/** Hears a clip; gives the word that the page shows. */
export async function hear(page, word) {
  await page.locator("#said").evaluate((element) => (element.textContent = ""));
  await page.locator(`[data-clip="${word}"]`).click();
  await said(page, `the clip “${word}”`);
  return page.locator("#word").textContent();
}
