"use strict";

/* Explorers in frames have the colors of the page around them, whichever its reader chooses. */
function colorExplorers() {
  const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
  for (const frame of document.querySelectorAll("iframe.explorer")) {
    frame.contentWindow.location.replace(frame.src.split("#")[0] + "#theme=" + theme);
  }
}

new MutationObserver(colorExplorers).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
colorExplorers();
