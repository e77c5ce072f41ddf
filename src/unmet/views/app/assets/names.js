// Label those Dash controls that have no name for screen readers, and collapse the controls on a phone at first.
(() => {
  const folded = new WeakSet();
  const narrow = window.matchMedia("(max-width: 820px)");
  const name = () => {
    document.querySelectorAll("details.controls").forEach((box) => {
      if (!folded.has(box) && narrow.matches) box.open = false;
      folded.add(box);
    });
    document.querySelectorAll(".field .dash-slider-thumb:not([aria-label])").forEach((thumb) => {
      const label = thumb.closest(".field").querySelector(".label");
      if (label) thumb.setAttribute("aria-label", label.textContent);
    });
    document.querySelectorAll(".dash-dropdown-focus-target").forEach((target) => {
      if (target.getAttribute("tabindex") !== "-1") target.setAttribute("tabindex", "-1");
    });
  };
  new MutationObserver(name).observe(document.documentElement, { childList: true, subtree: true });
})();
