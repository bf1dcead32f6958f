// The frame: which page is shown, whether the server is there, who is signed in.

import * as api from "./api.js";
import { ComparePage } from "./compare.js";
import { h, replace, setText, toggle } from "./dom.js";
import { HistoryPage } from "./history.js";
import { Live } from "./live.js";
import { QueuePage } from "./queue.js";
import { format, parse, token } from "./route.js";
import { RunPage } from "./run.js";
import { RunsPage } from "./runs.js";
import { signInForm } from "./signin.js";
import { turned } from "./words.js";

const PAGES = { runs: RunsPage, run: RunPage, compare: ComparePage, history: HistoryPage, queue: QueuePage };
const NAV = [["runs", "Runs"], ["compare", "Compare"], ["history", "History"], ["queue", "Queue"]];

const main = document.getElementById("main"), link = document.getElementById("link"), says = document.getElementById("says");
const live = new Live();
let shown = null, out = false, first = true;

function show() {
  const place = parse(location.hash), Page = PAGES[place.page] || RunsPage;
  shown?.stop();
  shown = new Page(live, place);
  document.title = `${shown.title} · Sonde`;
  replace(document.getElementById("nav"), NAV.map(([name, text]) =>
    h("a", { href: format(name), "aria-current": (place.page === name || (name === "runs" && place.page === "run")) && "page" }, text)));
  replace(main, shown.element);
  scrollTo(0, 0);
  if (!first) main.focus({ preventScroll: true });
  first = false;
  shown.start();
}

// ---- the connection

const WORDS = { connecting: "connecting", open: "live", hidden: "paused", out: "" };

function tellLink() {
  const { state } = live;
  toggle(link, "lost", state === "lost");
  if (state === "lost") {
    const wait = Math.max(0, Math.ceil((live.retryAt - Date.now()) / 1000));
    replace(link, `Connection lost; what you see may be old${wait ? `. Again in ${wait} s ` : " "}`, h("button", { type: "button", class: "small", on: { click: () => live.start() } }, "now"));
  } else setText(link, WORDS[state] ?? "");
}

live.addEventListener("state", tellLink);

// ---- what is told to those who do not look

let news = [];
live.addEventListener("turn", (event) => {
  const text = turned(event.detail.run);
  if (!text) return;
  if (!news.length)
    setTimeout(() => {
      setText(says, news.length > 3 ? `${news.length} runs have changed; the last: ${news.at(-1)}` : news.join(". "));
      news = [];
    }, 1500);
  news.push(text);
});

// ---- who is there

function askWho() {
  if (out) return;
  out = true;
  shown?.stop();
  shown = null;
  live.stop();
  document.title = "Sign in · Sonde";
  replace(main, signInForm(begin));
  document.getElementById("token").focus();
}

function begin() {
  out = false;
  live.start();
  show();
}

async function enter() {
  const given = token(location.hash);
  if (given) {
    history.replaceState(null, "", location.pathname + format("runs"));
    await api.signIn(given).catch(() => {});
  }
  const known = await api.signedIn().catch(() => true); // what is wrong otherwise is told when it is asked for
  if (known) begin();
  else askWho();
}

api.onSignedOut(askWho);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => (token(location.hash) ? enter() : out || show()));
enter();
