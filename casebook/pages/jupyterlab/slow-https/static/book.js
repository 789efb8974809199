/* What JupyterLab lacks for this book, as an extension that needs no build:

   - a solution is one bar until somebody opens it, whatever ran meanwhile;
   - a link to a finding whose cell has not run leads to that cell, and says so;
   - a number that a sentence takes from a finding is there once its cell has run;
   - a guess is kept in the notebook alone, and shown again where the chapter sums up;
   - while all cells run, the view stays on the one that is running.

   jupyter_server_config.py names the folder that this lies in. JupyterLab asks the container at the
   end of this file for "./extension". */
"use strict";
(() => {
  const STYLE = `
    .cb-solution .jp-Cell-inputWrapper, .cb-solution .jp-Cell-outputWrapper, .cb-solved {
      display: none !important;
    }
    .cb-gate :is(aside, details, .admonition):first-of-type, .cb-start .myst-exercise-header,
    .cb-end .myst > aside.myst-exercise:last-child { display: none; }
    .cb-bar, .cb-guess { margin: .3em 0 .3em 5em; font: var(--jp-ui-font-size1) var(--jp-ui-font-family); }
    .cb-bar { border: 1px solid var(--jp-border-color1); border-radius: 4px; padding: .4em .8em;
      background: var(--jp-layout-color2); color: var(--jp-ui-font-color1); cursor: pointer; }
    .cb-guess { display: flex; gap: .6em; align-items: center; color: var(--jp-ui-font-color1); }
    .cb-guess input { flex: 1; max-width: 40em; padding: .3em .5em; font: inherit;
      border: 1px solid var(--jp-border-color1); background: var(--jp-layout-color1);
      color: inherit; }`;
  const START = /^[`:]{3,}\{solution-start\}/m;
  const END = /^[`:]{3,}\{solution-end\}/m;
  /* A cell that only says where a solution starts or ends: JupyterLab draws an empty bar for it. */
  const MARK = /^[`:]{3,}\{solution-(start|end)\}[^\n]*\n(:\w+:[^\n]*\n)*[`:]{3,}\s*$/;
  const GUESS = /^[`:]{3,}\{admonition\} Guess/m;
  const LEARNED = /^## What we learned/m;

  const source = (cell) => cell.model.sharedModel.getSource();

  /* The solutions of a notebook: lists of its cells, from the one that starts to the one that ends. */
  function solutions(cells) {
    const found = [];
    let inside = null;
    for (const cell of cells) {
      const text = cell.model.type === "markdown" ? source(cell) : "";
      if (START.test(text)) found.push((inside = []));
      if (inside) inside.push(cell);
      if (END.test(text)) inside = null;
    }
    return found;
  }

  /* What is folded once more in a cell of a solution that is open. */
  const openParts = (node) => node.querySelectorAll("details").forEach((part) => (part.open = true));
  /* On a busy machine JupyterLab draws a cell, closed, after its solution was opened. */
  const drawn = new MutationObserver((changes) => {
    for (const { target } of changes) {
      const node = target.closest(".cb-open");
      if (node) openParts(node);
    }
  });

  function fold(cells, bar, open) {
    bar.textContent = open ? "▾ Solution" : "▸ Solution: try it first, then open it here";
    bar.setAttribute("aria-expanded", String(open));
    cells.forEach((cell, place) => {
      cell.node.classList.toggle("cb-solution", !open && place === 0);
      cell.node.classList.toggle("cb-solved", !open && place > 0);
      cell.node.classList.toggle("cb-gate", MARK.test(source(cell)));
      cell.node.classList.toggle("cb-start", place === 0);
      cell.node.classList.toggle("cb-end", place > 0 && place === cells.length - 1);
      cell.node.classList.toggle("cb-open", open);
      if (open) openParts(cell.node);
      drawn.observe(cell.node, { childList: true, subtree: true });
      if (open && cell.model.type === "code") cell.inputHidden = cell.outputHidden = false;
    });
  }

  function foldSolutions(cells) {
    for (const solution of solutions(cells)) {
      const first = solution[0].node;
      let bar = first.querySelector(":scope > .cb-bar");
      if (!bar) {
        bar = document.createElement("button");
        bar.className = "cb-bar";
        bar.onclick = () => fold(solution, bar, bar.getAttribute("aria-expanded") !== "true");
        first.prepend(bar);
        fold(solution, bar, false);
      }
    }
  }

  /* What findings that have run are worth, by their ids. */
  function values(cells) {
    const found = {};
    for (const cell of cells) {
      if (cell.model.type !== "code") continue;
      for (const output of cell.model.outputs.toJSON()) {
        const glued = output.metadata && output.metadata.scrapbook;
        if (glued) found[glued.name] = Number(output.data[glued.mime_prefix + "text/plain"]);
      }
    }
    return found;
  }

  /* A number as Python's ".1f", ",.0f" or ".0%" have it; an ellipsis if there is none. */
  function formatted(value, format) {
    const [, comma, digits, kind] = /^(,?)\.(\d)([f%])$/.exec(format) || [];
    if (value === undefined || Number.isNaN(value) || !kind) return "…";
    const shown = (kind === "%" ? 100 * value : value).toLocaleString("en-US", {
      minimumFractionDigits: Number(digits),
      maximumFractionDigits: Number(digits),
      useGrouping: Boolean(comma),
    });
    return kind === "%" ? `${shown}%` : shown;
  }

  /* JupyterLab shows the name of a number that is quoted, {glue:text}`name:.1f`. */
  function quote(cells) {
    const quoting = cells.filter(
      (cell) => cell.model.type === "markdown" && source(cell).includes("{glue:text}`"),
    );
    if (!quoting.length) return;
    const known = values(cells);
    for (const cell of quoting) {
      for (const span of cell.node.querySelectorAll(".myst span:not([class])")) {
        const name = span.dataset.quoted || span.textContent;
        if (!source(cell).includes("{glue:text}`" + name + "`")) continue;
        span.dataset.quoted = name;
        const [id, format] = name.split(/:(?=[^:]*$)/);
        const number = formatted(known[id], format);
        if (span.textContent === number) continue;
        span.textContent = number;
        span.title = number === "…" ? "This number is not there yet: its cell has not run here." : "";
      }
    }
  }

  /* A line to type in below each guess; what was typed is in the cell's metadata, saved with the
     notebook, and nowhere else. */
  function keepGuesses(cells) {
    const asked = cells.filter((cell) => cell.model.type === "markdown" && GUESS.test(source(cell)));
    const summary = cells.find((cell) => cell.model.type === "markdown" && LEARNED.test(source(cell)));
    const again = () => {
      if (!summary) return;
      const guesses = asked.map((cell) => cell.model.getMetadata("guess")).filter(Boolean);
      let line = summary.node.querySelector(":scope > .cb-guess");
      if (!line && guesses.length) {
        line = document.createElement("div");
        line.className = "cb-guess";
        summary.node.append(line);
      }
      if (line) line.textContent = guesses.length ? `You guessed: ${guesses.join("; ")}` : "";
    };
    for (const cell of asked) {
      if (cell.node.querySelector(":scope > .cb-guess")) continue;
      const label = document.createElement("label");
      label.className = "cb-guess";
      label.append("Your guess:");
      const input = document.createElement("input");
      input.placeholder = "stays in this notebook";
      input.value = cell.model.getMetadata("guess") || "";
      input.onchange = () => {
        if (input.value) cell.model.setMetadata("guess", input.value);
        else cell.model.deleteMetadata("guess");
        again();
      };
      input.onkeydown = (event) => event.stopPropagation();
      label.append(input);
      cell.node.append(label);
    }
    again();
  }

  /* The notebooks that are open. */
  function* notebooks(app) {
    for (const widget of app.shell.widgets("main")) {
      if (widget.content && widget.content.widgets && widget.content.activeCell !== undefined) {
        yield widget.content;
      }
    }
  }

  function dress(notebook) {
    foldSolutions(notebook.widgets);
    keepGuesses(notebook.widgets);
  }

  function lead(app, event) {
    const link = event.target.closest && event.target.closest('.jp-Notebook a[href*="#claim-"]');
    if (!link) return;
    const [path, id] = link.getAttribute("href").split("#");
    if (path && !link.getAttribute("href").startsWith("#")) return; // of another chapter
    if (document.getElementById(id)) return; // it is there: JupyterLab goes
    const notebook = [...notebooks(app)].find((each) => each.node.contains(link));
    const named = `"${id.replace("claim-", "")}"`;
    const cell = notebook.widgets.find(
      (each) => each.model.type === "code" && source(each).includes(named),
    );
    event.preventDefault();
    event.stopPropagation();
    if (cell) {
      notebook.activeCellIndex = notebook.widgets.indexOf(cell);
      notebook.scrollToItem(notebook.activeCellIndex, "center");
    }
    app.commands.execute("apputils:notify", {
      message: cell
        ? "This finding is not there yet: run this cell, and those above it, first."
        : "This finding is not in this copy: it rests on a solution.",
      type: "info",
      options: { autoClose: 8000 },
    });
  }

  /* While all cells run, the view goes on to the next; until somebody scrolls. */
  function follow(app, actions) {
    const followed = new Set();
    const began = /^notebook:(run-all-cells|restart-run-all|run-all-below|run-all-above)$/;
    app.commands.commandExecuted.connect((_, { id }) => {
      const shown = app.shell.currentWidget;
      if (began.test(id) && shown && shown.content.widgets) {
        followed.add(shown.content);
        shown.content.scrollToItem(0);
      }
    });
    actions.executed.connect((_, { notebook, cell }) => {
      if (!followed.has(notebook)) return;
      const next = notebook.widgets.findIndex(
        (each, place) => place > notebook.widgets.indexOf(cell) && each.model.type === "code",
      );
      if (next < 0) followed.delete(notebook);
      else notebook.scrollToItem(next, "center");
    });
    document.addEventListener("wheel", () => followed.clear(), { passive: true });
  }

  const plugin = (actions) => ({
    id: "slow-https:book",
    autoStart: true,
    activate: (app) => {
      const style = document.createElement("style");
      style.textContent = STYLE;
      document.head.append(style);
      document.addEventListener("click", (event) => lead(app, event), true);
      if (actions) follow(app, actions);
      const dressed = new WeakSet();
      const look = () => {
        for (const notebook of notebooks(app)) {
          if (notebook.model && notebook.isVisible) quote(notebook.widgets);
          if (dressed.has(notebook) || !notebook.model || !notebook.widgets.length) continue;
          dressed.add(notebook);
          dress(notebook);
          notebook.model.cells.changed.connect(() => setTimeout(() => dress(notebook), 0));
        }
        setTimeout(look, 300);
      };
      look();
    },
  });

  let shared = {};
  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["slow-https"] = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const versions = Object.values(shared["@jupyterlab/notebook"] || {});
      const actions = versions.length ? (await versions[0].get())().NotebookActions : null;
      return () => ({ __esModule: true, default: plugin(actions) });
    },
  };
})();
