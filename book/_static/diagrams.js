// Draws the Mermaid diagrams of a page with the site's own copy of Mermaid, in the page's theme,
// and draws them again when the reader changes the theme.
const diagrams = [...document.querySelectorAll("pre.mermaid")];

async function draw(mermaid) {
  const dark = document.documentElement.dataset.theme === "dark";
  mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral", securityLevel: "strict" });
  for (const [number, diagram] of diagrams.entries()) {
    diagram.dataset.source ??= diagram.textContent;
    const { svg } = await mermaid.render(`diagram-${number}`, diagram.dataset.source);
    diagram.innerHTML = svg;
  }
}

if (diagrams.length > 0) {
  const { mermaid } = await import("./mermaid/index.js");
  await draw(mermaid);
  new MutationObserver(() => draw(mermaid)).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });
}
