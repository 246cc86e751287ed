// Makes tables sortable, and adds a field that filters the cards. The page works without it.
"use strict";

function sortBy(head, column) {
  const body = head.closest("table").tBodies[0];
  const isNumber = "value" in body.rows[0].cells[column].dataset;
  const valueOf = ({ cells }) => cells[column].dataset.value ?? cells[column].textContent.trim();
  const compare = isNumber ? (a, b) => a - b : new Intl.Collator().compare;
  const falls = head.ariaSort ? head.ariaSort === "ascending" : isNumber;
  const rows = [...body.rows].sort((one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)];
    if (a === "" || b === "") return (a === "") - (b === ""); // unknown values come last
    return falls ? compare(b, a) : compare(a, b);
  });
  for (const each of head.parentNode.cells) each.ariaSort = null;
  head.ariaSort = falls ? "descending" : "ascending";
  body.append(...rows);
}

for (const head of document.querySelectorAll("th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => sortBy(head, head.cellIndex));
}

const cards = [...document.querySelectorAll("details")];
const search = document.querySelector("[role=search]");
if (search) {
  const field = search.querySelector("input");
  search.hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    let found = 0;
    for (const card of cards) {
      const text = card.textContent.toLowerCase();
      card.hidden = !words.every((word) => text.includes(word));
      found += !card.hidden;
      card.open = !card.hidden && found <= (field.value ? 20 : 3);
    }
    search.querySelector("output").textContent = `${found} of ${cards.length}`;
  });
}

// A link to a card opens it, even if the filter hides it.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#card-']");
  if (!link) return;
  const card = document.querySelector(link.hash);
  card.hidden = false;
  card.open = true;
});
