for (const table of document.querySelectorAll("table")) {
  const headings = [...table.querySelectorAll("th")];
  headings.forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    headings.forEach(other => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = row => row.children[column].dataset.value;
    const order = (one, other) => {
      const difference = Number(value(one)) - Number(value(other));
      return Number.isNaN(difference) ? value(one).localeCompare(value(other)) : difference;
    };
    const body = table.tBodies[0];
    const rows = [...body.rows].sort(order);
    body.append(...(down ? rows.reverse() : rows));
  }));
}
