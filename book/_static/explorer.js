/* Timelines that can be asked: those of the chapters, and the explorer of the preface.
 *
 * A timeline is {label, alt, end, stall, rows, loop, beats}, all times in ms. A row is the page,
 * then start and end of each of EVENTS (null where there was none). loop: whether there was an
 * event loop. In a chapter `alt` is that of the picture which is drawn anew.
 * Nothing is measured here.
 */
(function () {
  "use strict";

  const EVENTS = ["connect", "handshake", "send", "wait", "receive"];
  const SVG = "http://www.w3.org/2000/svg";
  const HINT = "Hover, tap or use the arrow keys to ask a request for its parts; + and − zoom.";
  const LEFT = 26, RIGHT = 10, TOP = 6;

  function make(tag, attributes, ...children) {
    const node = tag.startsWith("svg:")
      ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  }

  /* 3.04 -> "3.0 ms", 112.7 -> "113 ms", 1043 -> "1.04 s" */
  function time(ms) {
    if (ms >= 999.5) return (ms / 1000).toFixed(ms < 9995 ? 2 : 1) + " s";
    return ms.toFixed(ms < 10 ? 1 : 0) + " ms";
  }

  /* The pauses of the event loop that are longer than `stall`. */
  function stalls(beats, end, stall) {
    const moments = [0, ...beats.filter(beat => beat >= 0 && beat <= end), end];
    return moments.slice(1).map((to, i) => [moments[i], to]).filter(([a, b]) => b - a >= stall);
  }

  function parts(row) {
    return EVENTS.map((event, i) => ({event, start: row[2 * i + 1], end: row[2 * i + 2]}))
      .filter(part => part.start !== null);
  }

  /* What one request says of itself, the chosen part in bold. */
  function telling(data, at, chosen) {
    const row = data.rows[at];
    const said = {
      connect: part => `connected in ${time(part.end - part.start)}`,
      handshake: part => `handshake ${time(part.end - part.start)}`,
      send: part => `sent at ${time(part.start)}`,
      wait: part => `waited ${time(part.end - part.start)}`,
      receive: part => `received at ${time(part.end)}`,
    };
    const pieces = [`Request ${row[0]}: `];
    parts(row).forEach((part, i) => {
      const text = said[part.event](part);
      pieces.push(i ? ", " : "", part.event === chosen ? make("strong", {}, text) : text);
    });
    return [...pieces, "."];
  }

  /* One timeline in an element, which it fills. tell(nodes): what to say of the chosen request. */
  class Plot {
    constructor(box, tell) {
      this.box = box;
      this.tell = tell;
      this.row = this.part = null;
      this.clip = `tl-clip-${++Plot.made}`;
      this.until = Infinity; // while it plays: nothing after this moment
      box.classList.add("tl-plot");
      box.tabIndex = 0;
      box.setAttribute("role", "application");
      box.setAttribute("aria-roledescription", "timeline");
      this.svg = box.appendChild(make("svg:svg", {"aria-hidden": "true"}));
      box.addEventListener("keydown", event => this.key(event));
      box.addEventListener("focus", () => { if (this.row === null && this.data) this.choose(0, 0); });
      for (const kind of ["pointermove", "pointerdown"]) {
        box.addEventListener(kind, event => this.point(event));
      }
      new ResizeObserver(() => this.draw()).observe(box);
    }

    show(data) {
      this.data = data;
      this.from = 0;
      this.to = data.end;
      this.row = this.part = null;
      this.box.setAttribute("aria-label", `${data.alt} Arrow keys go from request to request and `
        + "from part to part; plus and minus zoom.");
      this.draw();
    }

    choose(row, part) {
      const its = parts(this.data.rows[row]);
      this.row = row;
      this.part = Math.max(0, Math.min(part, its.length - 1));
      const {event, start, end} = its[this.part];
      if (end < this.from || start > this.to) this.look((start + end) / 2, this.to - this.from);
      this.tell(telling(this.data, row, event), this);
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
      let middle = (this.from + this.to) / 2;
      if (this.row !== null) {
        const part = parts(this.data.rows[this.row])[this.part];
        middle = (part.start + part.end) / 2;
      }
      this.look(middle, Math.max((this.to - this.from) / times, 1));
    }

    whole() { this.look(this.data.end / 2, this.data.end); }

    key(event) {
      if (!this.data || event.altKey || event.ctrlKey || event.metaKey) return;
      const row = this.row ?? 0, part = this.part ?? 0;
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
      const away = parts(this.data.rows[row]).map(
        part => Math.max(part.start - at, at - part.end, 0));
      const part = away.indexOf(Math.min(...away));
      if (row !== this.row || part !== this.part) this.choose(row, part);
    }

    draw() {
      const wide = this.box.clientWidth;
      if (!this.data || !wide) return;
      const {rows, loop, beats, stall} = this.data;
      const count = rows.length;
      this.high = count <= 5 ? 22 : count <= 12 ? 17 : 10;
      this.scale = (wide - LEFT - RIGHT) / (this.to - this.from);
      const bottom = TOP + count * this.high;
      const strip = bottom + 31, high = strip + 16 + 20;
      const x = ms => LEFT + (ms - this.from) * this.scale;
      const rect = (name, from, to, top, height, least) => make("svg:rect", {
        class: name, x: x(from).toFixed(2), y: top,
        width: Math.max(least || 0, (to - from) * this.scale).toFixed(2), height,
      });
      const text = (name, left, top, said, anchor = "start") =>
        make("svg:text", {class: name, x: left, y: top, "text-anchor": anchor}, said);
      const line = (name, x1, x2, y1, y2) => make("svg:line", {class: name, x1, x2, y1, y2});
      const right = wide - RIGHT;
      const back = make("svg:g", {}), drawn = make("svg:g", {"clip-path": `url(#${this.clip})`});
      const shown = Math.max(0, Math.min(right, x(this.until)) - LEFT);
      const clip = make("svg:clipPath", {id: this.clip},
        make("svg:rect", {x: LEFT - 4, y: 0, width: shown + 8, height: high}));

      for (const [at, label] of this.ticks()) {
        const anchor = x(at) > right - 14 ? "end" : "middle";
        back.append(line("tl-grid", x(at), x(at), TOP, bottom));
        back.append(text("tl-small", x(at), high - 5, label, anchor));
      }
      rows.forEach((row, i) => {
        const middle = TOP + (i + 0.5) * this.high;
        if (i === this.row) {
          back.append(make("svg:rect", {
            class: "tl-chosen", x: 0, width: wide, y: TOP + i * this.high, height: this.high}));
        }
        if (count <= 12 || row[0] % 5 === 0) {
          back.append(text("tl-small", LEFT - 8, middle + 4, String(row[0]), "end"));
        }
        parts(row).forEach((part, j) => {
          const chosen = i === this.row && j === this.part ? " tl-part" : "";
          const name = `tl-${part.event}${chosen}`;
          const size = Math.min(5, this.high / 3);
          if (part.event === "send") {
            const at = x(part.start);
            drawn.append(make("svg:path", {class: name,
              d: `M${at - size} ${middle - size}L${at + size} ${middle}L${at - size} ${middle + size}Z`}));
          } else if (part.event === "receive") {
            drawn.append(make("svg:circle", {class: name, cx: x(part.end), cy: middle, r: size * 0.9}));
          } else {
            const tall = this.high * {connect: 0.34, handshake: 0.62, wait: 0.18}[part.event];
            drawn.append(rect(name, part.start, part.end, middle - tall / 2, tall, 1));
          }
        });
      });
      for (const [at, said] of this.data.limits || []) {
        if (at < this.from || at > this.to) continue;
        const anchor = x(at) > right - 60 ? "end" : "middle";
        back.append(line("tl-limit", x(at), x(at), TOP, bottom + 3));
        back.append(text("tl-small", x(at) + (anchor === "end" ? 4 : 0), bottom + 12, said, anchor));
      }
      const ended = Math.max(...rows.flatMap(row => row.slice(1)).filter(each => each !== null));
      back.append(text("tl-small", LEFT, strip - 4, loop ? "event loop" : "no event loop"));
      const late = loop ? stalls(beats, ended, stall) : [];
      for (const [a, b] of late) drawn.append(rect("tl-stall", a, b, strip, 14, 1));
      for (const beat of beats) {
        if (beat >= 0 && beat <= ended) drawn.append(rect("tl-beat", beat, beat, strip, 14, 1));
      }
      const worst = Math.max(0, ...late.map(([a, b]) => b - a));
      if (worst && this.until >= ended) {
        back.append(text("tl-small tl-late", right, strip - 4, `blocked for ${time(worst)} at longest`, "end"));
      }
      back.append(line("tl-axis", LEFT, right, strip + 16, strip + 16));
      this.svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
      this.svg.replaceChildren(clip, back, drawn);
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
  Plot.made = 0;

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

  /* Replace the pictures of one figure of a chapter. */
  function enhance(figure) {
    const panels = JSON.parse(figure.dataset.timelines);
    const pictures = figure.querySelectorAll("svg[role=img]");
    if (pictures.length !== panels.length) return;
    let last = null;
    const {bar, tell} = desk(() => last);
    const plots = panels.map((data, i) => {
      const box = make("div");
      data.alt = pictures[i].getAttribute("aria-label");
      const plot = new Plot(box, (nodes, which) => {
        last = which;
        const others = plots.filter(other => other !== which && other.row !== null);
        others.forEach(other => { other.row = other.part = null; other.draw(); });
        tell(plots.length > 1 ? [`${data.label}. `, ...nodes] : nodes);
      });
      pictures[i].replaceWith(make("div", {class: "tl-panel"},
        make("p", {class: "tl-label"}, data.label), box));
      plot.show(data);
      return plot;
    });
    last = plots[0];
    (figure.querySelector(".cb-panels") || plots[0].box.parentNode).after(bar);
  }

  /* The explorer: `data` as casebook/charts/explorer.py makes it. Its form holds what is chosen. */
  function explore(root, data) {
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const shown = new Set(["pyopenssl"]);
    let step = 0;
    const named = id => form.elements[`explorer-${id}`];
    const value = id => named(id).value;
    const boxOf = id => [...named("parts")].find(box => box.value === id);
    const labelOf = id => boxOf(id).nextSibling.textContent;
    const chosen = () => data.order.filter(id => boxOf(id).checked);
    const key = n => [value("python"), chosen().join("+"), value("scheme"), n].join("|");

    /* Why a part cannot be chosen; nothing where it can be. */
    function refusal({refused, needs, without}) {
      return refused[value("python")] || (needs && !boxOf(needs).checked && without);
    }

    function field(id, legend, type, first, choices) {
      const name = `explorer-${id}`;
      return make("fieldset", {class: `ex-field ex-${id}`}, make("legend", {}, legend),
        ...choices.map(({id: value, label, about}) => {
          const its = `${name}-${value}`, more = about ? `${its}-about` : null;
          return make("div", {class: "ex-choice"},
            make("input", {type, name, value, id: its, checked: value === first,
              "aria-describedby": more}),
            make("label", {for: its}, label), make("small", {id: more}, about || ""));
        }));
    }

    const plainly = values => values.map(value => ({id: String(value), label: value}));
    const name = python => python === "today" ? "Python of today" : `Python ${python}`;
    const form = make("form",
      {class: "ex-form", autocomplete: "off", onsubmit: event => event.preventDefault()},
      field("parts", "installed and used", "checkbox", null, data.parts),
      field("scheme", "over", "radio", "https", plainly(data.schemes)),
      field("python", "Python", "radio", "2.7", plainly(data.pythons)),
      field("n", "requests at once", "radio", "10", plainly(data.sizes)));
    const what = make("p", {class: "ex-what"});
    const verdict = make("p", {class: "ex-verdict", role: "status"});
    const next = make("p", {class: "ex-next"});
    const all = make("button", {type: "button", class: "ex-all", onclick: () => {
      step = data.steps.length;
      update();
    }}, "Show all controls");
    const box = make("div");
    const source = make("p", {class: "cb-source"});
    const {bar, tell} = desk(() => plot);
    const plot = new Plot(box, tell);
    const kept = root.querySelectorAll("figure style, figure .cb-key");

    form.addEventListener("change", update);

    /* What still differs from a step's combination, as things to do. */
    function missing({python, scheme, parts: wanted}) {
      const todo = [], has = chosen();
      if (value("python") !== python) todo.push(`choose ${name(python)}`);
      if (value("scheme") !== scheme) todo.push(`choose ${scheme}`);
      for (const id of wanted) if (!has.includes(id)) todo.push(`tick ${labelOf(id)}`);
      for (const id of has) if (!wanted.includes(id)) todo.push(`untick ${labelOf(id)}`);
      return todo;
    }

    function lead() {
      while (step < data.steps.length && !missing(data.steps[step]).length) step += 1;
      for (const one of data.steps.slice(0, step + 1)) {
        one.parts.forEach(id => shown.add(id));
        if (one.scheme !== "https") shown.add("scheme");
        if (one.python !== "2.7") shown.add("python");
      }
      all.hidden = step === data.steps.length;
      if (all.hidden) {
        for (const id of [...data.order, "scheme", "python", "n"]) shown.add(id);
        next.textContent = "The rest is yours: try any of them, with 3 requests or with 30.";
      } else {
        const [last, ...before] = missing(data.steps[step]).reverse();
        next.textContent = `Now ${before.reverse().join(", ")}${before.length ? " and " : ""}${last}.`;
      }
    }

    function update() {
      for (const part of data.parts) { // what another one needs comes before it
        const input = boxOf(part.id), why = refusal(part);
        input.disabled = Boolean(why);
        input.checked &&= !why;
        input.parentNode.classList.toggle("ex-refused", input.disabled);
        input.parentNode.lastChild.textContent = why ? `not possible: ${why}` : part.about;
      }
      lead();
      for (const {id} of data.parts) boxOf(id).parentNode.hidden = !shown.has(id);
      for (const id of ["scheme", "python", "n"]) form.querySelector(`.ex-${id}`).hidden = !shown.has(id);
      for (const input of named("n")) input.disabled = !data.runs[key(input.value)];
      const n = Number(value("n")), run = data.runs[key(n)], has = chosen().map(labelOf);
      what.textContent = `${name(value("python"))}, ${value("scheme")}, grequests`
        + (has.length ? ` with ${has.join(", ")}` : " and nothing more")
        + `: ${n} requests, each answered after ${data.delay / 1000} s.`;
      box.hidden = bar.hidden = !run;
      if (!run) {
        playing += 1;
        verdict.textContent = "This was neither measured here nor recorded.";
        source.textContent = "";
        return;
      }
      const same = Object.entries(data.runs).filter(([id]) => id.endsWith(`|${n}`));
      const longest = Math.max(...same.map(([, other]) => other.wall));
      const rows = run.rows.slice().sort((a, b) => a[5] - b[5]).map((row, i) => [i + 1, ...row.slice(1)]);
      plot.show({
        label: "", rows, loop: true, beats: run.beats, stall: data.stall, end: longest * 1.03,
        limits: [[data.delay, "one delay"], [n * data.delay, `${n} delays`]],
        alt: `${what.textContent} ${sentence(run)}`,
      });
      tell([HINT]);
      source.textContent = (run.live
        ? `Measured on the machine that made this page, ${run.when}, on Python ${run.version}.`
        : `Recorded on the reference machine, ${run.when}, on Python ${run.version}; not measured now.`)
        + (run.says ? ` The post of 2019 found it ${run.says}.`
          : " Measured by us, never published.");
      play(run);
    }

    function sentence(run) {
      const n = run.rows.length;
      return `${(run.wall / 1000).toFixed(2)} s: ` + (run.verdict === "serial" ? "one after the other."
        : run.most === n ? `all ${n} at once.` : `up to ${run.most} of ${n} at once.`);
    }

    /* Let the picture come in the order in which it happened; the whole axis takes two seconds. */
    let playing = 0;
    function play(run) {
      const mine = ++playing, slow = 2000 / plot.data.end;
      const finish = () => {
        if (mine !== playing) return;
        playing += 1;
        plot.until = Infinity;
        plot.draw();
        const [wall, ...rest] = sentence(run).split(": ");
        verdict.replaceChildren(make("strong", {}, wall), ": " + rest.join(": "));
        verdict.dataset.verdict = run.verdict;
      };
      if (still || document.hidden) return finish();
      verdict.replaceChildren("\u00a0");
      const begun = performance.now();
      const tick = now => {
        if (mine !== playing) return;
        plot.until = Math.max(0, (now - begun) / slow);
        if (plot.until >= run.wall) return finish();
        plot.draw();
        requestAnimationFrame(tick);
      };
      setTimeout(finish, run.wall * slow + 500); // where no frames are drawn
      requestAnimationFrame(tick);
    }

    root.querySelector("figure").replaceWith(make("div", {class: "ex cb-figure"},
      what, ...kept, box, bar, verdict, next, form, all, source));
    update();
  }

  document.addEventListener("DOMContentLoaded", () => {
    const root = document.getElementById("explorer");
    if (root) explore(root, window.casebookExplorer);
    document.querySelectorAll("figure[data-timelines]").forEach(enhance);
  });
})();
