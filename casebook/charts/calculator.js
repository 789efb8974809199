/* How long a visit takes by the model, for what a reader sets: casebook/charts/calculator.py. It comes
   with each such picture, also into JupyterLab, so it finds those that are not alive yet. `model` says
   what casebook/cases/bookstore/line/model.py says, line by line; a test holds both equal. */
(() => {
  const PACKET = 1448, FIRST = 10, AROUND = 77, LIST = 27000, STREAMS = 100;
  const SHORTEST_S = 0.2, HANDSHAKE_S = 1.0;

  /* mulberry32 */
  function drawing(seed) {
    let state = Math.imul(seed, 0x9E3779B9) >>> 0;
    return () => {
      state = (state + 0x6D2B79F5) >>> 0;
      let mixed = Math.imul(state ^ state >>> 15, 1 | state) >>> 0;
      mixed = (mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed) >>> 0;
      return ((mixed ^ mixed >>> 14) >>> 0) / 4294967296;
    };
  }

  function model(way, n, body, trip_s, loss = 0, seed = 0) {
    const lot = drawing(seed), drops = () => loss > 0 && lot() < loss;
    const sender = () => ({may: FIRST, calm: 2 ** 30, most: 2 ** 30});
    /* Some packets at once: seconds until the sender knows what came, and how many did. isLast:
       there is nothing to send behind them. */
    function flight(its, packets, isLast) {
      let lost = 0, last = false;
      for (let i = 0; loss && i < packets; i += 1) {
        last = drops();
        lost += last;
      }
      if (!lost) {
        if (its.may < its.calm) its.may = Math.max(its.may, Math.min(2 * packets, its.calm));
        else if (packets >= its.may) its.may += 1;
        return [trip_s, packets];
      }
      its.calm = its.may = Math.max(2, Math.floor(its.may / 2));
      let took_s = trip_s;
      if (last && lost < packets) took_s += trip_s;
      if (lost === packets || (last && isLast)) {
        took_s += SHORTEST_S;
        its.may = 1;
      }
      return [took_s, packets - lost];
    }
    function shake(its) {
      let took_s = trip_s, timer_s = HANDSHAKE_S;
      while (drops()) {
        took_s += timer_s;
        timer_s *= 2;
      }
      return took_s + send(its, 1);
    }
    function send(its, size) {
      let left = Math.ceil(size / PACKET), took_s = 0;
      while (left) {
        const packets = Math.min(left, its.may, its.most);
        const [its_s, came] = flight(its, packets, packets === left);
        took_s += its_s;
        left -= came;
      }
      return took_s;
    }
    const first = sender();
    let began = shake(first);
    began += send(first, LIST);
    if (way.window) {
      first.most = Math.max(1, Math.floor(way.window / PACKET));
      return began + Math.max(Math.ceil(n / STREAMS) * trip_s, send(first, n * (body + AROUND)));
    }
    const senders = [first], free = [began];
    for (let i = 1; i < Math.min(way.connections || n, n); i += 1) {
      senders.push(sender());
      free.push(began + shake(senders[i]));
    }
    for (let i = 0; i < n; i += 1) {
      const at = free.indexOf(Math.min(...free));
      free[at] += send(senders[at], body + AROUND);
    }
    return Math.max(...free);
  }
  window.casebookModel = model;

  const SVG = "http://www.w3.org/2000/svg";
  function make(tag, attributes = {}, ...children) {
    const node = tag.startsWith("svg:")
      ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  const digits = (value, many) => Number(value.toPrecision(many)).toString();
  const time = s => s < 0.0995 ? `${(1000 * s).toFixed(0)} ms` : `${s.toFixed(s < 9.95 ? 2 : 0)} s`;
  const size = bytes => `${digits(bytes / 1000, 1 + (bytes > 9999) + (bytes > 99999))} kB`;
  const share = loss => `${digits(100 * loss, 2)} %`;
  const books = n => n === 1 ? "1 book" : `${n} books`;

  for (const figure of document.querySelectorAll(".cb-calculator:not(.cl-alive)")) {
    const told = figure.querySelector('script[type="application/json"]');
    const still = figure.querySelector("svg[role=img]");
    if (!told || !still) continue;
    figure.classList.add("cl-alive");
    const {ways, distances, draws, first, points, ...data} = JSON.parse(told.textContent);
    const now = {...first};
    const known = new Map(); // a setting -> of each way, at each distance, [median, low, high]

    /* Without loss the model is one number; with it, the median of some lots, and the middle eight
       tenths of them. */
    function byModel(way, ms) {
      const count = now.loss ? draws : 1, walls = [];
      for (let i = 0; i < count; i += 1) {
        walls.push(model(way, now.n, now.body, ms / 500, now.loss, i));
      }
      walls.sort((a, b) => a - b);
      return [0.5, 0.1, 0.9].map(part => walls[Math.floor(part * (count - 1))]);
    }
    function curves() {
      const key = [now.n, now.body, now.loss].join();
      if (!known.has(key)) known.set(key, ways.map(way => distances.map(ms => byModel(way, ms))));
      return known.get(key);
    }

    /* ------------------------------------------------------------------ the controls */
    const form = make("form", {class: "cl-form", autocomplete: "off"});
    form.addEventListener("submit", event => event.preventDefault());
    const sliders = [
      ["ms", "distance, each way", distances, ms => `${ms} ms`],
      ["body", "size of a book", data.bodies, size],
      ["n", "number of books", data.books, n => `${n}`],
      ["loss", "packets lost", data.losses, share],
    ].filter(([, , values]) => values.length > 1).map(([name, called, values, say]) => {
      const id = `${figure.id}-${name}`;
      const input = make("input", {type: "range", id, min: 0, max: values.length - 1, step: 1});
      const said = make("output", {for: id});
      form.append(make("div", {class: "cl-slider"},
        make("label", {for: id}, called), said, input));
      const set = () => {
        const at = values.indexOf(now[name]);
        input.value = at;
        said.textContent = say(now[name]);
        input.setAttribute("aria-valuetext", say(now[name]));
      };
      input.addEventListener("input", () => {
        now[name] = values[Number(input.value)];
        show();
      });
      return set;
    });

    /* What was measured, to go there. */
    const settings = [...new Map(points.map(([, , n, body, loss]) =>
      [[n, body, loss].join(), {n, body, loss}])).values()];
    const jumps = make("div", {class: "cl-jumps", role: "group", "aria-label": "What was measured"},
      make("span", {}, "Measured:"));
    const buttons = settings.map(setting => {
      const label = `${books(setting.n)} of ${size(setting.body)}`
        + (setting.loss ? `, ${share(setting.loss)} lost` : "");
      const button = make("button", {type: "button"}, label);
      button.addEventListener("click", () => {
        Object.assign(now, setting);
        const there = points.filter(its).map(point => point[1]);
        if (!there.includes(now.ms)) now.ms = Math.max(...there);
        show();
      });
      jumps.append(button);
      return button;
    });
    const its = ([, , n, body, loss]) => n === now.n && body === now.body && loss === now.loss;

    const svg = make("svg:svg", {"aria-hidden": "true", class: "cl-plot"});
    const said = make("p", {class: "cl-said", role: "status"});
    const list = make("ol", {class: "cl-list"});
    figure.querySelector(".cb-key")?.remove();
    still.replaceWith(form, ...buttons.length > 1 ? [jumps] : [], svg, said, list);

    /* ------------------------------------------------------------------ the picture */
    const WIDE = 350, HIGH = 260, LEFT = 40, RIGHT = 66, TOP = 22, BOTTOM = 36, LABEL = 13;
    const round = value => Number(value.toFixed(2));

    /* One scale for all settings in which nothing is lost, so that a line moves and not the scale.
       In round trips the model is then the same at every distance. */
    const calm = ways.flatMap(way => data.bodies.flatMap(body => data.books.map(n => model(way, n, body, 1))));
    const scale = [Math.min(...calm) / 1.2, Math.max(...calm) * 1.2];

    function draw() {
      // In round trips: so the lines are level where nothing is lost, and apart.
      const trips = (s, ms) => s / (ms / 500);
      const lines = curves().map(curve => curve.map((walls, at) => walls.map(s => trips(s, distances[at]))));
      const marks = points.filter(its).map(([way, ms, n, body, loss, ...walls]) =>
        [way, ms, ...walls.slice(0, 3).map(s => trips(s, ms))]);
      const all = lines.flatMap(curve => curve.map(([s]) => s)).concat(marks.flatMap(point => point.slice(2)));
      const most = Math.max(...all);
      const low = scale[0], high = most > scale[1] ? 10 ** Math.ceil(Math.log10(most)) : scale[1];
      const span = Math.log(high / low), ends = [distances[0] / 1.1, distances.at(-1) * 1.1];
      const across = (WIDE - LEFT - RIGHT) / Math.log(ends[1] / ends[0]);
      const x = ms => round(LEFT + across * Math.log(ms / ends[0]));
      const y = s => round(HIGH - BOTTOM - (HIGH - BOTTOM - TOP) * Math.log(s / low) / span);
      const line = (css, x1, x2, y1, y2, style = "") =>
        make("svg:line", {class: css, x1, x2, y1, y2, style});
      const text = (left, top, what, anchor) =>
        make("svg:text", {class: "cl-small", x: left, y: top, "text-anchor": anchor}, what);
      const drawn = [text(0, 11, "wall time, in round trips", "start"),
        text(WIDE - RIGHT, HIGH - 4, "latency each way, ms", "end")];
      for (const ms of [0.5, 1, 4, 10, 35, 150]) {
        drawn.push(line("cl-grid", x(ms), x(ms), TOP, HIGH - BOTTOM),
          text(x(ms), HIGH - BOTTOM + 14, `${ms}`, "middle"));
      }
      const powers = [0, 1, 2, 3, 4, 5, 6];
      const steps = [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]
        .map(firsts => powers.flatMap(power => firsts.map(first => first * 10 ** power))
          .filter(s => s >= low && s <= high))
        .find(found => found.length <= 8);
      for (const s of steps) {
        drawn.push(line("cl-grid", LEFT, WIDE - RIGHT, y(s), y(s)),
          text(LEFT - 5, y(s) + 4, `${s}`, "end"));
      }
      drawn.push(line("cl-here", x(now.ms), x(now.ms), TOP, HIGH - BOTTOM));
      lines.forEach((curve, i) => {
        const style = `stroke:var(--cb-${ways[i].colour})`;
        // One is dashed: where it lies on another line, both are seen.
        drawn.push(make("svg:polyline", {class: ways[i].dashed ? "cl-model cl-dashed" : "cl-model", style,
          points: curve.map(([s], at) => `${x(distances[at])},${y(s)}`).join(" ")}));
        const [, least, most] = curve[distances.indexOf(now.ms)];
        const beside = x(now.ms) + 2.5 * (i - 2);
        if (now.loss) {
          drawn.push(line("cl-lots", beside, beside, y(least), Math.max(TOP, y(most)), style));
        }
      });
      // Each line has its name at its end; names that would meet move apart.
      const names = ways.map((way, i) => ({way, end: y(lines[i].at(-1)[0])})).sort((a, b) => a.end - b.end);
      let free = TOP;
      names.forEach((name, i) => {
        name.top = Math.max(free, name.end);
        free = name.top + LABEL;
        const below = HIGH - BOTTOM - LABEL * (names.length - 1 - i);
        name.top = Math.min(name.top, below);
      });
      for (const {way, end, top} of names) {
        const left = WIDE - RIGHT, name = text(left + 12, top + 4, way.short, "start");
        name.setAttribute("style", `fill:var(--cb-${way.colour})`);
        drawn.push(name, line("cl-leader", left, left + 10, end, top, `stroke:var(--cb-${way.colour})`));
      }
      for (const [way, ms, middle, least, most] of marks) {
        const at = x(ms) + 2.5 * (way - 2); // side by side
        const style = `stroke:var(--cb-${ways[way].colour});fill:var(--cb-${ways[way].colour})`;
        drawn.push(line("cl-spread", at, at, y(least), y(most), style),
          make("svg:circle", {class: "cl-dot", cx: at, cy: y(middle), r: 4, style}));
      }
      svg.setAttribute("viewBox", `0 0 ${WIDE} ${HIGH}`);
      svg.replaceChildren(...drawn);
    }

    /* By the model, soonest first; what comes within a tenth of the soonest is as good. */
    function tell() {
      const at = distances.indexOf(now.ms), lines = curves();
      const order = ways.map((way, i) => ({i, ...way, walls: lines[i][at]}))
        .sort((a, b) => a.walls[0] - b.walls[0]);
      const best = order[0].walls[0];
      const good = order.filter(way => way.walls[0] < 1.1 * best).map(way => way.name);
      const marks = points.filter(point => its(point) && point[1] === now.ms);
      const lost = now.loss ? `, ${share(now.loss)} of the packets lost` : "";
      said.textContent = `${books(now.n)} of ${size(now.body)} from ${now.ms} ms away${lost}. The soonest `
        + `by the model, after ${time(best)}: ${good.join(" and ")}. `
        + (marks.length ? "" : "Here nothing was measured.");
      list.replaceChildren(...order.map(({i, name, colour, walls: [s, low, high]}) => {
        const mark = make("i", {style: `background:var(--cb-${colour})`, "aria-hidden": "true"});
        const spread = now.loss ? ` (mostly ${time(low)} to ${time(high)})` : "";
        const found = marks.find(point => point[0] === i);
        const row = make("li", {}, mark, make("b", {}, name),
          make("span", {}, `${time(s)}${spread}, `
            + (s < 1.005 * best ? "the soonest" : `${digits(s / best, 2)} times as long`)));
        if (found) {
          const [middle, least, most, runs] = found.slice(5);
          row.append(make("span", {class: "cl-found"},
            `measured: ${time(middle)} (${time(least)} to ${time(most)}, ${runs} visits)`));
        }
        return row;
      }));
    }

    function show() {
      for (const set of sliders) set();
      buttons.forEach((button, i) => {
        const {n, body, loss} = settings[i];
        button.setAttribute("aria-pressed", n === now.n && body === now.body && loss === now.loss);
      });
      draw();
      tell();
    }
    show();
  }
})();
