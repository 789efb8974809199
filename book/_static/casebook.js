/* One switch for the whole book, remembered: a page is read, as it is without a script, or checked.
 * What belongs to the checking alone is left out by casebook.css; here its folds are opened. */
(() => {
  const NAME = 'casebook-view', root = document.documentElement.dataset;
  const remembered = () => {
    try {
      return localStorage.getItem(NAME);
    } catch {
      return root.view;  // no storage here: the switch is for this page alone
    }
  };
  const set = view => {
    if (view === 'checking') root.view = view;
    else delete root.view;
    const checks = 'view' in root;
    document.querySelector('.view-switch')?.setAttribute('aria-checked', checks);
    document.querySelectorAll('.cb-run:not(.checks *) > details.fold, details.further').forEach(fold => { fold.open = checks; });
  };
  const toggle = () => {
    const view = root.view ? 'reading' : 'checking';
    try {
      localStorage.setItem(NAME, view);
    } catch { /* see above */ }
    set(view);
  };
  set(remembered());
  addEventListener('pageshow', event => { if (event.persisted) set(remembered()); });
  addEventListener('DOMContentLoaded', () => {
    const its = document.createElement('button');
    const title = 'show everything that was measured, and how it came out';
    Object.assign(its, {type: 'button', className: 'btn view-switch', title, onclick: toggle});
    its.textContent = 'checking';
    its.setAttribute('role', 'switch');
    document.querySelector('.article-header-buttons')?.prepend(its);
    set(remembered());
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
    const printed = page.view === 'checking' ? 'checks, .further' : 'further';
    opened = [...document.querySelectorAll(`details:is(.${printed}):not([open])`)];
    opened.forEach(fold => { fold.open = true; });
  });
  addEventListener('afterprint', () => {
    page.theme = theme;
    opened.forEach(fold => { fold.open = false; });
  });
})();

/* A guess: typed where a chapter asks for one, kept in this browser alone, and met again where the
 * chapter says what came out. */
addEventListener('DOMContentLoaded', () => {
  const question = [...document.querySelectorAll('.admonition.tip')]
    .find(box => box.querySelector('.admonition-title')?.textContent === 'Guess first');
  const heading = document.querySelector('#what-we-learned > h2');
  if (!question || !heading) return;
  const name = `casebook-guess-${location.pathname.split('/').pop()}`;
  const label = document.createElement('label'), entry = document.createElement('input');
  Object.assign(entry, {type: 'text', maxLength: 200, placeholder: 'kept in this browser alone'});
  Object.assign(label, {className: 'guess', textContent: 'Your guess: '});
  label.append(entry);
  question.append(label);
  const reminder = document.createElement('p');
  reminder.className = 'guess-again';
  heading.after(reminder);
  const show = () => {
    reminder.hidden = !entry.value.trim();
    reminder.textContent = `You guessed: ${entry.value.trim()}`;
  };
  try {
    entry.value = localStorage.getItem(name) ?? '';
  } catch { /* no storage here: it is forgotten with the page */ }
  entry.addEventListener('input', () => {
    show();
    try {
      localStorage.setItem(name, entry.value);
    } catch { /* see above */ }
  });
  show();
});
