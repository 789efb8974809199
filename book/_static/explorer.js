/* Timelines that can be asked: those of the chapters, and the explorer of chapter 4.
 *
 * A timeline is {label, alt, end, stall, rows, loop, beats}, all times in ms. A row is the page,
 * then start and end of each of EVENTS (null where there was none). loop: whether there was an
 * event loop. In a chapter `alt` is that of the picture which is drawn anew. before: the rows of
 * another run, to be seen behind these, if there is one. Where the loop is blocked, a connection
 * that has begun can only wait: that is `held`, and no part of what a connection takes.
 * delay: how long the server waited before each reply. In a place of the class `asks` a guess comes
 * before the runs. Nothing is measured here.
 */
(() => {
  "use strict";

  const EVENTS = ["connect", "handshake", "send", "wait", "receive"];
  const SVG = "http://www.w3.org/2000/svg";
  const HINT = "Hover, tap or use the arrow keys to see when a request did what; + and − zoom.";
  const LEFT = 26, RIGHT = 10, TOP = 6;

  function make(tag, attributes = {}, ...children) {
    const node = tag.startsWith("svg:")
      ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== undefined && value !== false) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  /* 3.04 -> "3.0 ms", 112.7 -> "113 ms", 1043 -> "1.04 s" */
  function time(ms) {
    if (ms >= 999.5) return (ms / 1000).toFixed(ms < 9995 ? 2 : 1) + " s";
    return ms.toFixed(ms < 10 ? 1 : 0) + " ms";
  }

  /* What a part of a request says of itself. */
  const SAID = {
    connect({start, end, held}) {
      const waited = held.reduce((all, [a, b]) => all + b - a, 0);
      return `connected in ${time(end - start)}` + (waited ? `, ${time(waited)} of it kept waiting` : "");
    },
    handshake: ({start, end}) => `handshake ${time(end - start)}`,
    send: ({start}) => `sent at ${time(start)}`,
    wait: ({start, end}) => `waited ${time(end - start)}`,
    receive: ({end}) => `received at ${time(end)}`,
  };

  /* One timeline, in an element of its own. tell(nodes, plot): what to say of a chosen request. */
  class Plot {
    static made = 0;

    constructor(tell) {
      this.tell = tell;
      const point = event => this.point(event);
      this.cover = make("svg:rect", {x: LEFT - 4, height: "100%"}); // nothing is drawn outside it
      this.clip = make("svg:clipPath", {id: `tl-clip-${++Plot.made}`}, this.cover);
      this.svg = make("svg:svg", {"aria-hidden": "true"});
      this.box = make("div", {
        class: "tl-plot", tabindex: 0, role: "application", "aria-roledescription": "timeline",
        onkeydown: event => this.key(event), onpointermove: point, onpointerdown: point,
        onfocus: () => { if (!this.chosen && this.data) this.choose(0, 0); },
      }, this.svg);
      new ResizeObserver(() => this.draw()).observe(this.box);
    }

    show(data) {
      this.data = data;
      this.parts = data.rows.map(([, ...times]) =>
        EVENTS.map((event, i) => ({event, start: times[2 * i], end: times[2 * i + 1]}))
          .filter(part => part.start !== null));
      const ended = Math.max(...this.parts.flat().map(part => part.end));
      this.beats = data.beats.filter(beat => beat >= 0 && beat <= ended);
      const pauses = [...this.beats, ended].map((to, i) => [this.beats[i - 1] ?? 0, to]);
      this.late = pauses.filter(([a, b]) => data.loop && b - a >= data.stall);
      for (const part of this.parts.flat()) {
        part.held = part.event !== "connect" ? [] : this.late
          .map(([a, b]) => [Math.max(a, part.start), Math.min(b, part.end)])
          .filter(([a, b]) => b - a >= data.stall);
      }
      this.chosen = null;
      this.box.setAttribute("aria-label", `${data.alt} Arrow keys go from request to request and `
        + "from part to part; plus and minus zoom.");
      this.whole();
    }

    choose(row, part) {
      const its = this.parts[row];
      this.row = row;
      this.part = Math.max(0, Math.min(part, its.length - 1));
      this.chosen = its[this.part];
      const {start, end} = this.chosen;
      if (end < this.from || start > this.to) this.look((start + end) / 2, this.to - this.from);
      const said = its.flatMap(each => {
        const text = SAID[each.event](each);
        return [", ", each === this.chosen ? make("strong", {}, text) : text];
      });
      this.tell([`Request ${this.data.rows[row][0]}: `, ...said.slice(1), "."], this);
      this.draw();
    }

    /* Show `span` ms around a moment, within what there is. */
    look(middle, span) {
      span = Math.min(span, this.data.end);
      this.from = Math.max(0, Math.min(middle - span / 2, this.data.end - span));
      this.to = this.from + span;
      this.draw();
    }

    zoom(times) {
      const {start, end} = this.chosen ?? {start: this.from, end: this.to};
      this.look((start + end) / 2, Math.max((this.to - this.from) / times, 1));
    }

    whole() { this.look(this.data.end / 2, this.data.end); }

    key(event) {
      if (!this.data || event.altKey || event.ctrlKey || event.metaKey) return;
      const {row, part} = this.chosen ? this : {row: 0, part: 0};
      const last = this.data.rows.length - 1;
      const does = {
        ArrowDown: () => this.choose(Math.min(last, row + 1), part),
        ArrowUp: () => this.choose(Math.max(0, row - 1), part),
        ArrowRight: () => this.choose(row, part + 1),
        ArrowLeft: () => this.choose(row, part - 1),
        Home: () => this.choose(0, part),
        End: () => this.choose(last, part),
        "+": () => this.zoom(3),
        "=": () => this.zoom(3),
        "-": () => this.zoom(1 / 3),
        0: () => this.whole(),
        Escape: () => this.whole(),
      }[event.key];
      if (!does) return;
      event.preventDefault();
      does();
    }

    point(event) {
      if (!this.data) return;
      const spot = this.svg.getBoundingClientRect();
      const row = Math.floor((event.clientY - spot.top - TOP) / this.high);
      if (row < 0 || row >= this.data.rows.length) return;
      const at = this.from + (event.clientX - spot.left - LEFT) / this.scale;
      const away = this.parts[row].map(({start, end}) => Math.max(start - at, at - end, 0));
      const part = away.indexOf(Math.min(...away));
      if (this.parts[row][part] !== this.chosen) this.choose(row, part);
    }

    draw() {
      const wide = this.box.clientWidth;
      if (!this.data || !wide) return;
      const {rows, loop, before} = this.data;
      const count = rows.length;
      this.high = count <= 5 ? 22 : count <= 12 ? 17 : 10;
      this.scale = (wide - LEFT - RIGHT) / (this.to - this.from);
      const bottom = TOP + count * this.high;
      const strip = bottom + 31, high = strip + 16 + 20;
      const x = ms => LEFT + (ms - this.from) * this.scale;
      const rect = (name, from, to, top, height) => make("svg:rect", {class: name, y: top, height,
        x: x(from).toFixed(2), width: Math.max(1, (to - from) * this.scale).toFixed(2)});
      const text = (name, left, top, said, anchor = "start") =>
        make("svg:text", {class: name, x: left, y: top, "text-anchor": anchor}, said);
      const line = (name, x1, x2, y1, y2) => make("svg:line", {class: name, x1, x2, y1, y2});
      const right = wide - RIGHT;
      const back = make("svg:g"), drawn = make("svg:g", {"clip-path": `url(#${this.clip.id})`});

      for (const [at, label] of this.ticks()) {
        const anchor = x(at) > right - 14 ? "end" : "middle";
        back.append(line("tl-grid", x(at), x(at), TOP, bottom));
        back.append(text("tl-small", x(at), high - 5, label, anchor));
      }
      rows.forEach((row, i) => {
        const middle = TOP + (i + 0.5) * this.high;
        if (this.chosen && i === this.row) {
          back.append(make("svg:rect", {
            class: "tl-chosen", x: 0, width: wide, y: TOP + i * this.high, height: this.high}));
        }
        if (count <= 12 || row[0] % 5 === 0) {
          back.append(text("tl-small", LEFT - 8, middle + 4, String(row[0]), "end"));
        }
        if (before?.length === count) {
          const was = before[i].slice(1).filter(at => at !== null), tall = this.high * 0.86;
          drawn.append(rect("tl-before", Math.min(...was), Math.max(...was), middle - tall / 2, tall));
        }
        for (const part of this.parts[i]) {
          const name = `tl-${part.event}${part === this.chosen ? " tl-part" : ""}`;
          const size = Math.min(5, this.high / 3);
          if (part.event === "send") {
            const d = `M${x(part.start) - size} ${middle - size}l${2 * size} ${size}l${-2 * size} ${size}Z`;
            drawn.append(make("svg:path", {class: name, d}));
          } else if (part.event === "receive") {
            drawn.append(make("svg:circle", {class: name, cx: x(part.end), cy: middle, r: size * 0.9}));
          } else {
            const tall = this.high * {connect: 0.34, handshake: 0.62, wait: 0.18}[part.event];
            drawn.append(rect(name, part.start, part.end, middle - tall / 2, tall));
            for (const [a, b] of part.held) {
              drawn.append(rect("tl-held", a, b, middle - tall / 2 - 0.5, tall + 1));
            }
          }
        }
      });
      for (const [at, said] of this.data.limits ?? []) {
        if (at < this.from || at > this.to) continue;
        const anchor = x(at) > right - 60 ? "end" : "middle";
        back.append(line("tl-limit", x(at), x(at), TOP, bottom + 3));
        back.append(text("tl-small", x(at) + (anchor === "end" ? 4 : 0), bottom + 12, said, anchor));
      }
      if (loop) back.append(text("tl-small", LEFT, strip - 4, "event loop"));
      const late = this.late;
      for (const [a, b] of late) drawn.append(rect("tl-stall", a, b, strip, 14));
      for (const beat of this.beats) drawn.append(rect("tl-beat", beat, beat, strip, 14));
      if (late.length) {
        const worst = Math.max(...late.map(([a, b]) => b - a));
        const said = `blocked for ${time(worst)} at longest`;
        drawn.append(text("tl-small tl-late", right, strip - 4, said, "end"));
      }
      back.append(line("tl-axis", LEFT, right, strip + 16, strip + 16));
      this.cover.setAttribute("width", right - LEFT + 8);
      this.svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
      this.svg.replaceChildren(this.clip, back, drawn);
    }

    /* Let it come as it happened, up to a moment; the whole axis takes two seconds. */
    play(until, then) {
      const full = this.cover.width.baseVal.value, all = this.data.end;
      const width = ["8px", `${8 + (full - 8) * until / all}px`];
      this.playing = this.cover.animate({width}, 2000 * until / all);
      this.playing.onfinish = then;
    }

    /* Round moments of the axis, and their names. */
    ticks() {
      const span = this.to - this.from, most = this.box.clientWidth < 500 ? 4 : 7;
      let step = 10 ** Math.floor(Math.log10(span / most));
      step *= [1, 2, 5, 10].find(times => span / (step * times) <= most);
      const found = [];
      for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
        const short = Number(at.toPrecision(6));
        found.push([at, span > 400 ? `${Number((short / 1000).toPrecision(6))} s` : `${short} ms`]);
      }
      return found;
    }
  }

  /* What the chosen request says, and three buttons, for one plot or several. */
  function desk(current) {
    const button = (label, name, does) => make("button", {
      type: "button", "aria-label": name, title: name, onclick: () => does(current())}, label);
    const said = make("p", {class: "tl-said", role: "status"}, HINT);
    const bar = make("div", {class: "tl-desk"}, said,
      make("div", {class: "tl-zoom", role: "group", "aria-label": "Zoom"},
        button("−", "Zoom out", plot => plot.zoom(1 / 3)),
        button("+", "Zoom in", plot => plot.zoom(3)),
        button("all", "Zoom: all of it", plot => plot.whole())));
    return {bar, tell: nodes => said.replaceChildren(...nodes)};
  }

  /* A guess, entered before something is shown. answer(): show it. */
  function question(text, answer) {
    // Text, since a field for numbers drops the comma of those who write 2,5.
    const guess = make("input", {type: "text", id: "explorer-guess", inputmode: "decimal",
      pattern: "\\d{1,3}([.,]\\d+)?", title: "a number of delays, such as 2 or 2.5"});
    const ask = make("form", {class: "ex-ask", autocomplete: "off", onsubmit: event => {
      event.preventDefault();
      answer();
    }}, make("label", {for: guess.id}, text), guess,
      make("button", {type: "submit", class: "ex-run"}, "Show it"));
    return {ask, guess, entered: () => guess.value && String(Number(guess.value.replace(",", ".")))};
  }

  const inDelays = (ms, delay) => Number((ms / delay).toFixed(1));
  const stands = () =>
    document.hidden || window.matchMedia("(prefers-reduced-motion: reduce)").matches;

  /* Replace the pictures of one figure of a chapter. */
  function enhance(figure) {
    const panels = JSON.parse(figure.dataset.timelines);
    const pictures = figure.querySelectorAll("svg[role=img]");
    if (pictures.length !== panels.length) return;
    let last = null;
    const {bar, tell} = desk(() => last);
    const plots = panels.map((data, i) => {
      data.alt = pictures[i].getAttribute("aria-label");
      const plot = new Plot((nodes, which) => {
        if (last !== which) {
          last.chosen = null;
          last.draw();
          last = which;
        }
        tell(plots.length > 1 ? [`${data.label}. `, ...nodes] : nodes);
      });
      pictures[i].replaceWith(make("div", {class: "tl-panel"},
        make("p", {class: "tl-label"}, data.label), plot.box));
      plot.show(data);
      return plot;
    });
    last = plots[0];
    const all = figure.querySelector(".cb-panels") || plots[0].box.parentNode;
    all.after(bar);
    if (figure.closest(".asks")) askFirst(figure, all, panels, plots);
  }

  /* Have the last run of a figure guessed before it is shown: all of them fetch the same pages. */
  function askFirst(figure, all, panels, plots) {
    const behind = [...figure.children].slice([...figure.children].indexOf(all) + 1);
    const secret = [plots.at(-1).box.closest(".tl-panel"), ...behind];
    const verdict = make("p", {class: "ex-verdict", role: "status", tabindex: -1});
    const takes = ({label, delay, rows}) => {
      const ended = Math.max(...rows.flatMap(row => row.slice(1)));
      return `${label} takes ${inDelays(ended, delay)} delays`;
    };
    const known = panels.slice(0, -1), asked = panels.at(-1);
    const told = known.map(panel => `${takes(panel)} for all ${panel.rows.length} pages. `).join("");
    const {ask, entered} = question(`${told}How many will ${asked.label} take? Your guess:`, () => {
      secret.forEach(node => { node.inert = false; });
      ask.replaceWith(verdict);
      verdict.focus({preventScroll: true}); // the button is gone
      const said = `${takes(asked)}.` + (entered() && ` You guessed ${entered()}.`);
      const finish = () => verdict.replaceChildren(make("strong", {}, said));
      if (stands()) return finish();
      plots.forEach((plot, i) => plot.play(plot.data.end, i ? undefined : finish));
    });
    secret.forEach(node => { node.inert = true; });
    all.after(ask); // below the pictures, so that none of them moves
  }

  /* The explorer: `data` as casebook/charts/explorer_form.py makes it. Its form holds what is chosen.
   * It asks for a guess before it shows a run, and the run before stays behind it. */
  function explore(root, {delay, order, parts, runs, stall, steps, ...data}) {
    const listed = new Intl.ListFormat("en-GB");
    let step = 0, shown = null; // the run that is shown: {id, title, rows, wall, behind}
    const input = (id, value) => form.querySelector(`[id="explorer-${id}-${value}"]`);
    const value = id => form.elements[`explorer-${id}`].value;
    const labelOf = id => parts.find(part => part.id === id).label;
    const chosen = () => order.filter(id => input("parts", id).checked);
    const key = n => [value("python"), chosen().join("+"), value("scheme"), n].join("|");
    const name = python => python === "today" ? "Python of today" : `Python ${python}`;

    /* Why a part cannot be chosen; nothing where it can be. */
    function refusal({refused, needs, without}) {
      return refused[value("python")] || (needs && !input("parts", needs).checked && without);
    }

    function field(id, legend, type, first, choices) {
      return make("fieldset", {class: `ex-${id}`}, make("legend", {}, legend),
        ...choices.map(choice => {
          const {id: value, label, about} = choice.about ? choice : {id: choice, label: choice};
          const its = `explorer-${id}-${value}`, more = about && `${its}-about`;
          return make("div", {class: "ex-choice"},
            make("input", {type, name: `explorer-${id}`, value, id: its, checked: value === first,
              "aria-describedby": more}),
            make("label", {for: its}, label), make("small", {id: more}));
        }));
    }

    const form = make("form",
      {class: "ex-form", autocomplete: "off", onchange: () => update(),
        onsubmit: event => event.preventDefault()},
      field("parts", "added to grequests", "checkbox", "", parts),
      field("scheme", "fetched over", "radio", "https", data.schemes),
      field("python", "Python", "radio", "2.7", data.pythons),
      field("n", "requests at once", "radio", 10, data.sizes));
    const what = make("p", {class: "ex-what"});
    const verdict = make("p", {class: "ex-verdict", role: "status", tabindex: -1});
    const behind = make("p", {class: "ex-behind"}, "Pale, behind it: the run before.");
    const {ask, guess, entered} = question("How many delays will it take? Your guess:", () => {
      update(true);
      verdict.focus(); // the button is gone
    });
    const next = make("p", {class: "ex-next"});
    const all = make("button", {type: "button", class: "ex-all", onclick: () => {
      step = steps.length;
      update();
    }}, "Show all controls");
    const source = make("p", {class: "cb-source"});
    const {bar, tell} = desk(() => plot);
    const plot = new Plot(tell);
    const kept = root.querySelectorAll("figure style, figure .cb-key");

    /* What still differs from a step's combination, as things to do. */
    function missing({python, scheme, parts: wanted}) {
      const todo = [], has = chosen();
      if (value("python") !== python) todo.push(`choose ${name(python)}`);
      if (value("scheme") !== scheme) todo.push(`choose ${scheme}`);
      for (const id of wanted) if (!has.includes(id)) todo.push(`tick ${labelOf(id)}`);
      for (const id of has) if (!wanted.includes(id)) todo.push(`untick ${labelOf(id)}`);
      return todo;
    }

    /* Say what to do next, and uncover the controls that the steps so far name; a step is done when
     * its run is shown. */
    function lead(asks) {
      while (!asks && step < steps.length && !missing(steps[step]).length) step += 1;
      const done = all.hidden = step === steps.length;
      const named = steps.slice(0, step + 1);
      for (const {id} of parts) {
        input("parts", id).parentNode.hidden = !done && !named.some(one => one.parts.includes(id));
      }
      const [, scheme, python, n] = form.children;
      scheme.hidden = !done && named.every(one => one.scheme === "https");
      python.hidden = !done && named.every(one => one.python === "2.7");
      n.hidden = !done;
      const todo = done ? [] : missing(steps[step]);
      next.hidden = asks && !todo.length;
      next.textContent = done ? "The rest is yours: try any of them, with 3 requests or with 30."
        : `Now ${listed.format(todo)}.`;
    }

    /* plays: whether the run that is chosen is shown, and not asked about first. */
    function update(plays = false) {
      for (const part of parts) { // what another one needs comes before it
        const box = input("parts", part.id), why = refusal(part);
        box.disabled = Boolean(why);
        box.checked &&= !why;
        box.parentNode.lastChild.textContent = why ? `not possible: ${why}` : part.about;
      }
      for (const n of data.sizes) input("n", n).disabled = !runs[key(n)];
      const n = Number(value("n")), run = runs[key(n)], has = chosen().map(labelOf);
      const chosenRun = `${name(value("python"))}, ${value("scheme")}, grequests`
        + (has.length ? ` with ${has.join(", ")}` : " and nothing more");
      const title = `${chosenRun}: ${n} requests, each answered after ${delay / 1000} s.`;
      const id = key(n), asks = Boolean(run && shown && shown.id !== id && !plays);
      // The title is that of the run that is seen; the question names the one that is to come.
      what.textContent = asks ? `Pale, the run before: ${shown.title}` : title;
      ask.querySelector("label").textContent = `${chosenRun}: how many delays will it take? Your guess:`;
      lead(asks);
      plot.playing?.cancel();
      plot.box.hidden = bar.hidden = !run;
      plot.box.inert = bar.inert = asks;
      ask.hidden = !asks;
      behind.hidden = true;
      source.textContent = "";
      if (!run) return verdict.replaceChildren("This was neither measured here nor recorded.");
      if (asks) return verdict.replaceChildren("Guess, then look.");
      show(id, n, run, title);
    }

    function show(id, n, run, title) {
      const guessed = shown?.id !== id && entered();
      if (shown?.id !== id) shown = {id, title, rows: run.rows, wall: run.wall, behind: shown};
      const before = shown.behind?.rows.length === n ? shown.behind : null;
      behind.hidden = !before;
      guess.value = "";
      const wall = `${(run.wall / 1000).toFixed(2)} s`;
      const how = run.verdict === "serial" ? "one after the other."
        : `${run.most === n ? "all" : `up to ${run.most} of`} ${n} at once.`;
      plot.show({
        rows: run.rows, loop: true, beats: run.beats, stall, before: before?.rows,
        end: 1.03 * Math.max(run.wall, before?.wall ?? 0),
        limits: [[delay, "one delay"], [n * delay, `${n} delays`]],
        alt: `${title} ${wall}: ${how}`,
      });
      tell([HINT]);
      source.textContent = run.origin + (run.says ? ` The post of 2019 found it ${run.says}.`
        : " Measured by us, never published.");
      const came = guessed ? ` That is ${inDelays(run.wall, delay)} delays; you guessed ${guessed}.` : "";
      const finish = () => verdict.replaceChildren(make("strong", {}, wall), `: ${how}${came}`);
      if (stands() || !shown.behind) return finish(); // the first one nobody asked for
      verdict.replaceChildren("\u00a0");
      plot.play(run.wall, finish);
    }

    root.querySelector("figure").replaceWith(make("div", {class: "ex cb-figure"},
      what, ...kept, plot.box, behind, bar, verdict, next, form, ask, all, source));
    update();
  }

  document.addEventListener("DOMContentLoaded", () => {
    const root = document.getElementById("explorer");
    if (root) explore(root, window.casebookExplorer);
    document.querySelectorAll("figure[data-timelines]").forEach(enhance);
  });
})();
