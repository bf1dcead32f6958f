#!/usr/bin/node
/*
 * The page, in Debian's Chromium, served by a real `sonde up`: what a person sees and does, at 1280 and 400 pixels, light and dark.
 * Pictures of every page are left in build/screenshots.
 */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import https from "node:https";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { provenBy } from "../lib/seed_rows.mjs";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const BUILD = process.env.SONDE_BUILD || path.join(ROOT, "build");
const PICTURES = path.join(BUILD, "screenshots");
const require = createRequire(path.join(ROOT, "test/npm/"));
const { chromium } = require("playwright-core");
const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE = 180000;
const MANY = 500;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const NAMESPACE = "default";
const PATHS = { ap: "algorithmprofilings", ac: "algorithmcomparisons" };

// ---- what is under test

const home = fs.mkdtempSync(path.join(os.tmpdir(), "sonde-page-"));
let server = null, address = "", port = 0;

function up(listen) {
  server = spawn(path.join(BUILD, "sonde"), ["up", "--dir", home, "--no-fsync", "--page-listen", listen, "--max-concurrent-runs", "2"], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    let text = "";
    server.stdout.on("data", (data) => {
      text += data;
      const found = text.match(/http:\/\/127\.0\.0\.1:(\d+)\/#t=\w+/);
      if (found) resolve(([address, port] = found));
    });
    server.on("exit", (code) => reject(new Error(`sonde up ended (${code}):\n${text}`)));
  });
}

function down() {
  return new Promise((resolve) => {
    if (!server || server.exitCode !== null) return resolve();
    server.removeAllListeners("exit");
    server.on("exit", resolve);
    server.kill("SIGTERM");
  });
}

const read = (name) => fs.readFileSync(path.join(home, name), "utf8").trim();

// One request to the Kubernetes API of the engine.
function kube(method, url, body, type = "application/json") {
  const server = new URL(fs.readFileSync(path.join(home, "kubeconfig"), "utf8").match(/server: *"?([^"\s]+)/)[1]);
  return new Promise((resolve, reject) => {
    const request = https.request({ host: server.hostname, port: server.port, path: url, method, ca: read("ca.crt"), agent, headers: { Authorization: `Bearer ${read("token")}`, "Content-Type": type } }, (answer) => {
      let text = "";
      answer.on("data", (data) => (text += data));
      answer.on("end", () => (answer.statusCode < 300 ? resolve(JSON.parse(text)) : reject(new Error(`${method} ${url}: ${answer.statusCode} ${text}`))));
    });
    request.on("error", reject);
    request.end(typeof body === "string" ? body : JSON.stringify(body));
  });
}

const agent = new https.Agent({ keepAlive: true, maxSockets: 8 });
const dprofiler = (kind) => `/apis/dprofiler.io/v1alpha1/namespaces/${NAMESPACE}/${PATHS[kind]}`;
const profiling = (name, spec, metadata = {}) =>
  kube("POST", dprofiler("ap"), { apiVersion: "dprofiler.io/v1alpha1", kind: "AlgorithmProfiling", metadata: { name, ...metadata }, spec: { algorithmName: "quick_sort", inputSize: 20000, iterations: 10, ...spec } });
const example = (name) => fs.readFileSync(path.join(ROOT, "examples", name), "utf8");

// ---- TAP

const tests = [];
const test = (title, body) => tests.push([title, body]);
const say = (text) => console.log(String(text).split("\n").map((line) => `# ${line}`).join("\n"));

// ---- the browser

const errors = [], foreign = [];
let browser, page, quiet = false;

function watch(one) {
  one.on("console", (message) => quiet || (message.type() === "error" && errors.push(message.text())));
  one.on("pageerror", (error) => errors.push(error.stack));
  one.on("request", (request) => new URL(request.url()).host === `127.0.0.1:${port}` || /^(blob|data):/.test(request.url()) || foreign.push(request.url()));
  one.setDefaultTimeout(PATIENCE);
  return one;
}

const go = async (hash, wait) => {
  await page.evaluate((to) => (location.hash = to), hash);
  await page.waitForSelector(wait);
};
const until = (what, argument) => page.waitForFunction(what, argument, { timeout: PATIENCE });
const shown = (selector, text) => until(([s, t]) => [...document.querySelectorAll(s)].some((e) => e.textContent.includes(t)), [selector, text]);

