// Label those Dash controls that have no name for screen readers, and collapse the controls on a phone at first.
(() => {
  const seen = new WeakSet(); // groups of controls that are on the page, which visitors may have opened since
  const narrow = window.matchMedia("(max-width: 820px)");
  const update = () => {
    document.querySelectorAll("details.controls").forEach((box) => {
      if (!seen.has(box) && narrow.matches) box.open = false;
      seen.add(box);
    });
    document.querySelectorAll(".field .dash-slider-thumb:not([aria-label])").forEach((thumb) => {
      const label = thumb.closest(".field").querySelector(".label");
      if (label) thumb.setAttribute("aria-label", label.textContent);
    });
    // An invisible part of each dropdown; without this, the tab key would stop twice at a dropdown.
    document.querySelectorAll(".dash-dropdown-focus-target").forEach((target) => {
      if (target.getAttribute("tabindex") !== "-1") target.setAttribute("tabindex", "-1");
    });
  };
  new MutationObserver(update).observe(document.documentElement, { childList: true, subtree: true });
})();
