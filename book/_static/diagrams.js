// Draws the Mermaid diagrams of a page with the site's own copy of Mermaid, in the colours of the
// page's theme, and draws them again when the reader changes the theme.
const diagrams = [...document.querySelectorAll("pre.mermaid")];

// The page's colours as Mermaid understands them: "rgb(…)", whatever the style sheet says.
function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(--pst-color-${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

async function draw(mermaid) {
  const [ground, text] = [colour("background"), colour("text-base")];
  const [surface, line] = [colour("surface"), colour("text-muted")];
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    theme: "base",
    themeVariables: {
      background: ground,
      primaryColor: surface,
      primaryTextColor: text,
      primaryBorderColor: line,
      secondaryColor: surface,
      tertiaryColor: ground,
      lineColor: line,
      textColor: text,
      titleColor: text,
      edgeLabelBackground: ground,
      clusterBkg: ground,
      clusterBorder: line,
      noteBkgColor: surface,
      noteTextColor: text,
      noteBorderColor: line,
      fontFamily: getComputedStyle(document.body).fontFamily,
    },
  });
  for (const [number, diagram] of diagrams.entries()) {
    diagram.dataset.source ??= diagram.textContent;
    const { svg } = await mermaid.render(`diagram-${number}`, diagram.dataset.source);
    diagram.innerHTML = svg;
  }
}

if (diagrams.length > 0) {
  const { mermaid } = await import("./mermaid/index.js");
  // One drawing after the other: the theme is often set while the first is under way.
  let drawn = draw(mermaid);
  new MutationObserver(() => {
    drawn = drawn.then(() => draw(mermaid));
  }).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}