async function look(name) {
  for (const [width, height] of [[1280, 900], [400, 860]])
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      await page.screenshot({ path: path.join(PICTURES, `${name}-${width}-${colorScheme}.png`), fullPage: !name.startsWith("runs") });
      const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${name} at ${width} is ${wide} pixels too wide`);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 160)).slice(0, 3).join(" | ")}`), [], `${name} at ${width}, ${colorScheme}`);
    }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

// The example, long enough for its points to be handed over twice while it runs: at the beginning, and 30 s later.
const SWEEP = example("dgdr.yaml").replace("decodeInterpolationGranularity: 2", "decodeInterpolationGranularity: 4");

// What the page of a run shows while it says that the run runs: how many points the charts have that can be seen, what it does,
// and what is best so far.
function recordRun() {
  const record = (window.recorded = { points: [], now: [], best: [], twice: [] });
  const note = (list, value) => list.at(-1) === value || list.push(value);
  const drawn = (canvas) => (canvas.querySelector("canvas") ? (canvas.ariaLabel.match(/[:,] /g) || []).length + Number(canvas.ariaLabel.match(/and (\d+) more/)?.[1] || 0) : 0);
  const look = () => {
    if (!document.querySelector(".standing")?.textContent.includes("it runs")) return;
    const n = [...document.querySelectorAll("figure .canvas")].filter((one) => one.checkVisibility()).reduce((sum, one) => sum + drawn(one), 0);
    if (n) note(record.points, n);
    const said = [...document.querySelectorAll(".answers p")].map((one) => one.textContent), best = said.filter((text) => text.includes("Best so far"));
    for (const text of said) if (text.startsWith("Now: ")) note(record.now, text);
    if (best.length) note(record.best, best[0]);
    if (best.length > 1) note(record.twice, best.join(" | "));
  };
  new MutationObserver(look).observe(document.getElementById("main"), { subtree: true, childList: true, characterData: true, attributes: true });
}

// ---- what it must show

test("the address signs in; the token leaves it, and no script can read the cookie", async () => {
  await page.goto(address);
  await shown("#link", "live");
  assert.ok(!page.url().includes("t="), page.url());
  assert.equal(await page.evaluate(() => document.cookie), "");
  await shown(".empty", "There are no runs yet");
  await page.evaluate(() => (window.notReloaded = true));
});

test("a run that is made shows up, moves and ends without a reload", async () => {
  await kube("PATCH", `/apis/nvidia.com/v1alpha1/namespaces/${NAMESPACE}/dynamographdeploymentrequests/simulated-qwen3?fieldManager=test`, SWEEP, "application/apply-patch+yaml");
  await shown(".row .name a", "simulated-qwen3");
  await until(() => Number(document.querySelector(".rows [role=progressbar]")?.getAttribute("aria-valuenow")) > 0);
  await go(`#/run/dgdr/${NAMESPACE}/simulated-qwen3`, ".run .standing");
  await shown(".standing", "it runs");
  await page.evaluate(recordRun);
  await shown(".phases li.now", "Sweep");
  const before = await page.evaluate(() => Number(document.querySelector(".answers [role=progressbar]").getAttribute("aria-valuenow")));
  await until((n) => Number(document.querySelector(".answers [role=progressbar]").getAttribute("aria-valuenow")) > n, before);
  await shown(".standing", "Done");
  await shown(".found", "decode TP=");
  assert.ok(await page.evaluate(() => window.notReloaded));
  assert.equal(await page.locator("figure .canvas:visible").count(), 4);
  const { points, now, best, twice } = await page.evaluate(() => window.recorded);
  assert.ok(points.length > 1 && points.every((n, i) => !i || n > points[i - 1]), `charts fill while it runs: ${points} points`);
  assert.ok(now.some((text) => /^Now: [\w=\/]*TP=\d[\w=\/]* on \d+ GPUs? · ./.test(text)), `the current configuration: ${now}`);
  assert.ok(best.length > 0 && best.every((text) => /^Best so far: ./.test(text)), `what is best so far: ${best}`);
  assert.deepEqual(twice, [], "and it is said once");
});

test("the run says what it found, wears its label, and shows events, log and YAML", async () => {
  await shown("h1 .badge", "simulated");
  assert.ok(await page.locator("h1 .badge").isVisible());
  await shown(".events li", "Profiling");
  await page.getByText("YAML", { exact: true }).click();
  await shown(".yaml", "kind: DynamoGraphDeploymentRequest");
  assert.ok(!(await page.locator(".yaml").textContent()).includes("managedFields"));
  await page.getByText("Log", { exact: true }).click();
  await until(() => document.querySelector(".log").textContent.length > 0);
  await shown(".phases li.over", "DecodeSweep");
  await look("run-dgdr");
});

