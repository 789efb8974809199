/* Steps through the turns of a run (casebook/charts/turn_stepper.py). It comes with each such picture, also
   into JupyterLab, so it finds those that are not alive yet. */
(() => {
  const make = (tag, css, text) => {
    const node = document.createElement(tag);
    node.className = css;
    if (text) node.textContent = text;
    return node;
  };
  for (const figure of document.querySelectorAll('.cb-turns:not(.tn-alive)')) {
    const told = figure.querySelector('script[type="application/json"]');
    if (!told) continue;
    figure.classList.add('tn-alive');
    // JupyterLab takes arrow keys for itself, even those of a slider: no shortcut of its own here...
    figure.dataset.lmSuppressShortcuts = 'true';
    const { states, runs, end } = JSON.parse(told.textContent);
    const drawn = [...figure.querySelectorAll('.tn-run')];
    let run = 0, step = 0, timer = 0;

    const choices = make('div', 'tn-choices');
    choices.setAttribute('role', 'group');
    choices.setAttribute('aria-label', 'Which program');
    const buttons = runs.map(({ label, steps }, i) => {
      const button = make('button', 'tn-choice', `${label}, ${Math.round(steps.at(-1).to)} ms`);
      button.type = 'button';
      button.addEventListener('click', () => { stop(); run = i; show(Infinity); });
      choices.append(button);
      return button;
    });
    const desk = make('div', 'tn-desk');
    const control = (text, name, act) => {
      const button = make('button', 'tn-control', text);
      button.type = 'button';
      button.setAttribute('aria-label', name);
      button.addEventListener('click', act);
      desk.append(button);
      return button;
    };
    const play = control('▶ Play', 'Play', () => (timer ? stop() : start()));
    play.classList.add('tn-play');
    control('‹', 'One turn back', () => { stop(); show(step - 1); });
    const slider = make('input', 'tn-slider');
    slider.type = 'range';
    slider.min = 0;
    slider.setAttribute('aria-label', 'Turn');
    slider.addEventListener('input', () => { stop(); show(Number(slider.value)); });
    // ...and a slider's own answer to a key is prevented there, too.
    slider.addEventListener('keydown', event => {
      const last = runs[run].steps.length - 1;
      const wanted = {
        ArrowLeft: step - 1, ArrowDown: step - 1, ArrowRight: step + 1, ArrowUp: step + 1,
        Home: 0, End: last,
      }[event.key];
      if (wanted === undefined) return;
      event.preventDefault();
      stop();
      show(wanted);
    });
    desk.append(slider);
    control('›', 'One turn on', () => { stop(); show(step + 1); });
    const at = make('p', 'tn-at');
    // Close to the rows; on a phone the desk stays in sight above them (style.css).
    figure.insertBefore(choices, drawn[0]);
    figure.insertBefore(desk, drawn[0]);
    figure.insertBefore(at, drawn[0]);
    const cursors = drawn.map(one => [...one.querySelectorAll('.tn-track')].map(track => {
      const cursor = make('i', 'tn-cursor');
      track.append(cursor);
      return cursor;
    }));
    for (const one of drawn) one.querySelector('.tn-says').setAttribute('aria-live', 'polite');

    const fill = (row, [state, place], lines) => {
      const [where, code] = place < 0 ? ['', ''] : lines[place];
      row.querySelector('.tn-state').textContent = states[state];
      row.querySelector('.tn-code').textContent = code;
      row.querySelector('.tn-where').textContent = where;
    };
    // Each row keeps the height of its longest line of code, so that nothing moves between turns.
    const widths = runs.map(() => 0);
    const settle = () => {
      const wide = figure.clientWidth, { steps, lines } = runs[run];
      if (widths[run] === wide) return;
      widths[run] = wide;
      const highest = (node, ways, put) => {
        node.style.minHeight = '0';
        const heights = ways.map(way => { put(way); return node.getBoundingClientRect().height; });
        node.style.minHeight = `${Math.ceil(Math.max(...heights))}px`;
      };
      drawn[run].querySelectorAll('.tn-row').forEach((row, i) => {
        const ways = new Map(steps.map(({ rows }) => [rows[i].join(), rows[i]]));
        highest(row, [...ways.values()], way => fill(row, way, lines));
      });
      const says = drawn[run].querySelector('.tn-says');
      highest(says, steps, ({ says: text }) => { says.textContent = text; });
    };
    const show = wanted => {
      const { steps, lines } = runs[run];
      step = Math.min(Math.max(wanted, 0), steps.length - 1);
      const now = steps[step];
      drawn.forEach((one, i) => { one.hidden = i !== run; });
      buttons.forEach((button, i) => button.setAttribute('aria-pressed', i === run));
      settle();
      const later = step < steps.length - 1 ? 100 - 100 * now.to / end : 0;
      drawn[run].querySelectorAll('.tn-row').forEach((row, i) => {
        row.className = `tn-row tn-is-${now.rows[i][0]}`;
        fill(row, now.rows[i], lines);
        // What is still to come is not given away.
        row.querySelector('.tn-bars').style.clipPath = `inset(0 ${later}% 0 0)`;
        cursors[run][i].style.left = `${100 * now.from / end}%`;
        cursors[run][i].style.width = `${100 * (now.to - now.from) / end}%`;
      });
      drawn[run].querySelector('.tn-says').textContent = now.says;
      slider.max = steps.length - 1;
      slider.value = step;
      const [from, to] = [now.from, now.to].map(ms => ms.toFixed(now.to - now.from < 1 ? 1 : 0));
      const turns = steps.length - 1;  // the last step is the end
      at.textContent = step === turns ? `The end, ${now.to.toFixed(0)} ms after the start`
        : `Turn ${step + 1} of ${turns}: ${from} to ${to} ms after the start`;
      slider.setAttribute('aria-valuetext', `${at.textContent}. ${now.says}`);
    };
    // Slowly enough to read, and longer where more time passes.
    const lasts = ({ from, to }) => Math.min(4000, 1200 + 25 * (to - from));
    const stop = () => {
      clearTimeout(timer);
      timer = 0;
      play.textContent = '▶ Play';
      play.setAttribute('aria-label', 'Play');
    };
    const start = () => {
      const { steps } = runs[run];
      const next = () => {
        if (step + 1 >= steps.length) return stop();
        show(step + 1);
        timer = setTimeout(next, lasts(steps[step]));
      };
      if (step + 1 >= steps.length) show(0);
      play.textContent = '❚❚ Pause';
      play.setAttribute('aria-label', 'Pause');
      timer = setTimeout(next, lasts(steps[step]));
    };
    // Who only looks sees how it ends.
    show(Infinity);
    new ResizeObserver(() => { if (widths[run] !== figure.clientWidth) show(step); }).observe(figure);
  }
})();
