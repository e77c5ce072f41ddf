// Names for what Dash's controls leave nameless to screen readers.
(() => {
  const name = () => {
    document.querySelectorAll("#plan-plugs .dash-slider-thumb, .field .dash-slider-thumb").forEach((thumb) => {
      if (!thumb.hasAttribute("aria-label")) thumb.setAttribute("aria-label", "Plugs to add");
    });
    document.querySelectorAll(".dash-dropdown-focus-target").forEach((target) => {
      if (target.getAttribute("tabindex") !== "-1") target.setAttribute("tabindex", "-1");
    });
  };
  new MutationObserver(name).observe(document.documentElement, { childList: true, subtree: true });
})();
