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
  let opened = [];
  addEventListener('DOMContentLoaded', follow);
  addEventListener('hashchange', follow);
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details.checks:not([open])')];
    opened.forEach(fold => { fold.open = true; });
  });
  addEventListener('afterprint', () => opened.forEach(fold => { fold.open = false; }));
})();
