"use strict";

/* Explorers in frames have the colours of the page around them, whichever its reader chooses. */
function colourExplorers() {
  const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
  for (const frame of document.querySelectorAll("iframe.explorer")) {
    frame.contentWindow.location.replace(frame.src.split("#")[0] + "#" + theme);
  }
}

new MutationObserver(colourExplorers).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
colourExplorers();
