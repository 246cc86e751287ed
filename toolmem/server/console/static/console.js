// Pages work without this: it adds a key for the search, and the reader's own time on hovering.
"use strict";
for (const time of document.querySelectorAll("time")) {
  time.title = new Date(time.dateTime).toLocaleString();
}
document.addEventListener("keydown", (event) => {
  const isWriting = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "/" && !isWriting && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.querySelector("[role=search] input").focus();
  }
});