test("charts tell values to the pointer, to the keyboard and as CSV", async () => {
  const figure = page.locator("figure").first(), canvas = figure.locator(".canvas");
  await canvas.focus();
  await page.keyboard.press("ArrowRight");
  await shown(".tip", "TTFT");
  assert.match(await canvas.getAttribute("aria-label"), /Time to first token over input length\. .*ms/);
  const [download] = await Promise.all([page.waitForEvent("download"), figure.getByRole("button").click()]);
  const text = fs.readFileSync(await download.path(), "utf8");
  assert.match(text, /^series,input length \[tokens\],TTFT \[ms\]/);
  assert.ok(text.split("\r\n").length > 4, text);
});

test("algorithms show every single run, with median and interval", async () => {
  await kube("PATCH", `${dprofiler("ac")}/sorting?fieldManager=test`, example("algorithmcomparison.yaml").replace("iterations: 20", "iterations: 10"), "application/apply-patch+yaml");
  await profiling("one", { inputSizes: [5000, 10000] });
  await go(`#/run/ac/${NAMESPACE}/sorting`, ".run .standing");
  await shown(".standing", "Done");
  await until(() => document.querySelectorAll(".strip .dot").length === 30 && document.querySelectorAll(".strip .interval").length === 3);
  await look("run-ac");
  await go(`#/run/ap/${NAMESPACE}/one`, ".run .standing");
  await shown(".standing", "Done");
  await shown("figcaption", "How the time grows");
});

// As the operator writes it: values as texts, the kernels in the details.
const PROFILE = { boundType: "memory-bound", metrics: { smThroughput: "12.56", memThroughput: "91.3", l2Throughput: "30.22", achievedOccupancy: "78.21", dominantKernel: "vectorAdd(const float *)" },
  details: { byKernel: [{ kernel: "vectorAdd(const float *)", launches: 3, share: 0.8, boundType: "memory-bound", metrics: { smThroughput: 12.1, memThroughput: 91.3 }, min: { smThroughput: 11 }, max: { smThroughput: 13 } },
    { kernel: "reduce", launches: 1, share: 0.2, boundType: "compute-bound", metrics: { smThroughput: 70, memThroughput: 40 } }] } };

test("a profiled program shows its speed of light and its place under the roofline", async () => {
  const url = `/apis/gpu.scheduler.io/v1alpha1/namespaces/${NAMESPACE}/workloadprofiles`;
  const made = await kube("POST", url, { apiVersion: "gpu.scheduler.io/v1alpha1", kind: "WorkloadProfile", metadata: { name: "vectoradd" }, spec: {} });
  await kube("PUT", `${url}/vectoradd/status`, { ...made, status: PROFILE });
  await go(`#/run/wprof/${NAMESPACE}/vectoradd`, ".run .standing");
  await shown(".strip .name", "Compute (SM)");
  await shown(".found", "memory-bound; most of the time is in vectorAdd");
  assert.equal(await page.locator(".strip .whisker").count(), 2, "from the lowest to the highest kernel");
  assert.match(await page.locator("figure .canvas").last().getAttribute("aria-label"), /vectorAdd.*91\.3.*reduce.*40/);
  assert.equal(await page.locator(".buttons button").count(), 0, "a result cannot be cancelled");
  await look("run-wprof");
});

test("what the API says is text, whatever is in it", async () => {
  await profiling("odd", { algorithmName: "<img src=x onerror=window.bad=1>" });
  await go(`#/run/ap/${NAMESPACE}/odd`, ".run .standing");
  await shown(".standing", "Failed");
  await shown(".detail", "<img src=x");
  assert.equal(await page.evaluate(() => document.images.length + (window.bad || 0)), 0);
});

test("runs can be told to stop and to go on, after a question", async () => {
  await profiling("held", { suspend: true });
  await go(`#/run/ap/${NAMESPACE}/held`, ".run .standing");
  await shown(".standing", "Suspended");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "No, leave it" }).click();
  await shown(".standing", "Suspended");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.locator("dialog").getByRole("button", { name: "Resume" }).click();
  await shown(".standing", "Done");
  await page.getByRole("button", { name: "Rerun" }).click();
  await page.locator("dialog").getByRole("button", { name: "Rerun" }).click();
  await until(() => /#\/run\/ap\/default\/held-/.test(location.hash));
  await shown(".standing", "Done");
});

