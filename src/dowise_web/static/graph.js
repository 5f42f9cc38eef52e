/* The page The graph: marks the selected link and moves the focus to the panel. The links also work without it. */
(() => {
  "use strict";

  /* A refreshed picture has the selection of the time when the page was loaded. */
  function markSelection() {
    const selected = document.getElementById("panel")?.dataset.shows;
    for (const link of document.querySelectorAll("#graph-picture [aria-current], .arm-list [aria-current]")) link.removeAttribute("aria-current");
    if (selected) document.getElementById(selected)?.setAttribute("aria-current", "true");
  }

  document.addEventListener("htmx:afterSettle", (event) => {
    markSelection();
    const source = event.detail.requestConfig?.elt;
    if (event.detail.target?.id === "panel" && source?.id !== "panel") document.getElementById("panel-title")?.focus();
  });
})();
