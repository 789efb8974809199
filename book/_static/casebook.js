/* One switch for the whole book, "show the evidence", off at first; without a script all is shown.
 * Off, what a page says of its own making is left out (casebook.css), and each cell that has some
 * gets one small mark, which shows it there. What did not hold, or was not measured here, stays. */
(() => {
  const NAME = 'casebook-evidence', EVIDENCE = 
    'details.fold, .cb-quiet > .cb-mark, .cb-live, .cb-data, .story .cb-finding';
  const root = document.documentElement.dataset;
  const remembered = () => {
    try {
      return localStorage.getItem(NAME);
    } catch {
      return root.evidence;  // no storage here: the switch is for this page alone
    }
  };
  const set = state => {
    root.evidence = state === 'on' ? 'on' : 'off';
    document.querySelector('.evidence-switch')?.setAttribute('aria-checked', state === 'on');
  };
  const make = (kind, name, text, onclick) => {
    const button = document.createElement('button');
    Object.assign(button, {type: 'button', className: kind, textContent: text, title: name, onclick});
    button.setAttribute('aria-label', name);
    return button;
  };
  const toggle = () => {
    const state = root.evidence === 'on' ? 'off' : 'on';
    try {
      localStorage.setItem(NAME, state);
    } catch { /* see above */ }
    set(state);
  };
  const mark = place => {
    const name = 'the evidence for this';
    const dot = make('evidence-mark', name, '', () => {
      const shown = place.classList.toggle('cb-open');
      dot.setAttribute('aria-expanded', shown);
      place.querySelectorAll('details.fold').forEach(fold => { fold.open = shown; });
    });
    dot.setAttribute('aria-expanded', place.classList.contains('cb-open'));
    place.classList.add('cb-made');
    place.append(dot);
  };
  set(remembered());
  addEventListener('pageshow', () => set(remembered()));
  addEventListener('DOMContentLoaded', () => {
    const found = [...document.querySelectorAll(EVIDENCE)];
    const places = found.map(each => each.closest('.cell') ?? each.closest('.cb'));
    new Set(places.filter(place => place && !place.closest('details.checks'))).forEach(mark);
    const bar = document.querySelector('.article-header-buttons');
    const its = make('btn evidence-switch', 'show the evidence', '', toggle);
    its.innerHTML = '<span><span class="evidence-verb">show the </span>evidence</span>';
    its.removeAttribute('aria-label');  // its name is what it shows
    its.setAttribute('role', 'switch');
    bar?.prepend(its);
    set(root.evidence);
  });
})();

/* Folds: a link to something inside one opens it, and so does printing. */
(() => {
  const open = node => {
    for (let fold = node?.closest('details'); fold; fold = fold.parentElement.closest('details'))
      fold.open = true;
  };
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const dot = target?.closest('.cell:not(.cb-open)')?.querySelector(':scope > .evidence-mark');
    if (dot && document.documentElement.dataset.evidence === 'off') dot.click();
    if (!target?.closest('details:not([open])')) return;
    open(target);
    target.scrollIntoView();
  };
  let opened = [], theme;
  addEventListener('DOMContentLoaded', follow);
  addEventListener('hashchange', follow);
  addEventListener('click', event => {  // the same link once more changes no hash
    if (event.target.closest?.('a[href*="#"]')) setTimeout(follow);
  });
  const page = document.documentElement.dataset;
  addEventListener('beforeprint', () => {
    theme = page.theme;
    page.theme = 'light';  // paper is
    if (document.documentElement.dataset.evidence === 'off') return;
    opened = [...document.querySelectorAll('details.checks:not([open])')];
    opened.forEach(fold => { fold.open = true; });
  });
  addEventListener('afterprint', () => {
    page.theme = theme;
    opened.forEach(fold => { fold.open = false; });
  });
})();
