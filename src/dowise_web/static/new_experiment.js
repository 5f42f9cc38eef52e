/* The page New experiment: line numbers, the line with an error marked, files read into the text.
   Without this script the page works with its buttons. */
(() => {
  "use strict";

  document.addEventListener("DOMContentLoaded", () => {
    const text = document.getElementById("problem");
    const upload = document.getElementById("upload");
    const preview = document.getElementById("preview");
    const gutter = document.querySelector(".gutter");
    if (!text || !upload || !preview || !gutter) return;
    const first = text.value;
    const max = Number(text.dataset.max);
    let wrong = null;

    const edited = () => { number(); htmx.trigger(text, "edited"); };

    // -- line numbers ----------------------------------------------------------------------------

    function number() {
      const lines = text.value.split("\n").length;
      while (gutter.children.length > lines) gutter.lastChild.remove();
      while (gutter.children.length < lines) {
        const one = document.createElement("span");
        one.textContent = gutter.children.length + 1;
        gutter.append(one);
      }
      [...gutter.children].forEach((one, i) => one.classList.toggle("wrong", i + 1 === wrong));
      gutter.scrollTop = text.scrollTop;
    }

    function mark() {
      const place = preview.querySelector("[data-line]");
      wrong = place ? Number(place.dataset.line) : null;
      if (wrong === null) text.removeAttribute("aria-invalid"); else text.setAttribute("aria-invalid", "true");
      number();
    }

    text.addEventListener("input", edited);
    text.addEventListener("scroll", () => { gutter.scrollTop = text.scrollTop; });
    new ResizeObserver(() => { gutter.scrollTop = text.scrollTop; }).observe(text);
    preview.addEventListener("htmx:afterSwap", mark);
    number();

    // -- files, chosen or dropped --------------------------------------------------------------------

    async function take(file) {
      if (!file) return;
      const notices = document.getElementById("notices");
      if (file.size > max) {
        notices.textContent = `${file.name} has ${file.size.toLocaleString()} bytes; at most ${max.toLocaleString()} are accepted.`;
        return;
      }
      try {
        text.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      } catch {
        notices.textContent = `${file.name} is not a text file in UTF-8.`;
        return;
      }
      notices.textContent = "";
      edited();
    }

    const chosen = upload.querySelector("input");
    upload.hidden = false;
    chosen.addEventListener("change", () => { take(chosen.files[0]); chosen.value = ""; });
    text.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); });
    text.addEventListener("drop", (event) => {
      if (event.dataTransfer.files.length) { event.preventDefault(); take(event.dataTransfer.files[0]); }
    });

    // -- an example replaces the text ------------------------------------------------

    document.getElementById("examples").addEventListener("click", (event) => {
      const isWritten = text.value.trim() && text.value !== first;
      if (event.target.closest("a") && isWritten && !confirm("Replace what you wrote with the example?")) event.preventDefault();
    });
  });
})();
