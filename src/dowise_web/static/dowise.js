/* Live updates, times in the reader's time zone, charts, and no double submits.
   Forms and links work without this script. */
(() => {
  "use strict";

  const QUICK_INTERVAL = 1500; // milliseconds between two quick refreshes
  const SLOW_INTERVAL = 12000; // … between two refreshes that the server has to compute
  const HIDDEN_TIMEOUT = 5000; // … after which a hidden page closes its stream
  const root = document.documentElement;

  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const announce = (text) => { document.getElementById("announcements").textContent = text; };
  const showNotice = (text) => { document.getElementById("notices").textContent = text; };

  // -- live updates: the journal has grown ------------------------------------------------

  /* Call at most once per interval, and once more after the last call that came too early. */
  function throttle(interval, callback) {
    let last = -Infinity;
    let timer = null;
    return () => {
      if (timer !== null) return;
      timer = setTimeout(() => { timer = null; last = Date.now(); callback(); }, Math.max(0, last + interval - Date.now()));
    };
  }

  /* A hidden page catches up when it becomes visible. */
  function whenVisible(callback) {
    let isDue = false;
    document.addEventListener("visibilitychange", () => {
      if (isDue && !document.hidden) { isDue = false; callback(); }
    });
    return () => { if (document.hidden) isDue = true; else callback(); };
  }

  function showSignedOut() {
    const badge = document.querySelector(".live");
    if (badge) { badge.dataset.state = "ended"; badge.textContent = "signed out"; badge.hidden = false; }
  }

  function followJournal() {
    const address = document.body.dataset.stream;
    const badge = document.querySelector(".live");
    if (!address || !badge || !window.EventSource) return;
    const refreshQuickly = whenVisible(throttle(QUICK_INTERVAL, () => htmx.trigger(document.body, "head")));
    const refreshSlowly = whenVisible(throttle(SLOW_INTERVAL, () => htmx.trigger(document.body, "head-slow")));
    const show = (state, text) => { badge.dataset.state = state; badge.textContent = text; badge.hidden = false; };
    let lastNumber = Number(document.body.dataset.head);
    let source = null;
    let delay = 1000;
    const connect = () => {
      source = new EventSource(address);
      source.addEventListener("open", () => { delay = 1000; show("live", "live"); });
      source.addEventListener("head", (event) => {
        const { number } = JSON.parse(event.data);
        if (number !== lastNumber) { lastNumber = number; refreshQuickly(); refreshSlowly(); }
      });
      source.addEventListener("error", () => {
        show("reconnecting", "reconnecting");
        if (source.readyState !== EventSource.CLOSED) return;
        const tryAgain = () => { setTimeout(connectIfVisible, delay); delay = Math.min(2 * delay, 30000); };
        // The browser gave up without a reason; after a sign-out it is useless to try again.
        fetch("/api/me").then((response) => (response.status === 401 ? showSignedOut() : tryAgain()), tryAgain);
      });
    };
    /* Browsers share six connections among all pages of a server: visible pages go first. */
    const connectIfVisible = () => { if (!document.hidden && (source?.readyState ?? EventSource.CLOSED) === EventSource.CLOSED) connect(); };
    let closeTimer = null;
    document.addEventListener("visibilitychange", () => {
      clearTimeout(closeTimer);
      if (document.hidden) closeTimer = setTimeout(() => source?.close(), HIDDEN_TIMEOUT); else connectIfVisible();
    });
    addEventListener("pagehide", () => source?.close());
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); }); // a form can be sent once
    connectIfVisible();
  }

  // -- updates do not interrupt the user -------------------------------------------

  document.addEventListener("input", (event) => {
    const form = event.target.closest("form");
    if (form) form.dataset.touched = "";
  });

  const isRefresh = (event) => /^head/.test(event.detail.requestConfig?.triggeringEvent?.type ?? "");

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isRefresh(event)) return;
    const isBusy = event.detail.elt.querySelector("form[data-touched]") || document.querySelector("form[data-sent]");
    if (isBusy) event.preventDefault(); // the response to the form is as recent
  });

  let openIds = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (isRefresh(event) && !event.detail.requestConfig.elt.isConnected) { // requested by an element that is gone
      event.detail.shouldSwap = false;
      return;
    }
    openIds = isRefresh(event) ? all("details[open][id]", event.detail.target).map((details) => details.id) : [];
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const id of openIds) { const details = document.getElementById(id); if (details) details.open = true; }
    openIds = [];
  });

  // -- sending --------------------------------------------------------------------------------

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method === "get") return;
    if ("sent" in form.dataset) { event.preventDefault(); event.stopImmediatePropagation(); return; }
    form.dataset.sent = "";
    for (const button of all("button", form)) button.setAttribute("aria-disabled", "true");
  }, true);

  const enableForm = (event) => {
    const form = event.detail.elt?.closest?.("form");
    if (!form) return;
    delete form.dataset.sent;
    for (const button of all("button", form)) button.removeAttribute("aria-disabled");
  };

  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => {
      enableForm(event);
      if (!isRefresh(event)) showNotice("The server can't be reached. What you typed is still here: please try again.");
    });
  }
  document.addEventListener("htmx:responseError", (event) => {
    enableForm(event);
    const status = event.detail.xhr.status;
    if (status === 401) { // keep what was typed
      showSignedOut();
      if (!isRefresh(event)) showNotice("Your session has ended and nothing was saved. Copy what you typed, then sign in again.");
      return;
    }
    if (isRefresh(event)) return;
    let text = `The server reported an error (${status}). What you typed is still here.`;
    if (status === 403) text = "That is not allowed: your session may have ended, or your role does not permit it. Reload the page.";
    if (status === 429) text = "Too many requests: wait a moment and try again.";
    showNotice(text);
  });
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) showNotice(""); });

  // -- times in the reader's own zone ----------------------------------------------------------

  const timeFormat = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
  const dateFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

  function localizeTimes(within) {
    for (const element of all("time[datetime]", within)) {
      const time = new Date(element.dateTime);
      if (Number.isNaN(time.getTime())) continue;
      if (!element.title) element.title = element.dateTime;
      const isToday = time.toDateString() === new Date().toDateString();
      element.textContent = (isToday ? timeFormat : dateFormat).format(time);
    }
  }

  // -- charts ------------------------------------------------------------------------------------

  const DASHES = { 1: [], 2: [8, 4], 3: [2, 3], 4: [10, 3, 2, 3], 5: [5, 3], 6: [12, 5], others: [1, 4] };
  const charts = new Map();

  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const short = (value) => (value === null || value === undefined ? "" : String(Number(value.toPrecision(3))));

  function draw(area) {
    charts.get(area)?.destroy();
    const data = JSON.parse(area.dataset.chart);
    const axis = {
      stroke: colour("muted"), font: "12px sans-serif", labelFont: "12px sans-serif", labelSize: 20,
      grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1, size: 4 },
    };
    const options = {
      width: area.clientWidth,
      height: area.clientHeight,
      legend: { show: false },
      padding: [8, 10, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: false }, y: data.range ? { range: data.range } : {} },
      axes: [
        { ...axis, label: data.along, size: 30, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000] },
        { ...axis, size: 48, values: (_, ticks) => ticks.map(short) },
      ],
      series: [{}, ...data.series.map((line) => ({
        label: line.name, stroke: colour(`series-${line.colour}`), width: line.leads ? 3 : 1.75,
        dash: DASHES[line.colour], points: { show: data.x.length < 2 }, spanGaps: true,
      }))],
    };
    const plot = new uPlot(options, [data.x, ...data.series.map((line) => line.values)], area);
    plot.root.setAttribute("aria-hidden", "true"); // the table below has the same numbers
    charts.set(area, plot);
  }

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const plot = charts.get(target);
      if (plot && plot.width !== target.clientWidth) plot.setSize({ width: target.clientWidth, height: target.clientHeight });
    }
  });

  function drawAll(within = document) {
    if (!window.uPlot) return;
    for (const [area, plot] of charts) if (!area.isConnected) { plot.destroy(); sizes.unobserve(area); charts.delete(area); }
    for (const area of all("[data-chart]", within)) { draw(area); sizes.observe(area); }
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
  addEventListener("beforeprint", () => { root.classList.add("on-paper"); drawAll(); });
  addEventListener("afterprint", () => { root.classList.remove("on-paper"); drawAll(); });

  // -- a one-time link: its secret is in the fragment, which browsers send to no server ----------

  function enter() {
    const form = document.getElementById("enter");
    if (!form) return;
    const secret = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
    if (secret) {
      form.elements.secret.value = secret;
      form.requestSubmit();
    } else {
      form.hidden = true;
      document.getElementById("no-secret").hidden = false;
    }
  }

  // -- start -------------------------------------------------------------------------------------------

  function prepare(within) { localizeTimes(within); drawAll(within); }

  document.addEventListener("htmx:load", (event) => {
    const loaded = event.detail.elt;
    prepare(loaded);
    const message = loaded.matches?.("[data-announce]") ? loaded : loaded.querySelector?.("[data-announce]");
    if (message) announce(message.dataset.announce);
  });
  document.addEventListener("DOMContentLoaded", () => { prepare(document); followJournal(); enter(); });
})();
