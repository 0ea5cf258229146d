// Without this script the page still shows everything; it opens what a link points at, and filters the list.
(() => {
  const open = () => {
    const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = place; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    if (place) place.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
  const filter = document.getElementById("filter");
  if (!filter) return;
  filter.hidden = false;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const part of document.querySelectorAll("[data-find]")) {
      part.hidden = !words.every((word) => part.dataset.find.includes(word));
    }
  });
})();
