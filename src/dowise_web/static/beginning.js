/* The page New experiment: numbered lines, the wrong one marked, files that are read into the text.
   Without it the page works with its buttons. */
(() => {
  "use strict";

  document.addEventListener("DOMContentLoaded", () => {
    const text = document.getElementById("problem");
    const upload = document.getElementById("upload");
    const preview = document.getElementById("preview");
    const gutter = document.querySelector(".gutter");
    if (!text || !upload || !preview || !gutter) return;
    const first = text.value;
    const most = Number(text.dataset.most);
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
      if (file.size > most) {
        notices.textContent = `${file.name} has ${file.size.toLocaleString()} bytes, and ${most.toLocaleString()} are the most.`;
        return;
      }
      try {
        text.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      } catch {
        notices.textContent = `${file.name} is no text in UTF-8.`;
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

    // -- an example takes the place of what was written ------------------------------------------------

    document.getElementById("examples").addEventListener("click", (event) => {
      const isWritten = text.value.trim() && text.value !== first;
      if (event.target.closest("a") && isWritten && !confirm("The example takes the place of what you wrote.")) event.preventDefault();
    });
  });
})();
