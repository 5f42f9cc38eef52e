/* The page of the graph: marks what the panel shows, and takes the reader there. Without it the links work all the same. */
(() => {
  "use strict";

  /* After a refresh the picture is as it was when the page was loaded. */
  function mark() {
    const shows = document.getElementById("panel")?.dataset.shows;
    for (const one of document.querySelectorAll("#drawn [aria-current], .arm-list [aria-current]")) one.removeAttribute("aria-current");
    if (shows) document.getElementById(shows)?.setAttribute("aria-current", "true");
  }

  document.addEventListener("htmx:afterSettle", (event) => {
    mark();
    const chosen = event.detail.requestConfig?.elt;
    if (event.detail.target?.id === "panel" && chosen?.id !== "panel") document.getElementById("panel-title")?.focus();
  });
})();
