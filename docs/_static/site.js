// Beside furo: headings of the navigation say their level, and code that scrolls can be reached with the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll(".sidebar-tree .caption[role=heading]")) {
    caption.setAttribute("aria-level", "2");
  }
  const reachable = () => {
    for (const code of document.querySelectorAll("pre, .table-wrapper")) {
      if (code.scrollWidth > code.clientWidth) {
        code.setAttribute("tabindex", "0");
      } else {
        code.removeAttribute("tabindex");
      }
    }
  };
  reachable();
  window.addEventListener("resize", reachable);
});
