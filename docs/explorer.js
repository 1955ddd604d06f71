"use strict";

/* Explorers in frames use the color scheme of the page around them. */
function colorExplorers() {
  const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
  for (const frame of document.querySelectorAll("iframe.explorer")) frame.contentWindow.postMessage({ theme }, "*");
}

/* Frames are as high as the pages in them. */
addEventListener("message", ({ source, data }) => {
  for (const frame of document.querySelectorAll("iframe.explorer")) {
    if (frame.contentWindow === source && data.height > 0) frame.style.height = `${data.height + frame.offsetHeight - frame.clientHeight}px`;
  }
});

new MutationObserver(colorExplorers).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
for (const frame of document.querySelectorAll("iframe.explorer")) frame.addEventListener("load", colorExplorers);
colorExplorers();
