/* The calculator of "More than one machine": machines and money, by the model of that chapter.
 *
 * The page has a table as it is without JavaScript, and beside it what was measured
 * (data-costs: fields of casebook/cases/many/capacity.py's Costs, the size of a batch, and what is
 * chosen at first). Nothing is measured here.
 */
(() => {
  "use strict";

  /* What can be chosen: from, to, and whether by powers. shown: how a value is said. */
  const count = value => Math.round(value).toLocaleString("en");
  const CHOICES = [
    {name: "pages", label: "pages", from: 1e4, to: 1e10, powers: true, shown: count},
    {name: "pages_per_connection", label: "pages over one connection", from: 1, to: 1000, powers: true, shown: count},
    {name: "hours", label: "hours", from: 1, to: 168, shown: count},
    {name: "cores", label: "cores of a machine", from: 1, to: 64, shown: count},
    {name: "other_ms", label: "other CPU for a page (parsing), ms", from: 0, to: 50, shown: count},
    {name: "cents", label: "cents for an hour of a core", from: 1, to: 20,
      shown: value => value.toFixed(1)},
  ];
  const STEPS = 120;

  /* Two digits, so that a slider says what it computes with. */
  function rounded(value) {
    const unit = 10 ** Math.max(0, Math.floor(Math.log10(value || 1)) - 1);
    return Math.round(value / unit) * unit;
  }

  function valueOf(choice, step) {
    const part = step / STEPS;
    return rounded(choice.powers
      ? choice.from * (choice.to / choice.from) ** part
      : choice.from + (choice.to - choice.from) * part);
  }

  function stepOf(choice, value) {
    const part = choice.powers
      ? Math.log(value / choice.from) / Math.log(choice.to / choice.from)
      : (value - choice.from) / (choice.to - choice.from);
    return Math.round(part * STEPS);
  }

  /* As capacity.at_scale. */
  function computed(costs, chosen, cured) {
    const connection = costs.connection_ms + (cured ? 0 : costs.load_ms);
    const ms = costs.page_ms + costs.task_ms / costs.size + connection / chosen.pages_per_connection
      + chosen.other_ms;
    const coreHours = chosen.pages * ms / 3.6e6;
    return {
      ms,
      perS: 1000 * chosen.cores / ms,
      machines: Math.ceil(coreHours / chosen.hours / chosen.cores),
      schedulers: Math.ceil(
        chosen.pages / costs.size * costs.engine_task_ms / 3.6e6 / chosen.hours),
      dollars: coreHours * chosen.cents / 100,
    };
  }

  function start(root) {
    const costs = JSON.parse(root.dataset.costs), chosen = {...costs.first};
    const panel = document.createElement("div");
    panel.className = "capacity-panel";

    function show() {
      for (const row of root.querySelectorAll("tr[data-cured]")) {
        const its = computed(costs, chosen, row.dataset.cured === "1");
        const said = [its.ms.toFixed(1), ...[its.perS, its.machines, its.schedulers,
          its.dollars].map(count)];
        row.querySelectorAll("td").forEach((cell, at) => { cell.textContent = said[at]; });
      }
    }

    for (const choice of CHOICES) {
      const label = document.createElement("label"), output = document.createElement("b");
      const input = document.createElement("input");
      Object.assign(input, {type: "range", min: 0, max: STEPS, name: choice.name});
      input.value = stepOf(choice, chosen[choice.name]);
      const say = () => {
        output.textContent = choice.shown(chosen[choice.name]);
        input.setAttribute("aria-valuetext", output.textContent);
      };
      input.addEventListener("input", () => {
        chosen[choice.name] = valueOf(choice, Number(input.value));
        say();
        show();
      });
      say();
      label.append(`${choice.label}: `, output, input);
      panel.append(label);
    }
    root.querySelector(".capacity-said").replaceWith(panel);
    show();
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".capacity[data-costs]").forEach(start);
  });
})();