test("runs are compared: samples, then words", async () => {
  await profiling("two", { inputSizes: [5000, 10000] });
  await go("#/runs", ".rows .row");
  await page.evaluate(() => (location.hash = "#/runs?q=kind:ap%20name:o"));
  for (const name of ["one", "two"]) {
    await shown(".row .name a", name);
    await until((key) => document.querySelector(`.row[data-key="${key}"]`)?.dataset.life === "succeeded", `ap/${NAMESPACE}/${name}`);
    await page.locator(`.row[data-key="ap/${NAMESPACE}/${name}"] input`).check();
  }
  await page.getByRole("link", { name: "Compare 2" }).click();
  await until(() => document.querySelectorAll(".strip .median").length === 6 && document.querySelectorAll(".strip .dot").length === 60);
  await until(() => document.querySelectorAll(".verdicts li, .verdicts .summary").length > 0);
  await look("compare");
});

test("the history has finished runs and the trend of a series", async () => {
  await go("#/history", ".history tbody tr");
  await shown(".history td", "one");
  await until(() => document.querySelector(".history figure .canvas canvas"));
  await look("history");
});

test("a series that has changed says where, for the worse and for the better", async () => {
  const level = (seconds) => Array.from({ length: 20 }, (_, i) => seconds * (1 + ((i * 7) % 11) / 500));
  execFileSync(path.join(ROOT, "test/web/history_rows.py"), [path.join(home, "history.db"), NAMESPACE, "changing", ...[0.01, 0.052, 0.02].flatMap(level)].map(String));
  await go(`#/history?series=${NAMESPACE}/changing`, ".history tbody tr");
  await shown(".history .worse", "Worse from changing-20");
  await shown(".history .better", "Better from changing-40");
  assert.match(await page.locator("p.worse").textContent(), /on: 52\.\d ms in place of 10\.\d ms, 5\.\d+ times as long \(95 % interval/);
  assert.match(await page.locator("p.better").textContent(), /on: 20\.\d ms in place of 52\.\d ms, 2\.\d+ times as fast \(95 % interval 2\./);
  await until(() => document.querySelector(".history figure .canvas canvas"));
  await look("history-changed");
});

test("the queue says who waits, and why", async () => {
  await Promise.all([1, 2, 3].map((n) => profiling(`long-${n}`, { algorithmType: "custom", algorithmName: "sleep", iterations: 1, customConfig: { image: "any", command: ["/bin/sleep", "600"] } })));
  await go("#/queue", ".queue h1");
  await shown(".queue td", "long-");
  await shown(".queue td", "max concurrent runs");
  await kube("POST", `/api/v1/namespaces/${NAMESPACE}/resourcequotas`, { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "room" }, spec: { hard: { configmaps: "900", resourcequotas: "1" } } });
  const quotas = () => page.locator(".queue tr", { has: page.getByText("room", { exact: true }) }).evaluateAll((rows) => rows.map((row) => [row.className, ...[...row.cells].map((cell) => cell.textContent)]));
  await until(async () => (await (await fetch("/api/v1/queue")).json()).quotas?.some((one) => one.used?.resourcequotas === "1"));
  await go("#/runs", ".runs");
  await go("#/queue", ".queue h1");
  await shown(".queue caption", "Quotas");
  const [maps, self] = await quotas();
  assert.match(maps.join(" "), /^ default room configmaps \d+ 900$/);
  assert.deepEqual(self, ["full", "default", "room", "resourcequotas", "1", "1"]);
  await look("queue");
  await page.route("**/api/v1/queue", async (route) => {
    const response = await route.fetch(), json = await response.json();
    delete json.limits;
    for (const one of json.quotas) delete one.used;
    await route.fulfill({ response, json });
  });
  await go("#/runs", ".runs");
  await go("#/queue", ".queue h1");
  await shown(".queue .empty", "How many may run at once is not known here");
  assert.deepEqual(await quotas(), [["", "default", "room", "configmaps", "", "900"], ["", "default", "room", "resourcequotas", "", "1"]]);
  await page.unroute("**/api/v1/queue");
  await kube("DELETE", `/api/v1/namespaces/${NAMESPACE}/resourcequotas/room`);
  for (const n of [1, 2, 3]) await kube("PATCH", `${dprofiler("ap")}/long-${n}`, { spec: { cancel: true } }, "application/merge-patch+json");
  await shown(".queue .empty", "Nothing waits");
});

test("the list is filtered as one types, and the address remembers it", async () => {
  await go("#/runs", ".rows .row");
  await page.keyboard.press("/");
  await page.keyboard.type("kind:ap failed");
  await until(() => document.querySelectorAll(".rows .row").length === 1);
  await until(() => location.hash.includes("q=kind%3Aap+failed"));
  await page.getByRole("button", { name: /^dgdr/ }).click();
  assert.equal(await page.locator("#filter").inputValue(), "kind:dgdr failed");
  await page.reload();
  await shown("#link", "live");
  assert.equal(await page.locator("#filter").inputValue(), "kind:dgdr failed");
  await shown(".empty", "No run is like that");
  await page.evaluate(AXE);
});

test("with the keyboard alone: from row to row, into a run and back", async () => {
  await go("#/runs?q=", ".rows .row");
  await until(() => ![...document.querySelectorAll(".rows .row")].some((row) => ["running", "pending"].includes(row.dataset.life))); // no row moves meanwhile
  await look("runs");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  const focused = () => page.evaluate(() => document.activeElement.closest(".row")?.getAttribute("aria-rowindex"));
  assert.equal(await focused(), "2");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "3");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, "none", "the focus can be seen");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".run .standing");
  await page.goBack();
  await page.waitForSelector(".rows .row");
});

