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
    const initial = text.value;
    const max = Number(text.dataset.max);
    let errorLine = null;

    const edited = () => { updateLineNumbers(); htmx.trigger(text, "edited"); };

    // -- line numbers ----------------------------------------------------------------------------

    function updateLineNumbers() {
      const lines = text.value.split("\n").length;
      while (gutter.children.length > lines) gutter.lastChild.remove();
      while (gutter.children.length < lines) {
        const lineNumber = document.createElement("span");
        lineNumber.textContent = gutter.children.length + 1;
        gutter.append(lineNumber);
      }
      [...gutter.children].forEach((lineNumber, i) => lineNumber.classList.toggle("wrong", i + 1 === errorLine));
      gutter.scrollTop = text.scrollTop;
    }

    function markError() {
      const error = preview.querySelector("[data-line]");
      errorLine = error ? Number(error.dataset.line) : null;
      if (errorLine === null) text.removeAttribute("aria-invalid"); else text.setAttribute("aria-invalid", "true");
      updateLineNumbers();
    }

    text.addEventListener("input", edited);
    text.addEventListener("scroll", () => { gutter.scrollTop = text.scrollTop; });
    new ResizeObserver(() => { gutter.scrollTop = text.scrollTop; }).observe(text);
    preview.addEventListener("htmx:afterSwap", markError);
    updateLineNumbers();

    // -- files, chosen or dropped --------------------------------------------------------------------

    async function readFile(file) {
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

    const input = upload.querySelector("input");
    upload.hidden = false;
    input.addEventListener("change", () => { readFile(input.files[0]); input.value = ""; });
    text.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); });
    text.addEventListener("drop", (event) => {
      if (event.dataTransfer.files.length) { event.preventDefault(); readFile(event.dataTransfer.files[0]); }
    });

    // -- an example replaces the text ------------------------------------------------

    document.getElementById("examples").addEventListener("click", (event) => {
      const isChanged = text.value.trim() && text.value !== initial;
      if (event.target.closest("a") && isChanged && !confirm("Replace what you wrote with the example?")) event.preventDefault();
    });
  });
})();
