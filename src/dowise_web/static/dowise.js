/* Live updates, times in the reader's time zone, charts, and no double submits.
   Forms and links work without this script. */
(() => {
  "use strict";

  const SOON = 1500; // milliseconds between two refreshes of what is cheap to look at
  const SLOWLY = 12000; // … and of what the server has to reckon for
  const LEAVE = 5000; // … after which a hidden page leaves its connection to others
  const root = document.documentElement;

  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const say = (words) => { document.getElementById("announcements").textContent = words; };
  const complain = (words) => { document.getElementById("notices").textContent = words; };

  // -- live updates: the journal has grown ------------------------------------------------

  /* Throttle: call at most once per pause, and once more after the last call that came too early. */
  function atMostEvery(pause, act) {
    let last = -Infinity;
    let timer = null;
    return () => {
      if (timer !== null) return;
      timer = setTimeout(() => { timer = null; last = Date.now(); act(); }, Math.max(0, last + pause - Date.now()));
    };
  }

  /* A hidden page catches up when it becomes visible. */
  function whenSeen(act) {
    let isDue = false;
    document.addEventListener("visibilitychange", () => {
      if (isDue && !document.hidden) { isDue = false; act(); }
    });
    return () => { if (document.hidden) isDue = true; else act(); };
  }

  function signedOut() {
    const sign = document.querySelector(".live");
    if (sign) { sign.dataset.state = "ended"; sign.textContent = "signed out"; sign.hidden = false; }
  }

  function listen() {
    const address = document.body.dataset.stream;
    const sign = document.querySelector(".live");
    if (!address || !sign || !window.EventSource) return;
    const soon = whenSeen(atMostEvery(SOON, () => htmx.trigger(document.body, "head")));
    const slowly = whenSeen(atMostEvery(SLOWLY, () => htmx.trigger(document.body, "headslowly")));
    const show = (state, words) => { sign.dataset.state = state; sign.textContent = words; sign.hidden = false; };
    let known = Number(document.body.dataset.head);
    let source = null;
    let wait = 1000;
    const connect = () => {
      source = new EventSource(address);
      source.addEventListener("open", () => { wait = 1000; show("live", "live"); });
      source.addEventListener("head", (event) => {
        const { number } = JSON.parse(event.data);
        if (number !== known) { known = number; soon(); slowly(); }
      });
      source.addEventListener("error", () => {
        show("reconnecting", "reconnecting");
        if (source.readyState !== EventSource.CLOSED) return;
        const again = () => { setTimeout(meet, wait); wait = Math.min(2 * wait, 30000); };
        // The browser gave up and does not tell why: after a sign-out there is no point in trying again.
        fetch("/api/me").then((answer) => (answer.status === 401 ? signedOut() : again()), again);
      });
    };
    /* Browsers share six connections among all pages of a server: visible pages go first. */
    const meet = () => { if (!document.hidden && (source?.readyState ?? EventSource.CLOSED) === EventSource.CLOSED) connect(); };
    let leaving = null;
    document.addEventListener("visibilitychange", () => {
      clearTimeout(leaving);
      if (document.hidden) leaving = setTimeout(() => source?.close(), LEAVE); else meet();
    });
    addEventListener("pagehide", () => source?.close());
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); }); // forms are for one use
    meet();
  }

  // -- updates do not interrupt the user -------------------------------------------

  document.addEventListener("input", (event) => {
    const form = event.target.closest("form");
    if (form) form.dataset.touched = "";
  });

  const isNews = (event) => /^head/.test(event.detail.requestConfig?.triggeringEvent?.type ?? "");

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isNews(event)) return;
    const isBusy = event.detail.elt.querySelector("form[data-touched]") || document.querySelector("form[data-sent]");
    if (isBusy) event.preventDefault(); // what a form brings is as new
  });

  let open = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (isNews(event) && !event.detail.requestConfig.elt.isConnected) { // asked for by a page that is gone
      event.detail.shouldSwap = false;
      return;
    }
    open = isNews(event) ? all("details[open][id]", event.detail.target).map((one) => one.id) : [];
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const id of open) { const one = document.getElementById(id); if (one) one.open = true; }
    open = [];
  });

  // -- sending --------------------------------------------------------------------------------

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method === "get") return;
    if ("sent" in form.dataset) { event.preventDefault(); event.stopImmediatePropagation(); return; }
    form.dataset.sent = "";
    for (const button of all("button", form)) button.setAttribute("aria-disabled", "true");
  }, true);

  const free = (event) => {
    const form = event.detail.elt?.closest?.("form");
    if (!form) return;
    delete form.dataset.sent;
    for (const button of all("button", form)) button.removeAttribute("aria-disabled");
  };

  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => {
      free(event);
      if (!isNews(event)) complain("The server can't be reached. What you typed is still here: please try again.");
    });
  }
  document.addEventListener("htmx:responseError", (event) => {
    free(event);
    const status = event.detail.xhr.status;
    if (status === 401) { // nothing that was typed is thrown away
      signedOut();
      if (!isNews(event)) complain("Your session has ended and nothing was saved. Copy what you typed, then sign in again.");
      return;
    }
    if (isNews(event)) return;
    let words = `The server reported an error (${status}). What you typed is still here.`;
    if (status === 403) words = "That is not allowed: your session may have ended, or your role does not permit it. Reload the page.";
    if (status === 429) words = "Too many requests: wait a moment and try again.";
    complain(words);
  });
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) complain(""); });

  // -- times in the reader's own zone ----------------------------------------------------------

  const today = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
  const ever = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

  function localise(within) {
    for (const one of all("time[datetime]", within)) {
      const when = new Date(one.dateTime);
      if (Number.isNaN(when.getTime())) continue;
      if (!one.title) one.title = one.dateTime;
      one.textContent = (when.toDateString() === new Date().toDateString() ? today : ever).format(when);
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
      series: [{}, ...data.series.map((one) => ({
        label: one.name, stroke: colour(`series-${one.colour}`), width: one.leads ? 3 : 1.75,
        dash: DASHES[one.colour], points: { show: data.x.length < 2 }, spanGaps: true,
      }))],
    };
    const plot = new uPlot(options, [data.x, ...data.series.map((one) => one.values)], area);
    plot.root.setAttribute("aria-hidden", "true"); // the table below it says the same
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

  // -- a one-time link: its secret is in the fragment, which no server and no log has seen -----------

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

  // -- beginning ---------------------------------------------------------------------------------------

  function dress(within) { localise(within); drawAll(within); }

  document.addEventListener("htmx:load", (event) => {
    const fresh = event.detail.elt;
    dress(fresh);
    const telling = fresh.matches?.("[data-announce]") ? fresh : fresh.querySelector?.("[data-announce]");
    if (telling) say(telling.dataset.announce);
  });
  document.addEventListener("DOMContentLoaded", () => { dress(document); listen(); enter(); });
})();