const many = (i) => `many-${String(i).padStart(3, "0")}`;
const patchMany = (i, body, part = "") => kube("PATCH", `${dprofiler("ap")}/${many(i)}${part}`, body, "application/merge-patch+json");

// Scrolls through MANY rows, a screen in some frames: the longest time between two frames, and the most rows that there were at once.
const glide = (one) => one.evaluate(async (n) => {
  const frame = () => new Promise(requestAnimationFrame);
  let last = await frame(), gap = 0, rows = 0;
  for (let y = 0; y <= n; y += 4) {
    scrollTo(0, y * 40);
    const now = await frame();
    gap = Math.max(gap, now - last);
    last = now;
    rows = Math.max(rows, document.querySelectorAll(".rows .row").length);
  }
  return { gap, rows };
}, MANY);

// The same number of rows in the same browser, and nothing that moves: what the machine can do just now.
async function plainList() {
  const one = await page.context().newPage();
  await one.setViewportSize({ width: 1280, height: 900 });
  await one.setContent(`<style>div { height: 40px; display: flex; gap: 20px }</style>${Array.from({ length: MANY }, (_, i) => `<div>${"<span>plain text</span>".repeat(9)}${i}</div>`).join("")}`);
  return one;
}

test(`${MANY} runs are listed without jank, while they change`, async () => {
  await go("#/runs?q=name:many-", ".runs");
  await Promise.all(Array.from({ length: MANY }, (_, i) => profiling(many(i), { suspend: true })));
  await until((n) => document.querySelector(".table").getAttribute("aria-rowcount") === String(n + 1), MANY);
  const plain = await plainList();
  let calm, here, most, cancelled = 0;
  for (let round = 0; round < 6; round++) {
    // Both beside the same work of the server; a machine that was busy with something else in one of them gets another try.
    const [still] = await Promise.all([glide(plain), ...Array.from({ length: 20 }, (_, i) => patchMany(i, { metadata: { annotations: { round: String(round) } } }))]);
    await page.bringToFront();
    const [moving] = await Promise.all([glide(page), ...Array.from({ length: 20 }, () => patchMany((cancelled++ * 8) % MANY, { spec: { cancel: true } }))]);
    calm = still.gap;
    here = moving.gap;
    most = Math.max(most || 0, moving.rows);
    say(`${moving.rows} rows at most in the page, at most ${Math.round(here)} ms between two frames; ${Math.round(calm)} ms in a plain list`);
    if (here <= Math.max(200, 4 * calm)) break;
  }
  await plain.close();
  assert.ok(most <= 60, `${most} rows at once`);
  assert.ok(here <= Math.max(200, 4 * calm), `${here} ms between two frames, ${calm} ms in a plain list`);
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await until((n) => [...document.querySelectorAll(".rows .row")].some((row) => row.getAttribute("aria-rowindex") === String(n + 1)), MANY);
  await shown(".row .phase", "Cancelled");
  await go("#/runs?q=name:many-%20cancelled", ".runs"); // all of them, so that none comes in the middle of what is next
  await until((n) => document.querySelector(".table").getAttribute("aria-rowcount") === String(n + 1), cancelled);
  await go("#/runs?q=name:many-", ".rows .row");
});

