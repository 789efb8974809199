/* Steps through the lines of a run (casebook/charts/binding_stepper.py). It comes with each such picture,
   also into JupyterLab, so it finds those that are not alive yet. */
(() => {
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  const make = (tag, css, text) => {
    const node = document.createElement(tag);
    node.className = css;
    if (text) node.textContent = text;
    return node;
  };
  const middle = (row, rows) => 100 * (row + 0.5) / rows;
  const curve = (from, to) => `M0,${from}C50,${from} 50,${to} 100,${to}`;

  for (const figure of document.querySelectorAll('.cb-bindings:not(.nm-alive)')) {
    const told = figure.querySelector('script[type="application/json"]');
    if (!told) continue;
    figure.classList.add('nm-alive');
    // JupyterLab takes arrow keys for itself: no shortcut of its own here.
    figure.dataset.lmSuppressShortcuts = 'true';
    const runs = JSON.parse(told.textContent);
    let run = 0, line = 0;
    const atEnd = () => line === runs[run].lines.length - 1;

    // Of each drawn run: its names with their two wires, and the objects of each group.
    const drawn = [...figure.querySelectorAll('.nm-run')].map((node, number) => {
      const names = [...node.querySelectorAll('.nm-group')].flatMap(group => {
        const objects = [...group.querySelectorAll('.nm-object')];
        const labels = [...group.querySelectorAll('.nm-name')];
        const paths = [...group.querySelectorAll('path')];
        for (const cut of group.querySelectorAll('.nm-cut')) cut.remove();
        return labels.map((label, i) => ({
          label, objects, group, start: middle(i, labels.length),
          was: paths[2 * i], wire: paths[2 * i + 1], end: null, turn: 0,
        }));
      });
      const lines = [...node.querySelectorAll('.nm-line')].map((item, i) => {
        const button = make('button', 'nm-jump');
        button.type = 'button';
        button.append(item.querySelector('code'));
        button.addEventListener('click', () => show(i));
        item.prepend(button);
        return { item, button };
      });
      const desk = make('div', 'nm-desk');
      const control = (text, name, by) => {
        const button = make('button', 'nm-control', text);
        button.type = 'button';
        button.setAttribute('aria-label', name);
        button.addEventListener('click', () => show(by > 0 && atEnd() ? 0 : line + by));
        desk.append(button);
        return button;
      };
      const back = control('‹ Back', 'One line back', -1);
      const next = control('Next line ›', 'Next line', 1);
      next.classList.add('nm-next');
      const says = node.querySelector('.nm-says');
      says.setAttribute('aria-live', 'polite');
      node.insertBefore(desk, says);
      return { node, names, lines, says, back, next, number };
    });

    const choices = make('div', 'nm-choices');
    choices.setAttribute('role', 'group');
    choices.setAttribute('aria-label', 'Which program');
    const buttons = runs.map(({ label }, i) => {
      const button = make('button', 'nm-choice', label);
      button.type = 'button';
      button.addEventListener('click', () => { const wanted = atEnd() ? Infinity : line; run = i; show(wanted); });
      choices.append(button);
      return button;
    });
    if (runs.length > 1) figure.insertBefore(choices, drawn[0].node);

    // A wire turns to its object; it is there at once where it was not before.
    const turn = (name, end) => {
      cancelAnimationFrame(name.turn);
      const from = name.end;
      name.end = end;
      if (end === null) return;
      if (from === null || from === end || still.matches) {
        name.wire.setAttribute('d', curve(name.start, end));
        return;
      }
      const began = performance.now();
      const frame = now => {
        const part = Math.min(Math.max((now - began) / 450, 0), 1);
        const eased = part * part * (3 - 2 * part);
        name.wire.setAttribute('d', curve(name.start, from + (end - from) * eased));
        if (part < 1) name.turn = requestAnimationFrame(frame);
      };
      name.turn = requestAnimationFrame(frame);
    };

    const draw = (one, { to, was, cut, early, says, alt }, last) => {
      for (const { group } of one.names) {
        for (const object of group.querySelectorAll('.nm-object')) object.classList.remove('nm-on');
        for (const mark of group.querySelectorAll('.nm-cut')) mark.remove();
      }
      one.names.forEach((name, i) => {
        const { objects, label, wire, group } = name;
        const there = to[i] >= 0, rows = objects.length;
        label.classList.toggle('nm-absent', !there);
        label.classList.toggle('nm-moved', was[i] >= 0);
        label.classList.toggle('nm-early', early[i]);
        wire.toggleAttribute('hidden', !there);
        name.was.toggleAttribute('hidden', was[i] < 0);
        if (there) {
          const object = objects[to[i]];
          object.classList.add('nm-on');
          wire.setAttribute('class', `nm-wire ${object.classList[1]}`);
        }
        turn(name, there ? middle(to[i], rows) : null);
        if (was[i] < 0) return;
        const before = middle(was[i], rows);
        name.was.setAttribute('d', curve(name.start, before));
        if (!cut) return;
        const mark = make('span', 'nm-cut', '✂\ufe0e');
        mark.style.top = `${(name.start + before) / 2}%`;
        mark.setAttribute('aria-hidden', 'true');
        group.querySelector('.nm-wires').append(mark);
      });
      one.node.querySelector('.nm-board').setAttribute('aria-label', alt);
      one.node.classList.toggle('nm-reads', last);
      one.says.textContent = says;
    };

    const show = wanted => {
      const { lines } = runs[run];
      line = Math.min(Math.max(wanted, 0), lines.length - 1);
      const last = line === lines.length - 1;
      for (const one of drawn) {
        one.node.hidden = one.number !== run;
        if (one.node.hidden) continue;
        draw(one, lines[line], last);
        one.back.disabled = line === 0;
        one.next.textContent = last ? 'From the start ›' : 'Next line ›';
        one.next.setAttribute('aria-label', last ? 'From the start' : 'Next line');
        one.lines.forEach(({ item, button }, i) => {
          item.classList.toggle('nm-now', i === line);
          item.classList.toggle('nm-later', i > line);
          button.toggleAttribute('aria-current', i === line);
        });
      }
      buttons.forEach((button, i) => button.setAttribute('aria-pressed', i === run));
    };

    figure.addEventListener('keydown', event => {
      const wanted = {
        ArrowLeft: line - 1, ArrowUp: line - 1, ArrowRight: line + 1, ArrowDown: line + 1,
        Home: 0, End: Infinity,
      }[event.key];
      if (wanted === undefined || event.target.closest('figcaption')) return;
      event.preventDefault();
      show(wanted);
    });
    // Who only looks sees how it ends; a read falls through its layers once somebody plays.
    show(Infinity);
    for (const event of ['click', 'keydown'])
      figure.addEventListener(event, () => figure.classList.add('nm-played'), true);
  }
})();