test("one change draws one row anew, whatever the number of runs", async () => {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const seen = await page.locator(".rows .row").evaluateAll((rows) => rows.map((row) => row.querySelector(".name a").textContent));
  const one = seen[3], hidden = Array.from({ length: MANY }, (_, i) => many(i)).find((name) => !seen.includes(name));
  await page.evaluate(() => {
    window.touched = [];
    new MutationObserver((list) => {
      for (const { target, type } of list) {
        const element = target.nodeType === Node.TEXT_NODE ? target.parentElement : target;
        if (element?.closest(".age, .eta")) continue; // what time it is
        const row = element?.closest(".row");
        if (row || type === "childList") window.touched.push(row ? row.querySelector(".name a").textContent : "the list");
      }
    }).observe(document.querySelector(".rows"), { subtree: true, childList: true, characterData: true, attributes: true });
  });
  for (const name of [hidden, one]) await patchMany(Number(name.slice(5)), { status: { progress: { percent: 42 } } }, "/status");
  await until((name) => window.touched.includes(name), one);
  assert.deepEqual(await page.evaluate(() => [...new Set(window.touched)]), [one]);
  await go("#/runs", ".rows .row");
  await look("runs-many");
});

test("the stream is closed while the page is hidden, and there is one", async () => {
  const streams = [];
  page.on("request", (request) => request.url().endsWith("/runs/stream") && streams.push(request));
  const hide = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await hide(true);
  await shown("#link", "paused");
  assert.equal(streams.length, 0);
  await hide(false);
  await shown("#link", "live");
  assert.equal(streams.length, 1);
});

test("without a token the page asks for one, and says when it is wrong", async () => {
  const before = page, context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  page = watch(await context.newPage());
  quiet = true; // the browser calls every 401 an error
  try {
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.evaluate(AXE);
    await page.getByLabel("Token").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await shown(".trouble", "does not take this token");
    await look("sign-in");
    await page.getByLabel("Token").fill(read("token"));
    await page.keyboard.press("Enter");
    await page.waitForSelector(".rows .row");
  } finally {
    page = before;
    quiet = false;
    await context.close();
  }
});

test("a lost connection is said, and comes back by itself", async () => {
  quiet = true;
  await down();
  await shown("#link", "Connection lost");
  await up(`127.0.0.1:${port}`);
  await shown("#link", "live");
  quiet = false;
});

test("no errors in the console, no requests to another host", async () => {
  assert.deepEqual(errors, []);
  assert.deepEqual(foreign, []);
});

// ---- all of it

async function main() {
  fs.mkdirSync(PICTURES, { recursive: true });
  await up("127.0.0.1:0");
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS, timeout: PATIENCE });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true });
  await context.addInitScript({ content: AXE });
  page = watch(await context.newPage());
  const wanted = process.argv.slice(2), chosen = tests.filter(([title]) => !wanted.length || wanted.some((word) => title.includes(word)));
  console.log(`1..${chosen.length}`);
  const proven = provenBy("test/web/page.mjs");
  let failed = 0, number = 0;
  for (const [title, body] of chosen) {
    const began = Date.now();
    try {
      await body();
      console.log(`ok ${++number} - ${title}`);
      if (proven.has(title)) say(`proves ${proven.get(title).join(" ")}`);
    } catch (error) {
      failed++;
      console.log(`not ok ${++number} - ${title}`);
      say(error.stack);
      await page.screenshot({ path: path.join(PICTURES, `failed-${number}.png`) }).catch(() => {});
      say(await page.evaluate(() => `${location.href}\n${document.getElementById("main").innerText.slice(0, 400)}`).catch(() => ""));
    }
    if (Date.now() - began > 1000) say(`${((Date.now() - began) / 1000).toFixed(1)} s`);
  }
  return failed ? 1 : 0;
}

async function end(code) {
  agent.destroy();
  await browser?.close().catch(() => {});
  await down();
  fs.rmSync(home, { recursive: true, force: true });
  process.exit(code);
}

process.on("SIGTERM", () => end(143));
main().then(end, (error) => (say(error.stack), console.log("Bail out! it did not start"), end(1)));
