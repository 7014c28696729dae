"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { head, gpus, kernels, points, curves, findings, branches } = data;
  const main = document.getElementById("main");
  const PAGE = 200;
  const LEVELS = ["error", "warning", "note", "allowed"];
  const SOURCES = {
    "comment": "from a comment at the kernel",
    "config": "from the configuration",
    "reqntid": "required by the kernel",
    "launch-site": "as it is launched",
    "option": "from --block",
    "launch-bounds": "the largest that its launch bounds allow",
    "sweep": "the best of all sizes, as nothing tells the block",
  };

  // ---- Building blocks. Text goes into the page as text, never as markup.

  function make(tag, given = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name === "class") node.className = value;
      else if (name === "value") node.value = value;
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
    return node;
  }

  function draw(tag, given, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(given)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  /** A message, what stands between backticks as code. */
  const prose = (text) => text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));
  const count = (number, one, many = one + "s") => `${number} ${number === 1 ? one : many}`;
  const percent = (share) => {
    const value = share * 100;
    return `${Number.isInteger(value) || value >= 10 ? Math.round(value) : value.toFixed(1)} %`;
  };
  const bytes = (size) => (size >= 1024 && size % 1024 === 0 ? `${size / 1024} KiB` : `${size} B`);
  const shown = (value, say = String) => (value === undefined || value === null ? "–" : say(value));
  const size = (block) => (block[2] > 1 ? block : block[1] > 1 ? block.slice(0, 2) : block.slice(0, 1)).join("×");
  const threads = (block) => block[0] * block[1] * block[2];

  // ---- What is known of each kernel, put together once.

  const share = (point) => point.warps / gpus[point.gpu].max_warps;
  for (const kernel of kernels) {
    kernel.findings = [];
    kernel.branches = [];
    kernel.judged = kernel.points.map((at) => points[at]);
    const lowest = kernel.judged.reduce((low, one) => (low === undefined || share(one) < share(low) ? one : low), undefined);
    kernel.lowest = lowest;
    kernel.spills =
      kernel.spill_stores === undefined && kernel.spill_loads === undefined
        ? undefined
        : (kernel.spill_stores ?? 0) + (kernel.spill_loads ?? 0);
  }
  findings.forEach((finding) => finding.kernels.forEach((at) => kernels[at].findings.push(finding)));
  branches.forEach((branch) => branch.kernels.forEach((at) => kernels[at].branches.push(branch)));
  const rank = (level) => LEVELS.length - LEVELS.indexOf(level);
  kernels.forEach((kernel, at) => {
    kernel.at = at;
    kernel.worst = kernel.findings.reduce((worst, one) => Math.max(worst, one.level === "allowed" ? 0 : rank(one.level)), 0);
    kernel.told = kernel.findings.filter((one) => one.level !== "allowed").length;
    kernel.loudest = kernel.findings.filter((one) => rank(one.level) === kernel.worst).length;
    kernel.text = `${kernel.name} ${kernel.symbol ?? ""} ${kernel.signature ?? ""} ${kernel.declared ?? ""}`.toLowerCase();
  });
  const ruleOf = Object.fromEntries(head.rules.map((rule) => [rule.id, rule]));

  // ---- A list of many things: filtered, cut into pages.

  function paged(items, page, turn, render) {
    const pages = Math.max(1, Math.ceil(items.length / PAGE));
    const here = Math.min(page, pages - 1);
    const part = items.slice(here * PAGE, (here + 1) * PAGE);
    const button = (text, to) => make("button", { type: "button", disabled: to < 0 || to >= pages, onclick: () => turn(to) }, text);
    const bar =
      pages > 1 &&
      make("div", { class: "pages" }, button("Previous", here - 1),
        make("span", {}, `${here * PAGE + 1}–${here * PAGE + part.length} of ${items.length}`), button("Next", here + 1));
    return [render(part), bar];
  }

  function choice(name, label, values, value, change) {
    const options = values.map(([id, text]) => make("option", { value: id, selected: id === value }, text));
    return make("label", { class: "short" }, label, make("select", { name, onchange: (event) => change(event.target.value) }, options));
  }

  function search(value, label, change) {
    return make("label", {}, make("span", {}, label),
      make("input", { type: "search", name: "text", value, autocomplete: "off", spellcheck: "false", oninput: (event) => change(event.target.value) }));
  }

  const leftOut = (number, what) =>
    number > 0 && make("p", { class: "notice" }, `${number} more ${what} are not in this page: the JSON report has all.`);

  // ---- Kernels

  const order = { key: "worst", down: true };
  const wanted = { text: "", arch: "", only: false, page: 0 };
  const COLUMNS = [
    { key: "name", title: "Kernel", of: (one) => one.name, text: true },
    { key: "arch", title: "Arch", of: (one) => one.arch ?? "", text: true },
    { key: "worst", title: "Findings", of: (one) => one.worst * 1e12 + one.loudest * 1e6 + one.told, number: true },
    { key: "registers", title: "Registers", of: (one) => one.registers, number: true },
    { key: "spills", title: "Spills", of: (one) => one.spills, number: true },
    { key: "stack", title: "Stack", of: (one) => one.stack, number: true },
    { key: "shared", title: "Shared", of: (one) => one.shared, number: true },
    { key: "block", title: "Block", of: (one) => one.lowest && threads(one.lowest.block), number: true },
    { key: "occupancy", title: "Occupancy", of: (one) => one.lowest && share(one.lowest), number: true },
    { key: "limiter", title: "Limited by", of: (one) => one.lowest?.limiters.join(", "), text: true },
  ];

  function sortedKernels() {
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = kernels.filter((one) =>
      words.every((word) => one.text.includes(word)) &&
      (wanted.arch === "" || one.arch === wanted.arch) &&
      (!wanted.only || one.told > 0));
    const { of, text } = COLUMNS.find((column) => column.key === order.key);
    const sign = order.down ? -1 : 1;
    const keyed = found.map((one) => [of(one), one]);
    keyed.sort(([a, one], [b, other]) => {
      // What is not known comes last, whichever way.
      if (a === undefined || b === undefined) return (a === undefined) - (b === undefined) || one.at - other.at;
      const by = text ? (a < b ? -1 : a > b ? 1 : 0) : a - b;
      return sign * by || one.at - other.at;
    });
    return keyed.map(([, one]) => one);
  }

  const kernelLink = (one) => make("a", { href: `#kernel/${one.at}`, title: one.signature ?? one.symbol ?? one.name }, make("code", {}, one.name));
  const bar = (value) => {
    const fill = make("span");
    fill.style.width = `${value * 100}%`;
    return make("span", { class: "bar", "aria-hidden": "true" }, fill);
  };

  function kernelRow(one) {
    const point = one.lowest;
    const worst = LEVELS[LEVELS.length - one.worst];
    return make("tr", {},
      make("td", { class: "name" }, kernelLink(one), one.function && make("span", { class: "faint" }, " function"),
        one.ambiguous && make("span", { class: "faint", title: "lines of parallel jobs are mixed up: figures may be another kernel's" }, " ambiguous")),
      make("td", {}, one.arch ?? "–"),
      make("td", { class: `number ${one.told ? worst : ""}` }, one.told ? count(one.loudest, worst) : "–",
        one.told > one.loudest && make("span", { class: "faint", title: "less loud ones" }, ` + ${one.told - one.loudest}`)),
      make("td", { class: "number" }, shown(one.registers)),
      make("td", { class: "number" }, shown(one.spills, (value) => (value ? `${value} B` : "0"))),
      make("td", { class: "number" }, shown(one.stack, (value) => (value ? `${value} B` : "0"))),
      make("td", { class: "number" }, shown(one.shared, (value) => (value ? bytes(value) : "0"))),
      make("td", { class: "number" }, point ? size(point.block) : "–"),
      make("td", { class: "number" }, point ? [bar(share(point)), percent(share(point))] : "–"),
      make("td", {}, point?.limiters.join(", ") ?? ""));
  }

  function kernelsView() {
    const table = make("div");
    const refresh = () => {
      const found = sortedKernels();
      const headings = COLUMNS.map((column) => {
        const sort = column.key === order.key ? (order.down ? "descending" : "ascending") : undefined;
        const press = () => {
          if (order.key === column.key) order.down = !order.down;
          else Object.assign(order, { key: column.key, down: !column.text });
          wanted.page = 0;
          refresh();
          table.querySelector(`[data-key="${column.key}"]`).focus();
        };
        return make("th", { scope: "col", "aria-sort": sort, class: column.number ? "number" : "" },
          make("button", { type: "button", "data-key": column.key, onclick: press }, column.title));
      });
      const turn = (to) => { wanted.page = to; refresh(); table.scrollIntoView(); };
      table.replaceChildren(
        make("p", { class: "faint", role: "status" }, found.length === kernels.length ? count(found.length, "row") : `${found.length} of ${count(kernels.length, "row")}`),
        ...paged(found, wanted.page, turn, (part) =>
          make("div", { class: "wide" }, make("table", { class: "kernels" }, make("thead", {}, make("tr", {}, headings)),
            make("tbody", {}, part.map(kernelRow))))).filter(Boolean));
    };
    const change = (key) => (value) => { wanted[key] = value; wanted.page = 0; refresh(); };
    const tools = make("div", { class: "tools" },
      search(wanted.text, "Search", change("text")),
      head.archs.length > 1 && choice("arch", "Architecture", [["", "all"], ...head.archs.map((arch) => [arch, arch])], wanted.arch, change("arch")),
      make("label", { class: "short" }, make("input", { type: "checkbox", name: "only", checked: wanted.only, onchange: (event) => change("only")(event.target.checked) }), "with findings only"));
    refresh();
    const several = kernels.some((one) => one.judged.length > 1) &&
      make("p", { class: "faint" }, "Of a kernel that is judged more than once, at several blocks or on several GPUs, the row has the lowest occupancy.");
    return [tools, table, several, leftOut(head.kernels_left_out, "kernels")];
  }

  // ---- Findings

  const asked = { text: "", level: "", rule: "", page: 0 };

  function sourceLine(line) {
    const [before, marked, after] = line.text;
    const known = before + marked + after !== "";
    return make("pre", { class: "source" },
      make("span", { class: "where" }, `${line.path}:${line.line}`),
      known && [before, make("mark", {}, marked), after],
      line.says && make("span", { class: "says" }, prose(line.says)));
  }

  function findingCard(one, others = []) {
    const about = one.kernels.slice(0, 3).map((at) => kernels[at]);
    const names = about.map((kernel, at) => [at > 0 && ", ", kernelLink(kernel), kernel.arch && ` on ${kernel.arch}`]);
    const more = make("details", {}, make("summary", {}, one.also ? ["also: ", prose(one.also)] : `${count(others.length, "more")} of the same cause`));
    more.addEventListener("toggle", () => {
      if (more.open && more.children.length === 1) {
        more.append(...others.slice(0, PAGE).map((other) => findingCard(other)));
        if (others.length > PAGE) more.append(make("p", { class: "faint" }, `and ${others.length - PAGE} more`));
      }
    });
    return make("article", { class: `finding is-${one.level}` },
      make("p", {}, make("span", { class: `level ${one.level}` }, one.level), " ", prose(one.message), one.count > 1 && ` (${one.count} times)`),
      make("p", { class: "faint" }, make("span", { class: "chip", title: ruleOf[one.rule]?.summary }, one.rule), " ",
        make("span", { class: "chip" }, one.basis), one.confidence && [" ", make("span", { class: "chip" }, `${one.confidence} confidence`)],
        names.length > 0 && [" ", names], one.kernels.length > 3 && ` and ${one.kernels.length - 3} more`),
      one.reason && make("p", { class: "faint" }, "allowed: ", one.reason),
      one.lines.map(sourceLine),
      one.help && make("p", { class: "help" }, "help: ", prose(one.help)),
      others.length > 0 && more);
  }

  const groups = [];
  for (const one of findings) {
    if (one.group !== undefined && groups.length > 0 && groups[groups.length - 1][0].group === one.group) groups[groups.length - 1].push(one);
    else groups.push([one]);
  }
  for (const group of groups) {
    group.text = group.map((one) => `${one.message} ${one.rule} ${one.lines.map((line) => line.path).join(" ")}`).join(" ").toLowerCase();
  }

  function findingsView() {
    const list = make("div");
    const refresh = () => {
      const words = asked.text.toLowerCase().split(/\s+/).filter(Boolean);
      const found = groups.filter((group) =>
        (asked.level === "" || group[0].level === asked.level) && (asked.rule === "" || group[0].rule === asked.rule) &&
        words.every((word) => group.text.includes(word)));
      const turn = (to) => { asked.page = to; refresh(); list.scrollIntoView(); };
      list.replaceChildren(
        make("p", { class: "faint", role: "status" }, count(found.length, "cause")),
        ...paged(found, asked.page, turn, (part) => make("div", {}, part.map(([first, ...others]) => findingCard(first, others)))).filter(Boolean));
    };
    if (groups.length === 0) return [make("p", { class: "notice" }, "Nothing to report.")];
    const change = (key) => (value) => { asked[key] = value; asked.page = 0; refresh(); };
    const levels = LEVELS.filter((level) => findings.some((one) => one.level === level));
    const rules = head.rules.map((rule) => [rule.id, `${rule.id} (${rule.count})`]);
    refresh();
    return [
      make("div", { class: "tools" },
        search(asked.text, "Search", change("text")),
        choice("level", "Level", [["", "all"], ...levels.map((level) => [level, level])], asked.level, change("level")),
        choice("rule", "Rule", [["", "all"], ...rules], asked.rule, change("rule"))),
      list, leftOut(head.findings_left_out, "findings")];
  }

  // ---- Branches

  const looked = { text: "", verdict: "", page: 0 };
  const LOUD = ["deny", "warn", "note", "silent"];
  /** What is reported first, then what splits a warp, then in the order of the code. */
  const byNews = (list) => {
    const news = (one) => LOUD.indexOf(one.report) * 2 + (one.verdict === "warp-uniform");
    return list.map((one, at) => [news(one), at, one]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, , one]) => one);
  };

  function lanes([, active, taken]) {
    const cells = Array.from({ length: 32 }, (_, lane) => {
      const bit = (mask) => Math.floor(mask / 2 ** lane) % 2 === 1;
      return make("span", { class: !bit(active) ? "" : bit(taken) ? "taken" : "other" });
    });
    return make("span", { class: "lanes", role: "img", "aria-label": lanesInWords(active, taken) }, cells);
  }

  function lanesInWords(active, taken) {
    const ranges = (mask) => {
      const found = [];
      for (let lane = 0; lane < 32; lane += 1) {
        if (Math.floor(mask / 2 ** lane) % 2 === 0) continue;
        const last = found[found.length - 1];
        if (last && last[1] === lane - 1) last[1] = lane;
        else found.push([lane, lane]);
      }
      return found.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ") || "none";
    };
    const both = (active & taken) >>> 0;
    return `lanes ${ranges(both)} take it, lanes ${ranges((active & ~taken) >>> 0)} do not`;
  }

  const key = () => {
    const cell = (kind) => make("span", { class: "lanes", "aria-hidden": "true" }, make("span", { class: kind }));
    return make("p", { class: "key" }, make("span", {}, cell("taken"), "takes the branch"), make("span", {}, cell("other"), "does not"),
      make("span", {}, cell(""), "does not come there"));
  };

  function branchTable(list, withKernel) {
    const titles = ["Place", withKernel && "Kernel", "Verdict", "Lanes of a warp", "Split", "Instructions"].filter(Boolean);
    const loud = { deny: ["error", "error"], warn: ["warning", "warning"], note: ["note", "note"] };
    const rows = list.map((one) => make("tr", {},
      make("td", { title: `${one.path}:${one.line}` }, `${one.path.split(/[\\/]/).pop()}:${one.line}`, one.ptx_line !== undefined && one.ptx_line !== one.line && make("div", { class: "faint" }, `PTX ${one.ptx_line}`)),
      withKernel && make("td", { class: "name" }, one.kernels.length > 0 ? kernelLink(kernels[one.kernels[0]]) : make("code", {}, one.function)),
      make("td", { class: "verdict" }, one.report in loud && [make("span", { class: `level ${loud[one.report][0]}` }, loud[one.report][1]), " "],
        one.verdict ?? "unknown", make("div", { class: "faint" }, one.reason)),
      make("td", {}, one.lanes ? [lanes(one.lanes), make("div", { class: "faint" }, `warp ${one.lanes[0]}, blocks of ${size(one.block)}`)] : "–"),
      make("td", { class: "number", title: "the share of the warps that split" }, one.verdict === "warp-uniform" ? "–" : shown(one.split, percent), one.idle !== undefined && make("div", { class: "faint" }, `${percent(one.idle)} idle`)),
      make("td", { class: "number", title: "of the side that is taken, and of the other" }, one.costs ? one.costs.map((cost) => Math.round(cost).toLocaleString("en")).join(" / ") : "–")));
    return make("div", { class: "wide" }, make("table", { class: "branches" },
      make("thead", {}, make("tr", {}, titles.map((title) => make("th", { scope: "col" }, title)))), make("tbody", {}, rows)));
  }

  function branchesView() {
    const list = make("div");
    const ordered = byNews(branches);
    const refresh = () => {
      const words = looked.text.toLowerCase().split(/\s+/).filter(Boolean);
      const found = ordered.filter((one) =>
        (looked.verdict === "" || (one.verdict ?? "unknown") === looked.verdict) &&
        words.every((word) => `${one.path}:${one.line} ${one.function} ${one.reason}`.toLowerCase().includes(word)));
      const turn = (to) => { looked.page = to; refresh(); list.scrollIntoView(); };
      list.replaceChildren(make("p", { class: "faint", role: "status" }, count(found.length, "branch", "branches")), key(),
        ...paged(found, looked.page, turn, (part) => branchTable(part, true)).filter(Boolean));
    };
    const change = (name) => (value) => { looked[name] = value; looked.page = 0; refresh(); };
    const verdicts = [...new Set(branches.map((one) => one.verdict ?? "unknown"))].sort();
    refresh();
    return [
      make("div", { class: "tools" }, search(looked.text, "Search", change("text")),
        choice("verdict", "Verdict", [["", "all"], ...verdicts.map((verdict) => [verdict, verdict])], looked.verdict, change("verdict"))),
      list, leftOut(head.branches_left_out, "branches")];
  }

  // ---- One kernel

  const CURVES = [
    { title: "Block size", unit: "threads a block", most: (gpu) => gpu.max_threads, own: (point) => threads(point.block), step: 32, say: String },
    { title: "Registers", unit: "registers a thread", most: (gpu) => gpu.max_registers, own: (point) => point.registers, step: 1, say: String },
    { title: "Shared memory", unit: "of shared memory a block", most: (gpu) => gpu.max_shared, own: (point) => point.shared, step: 1024, say: bytes },
  ];

  const warpsAt = (steps, value) => steps.find(([last]) => value <= last)?.[1] ?? 0;

  /** Round numbers that divide an axis into a few parts. */
  function ticks(most) {
    const rough = most / 4;
    const unit = 2 ** Math.round(Math.log2(rough));
    const all = [];
    for (let value = 0; value < most - unit * 0.7; value += unit) all.push(value);
    return [...all, most];
  }

  function curveFigure(kind, point, steps) {
    const gpu = gpus[point.gpu];
    const { title, unit, step, say } = kind;
    const most = kind.most(gpu);
    const own = kind.own(point);
    const [width, height, left, right, top, bottom] = [420, 190, 40, 10, 10, 26];
    const x = (value) => left + (value / most) * (width - left - right);
    const y = (warps) => height - bottom - (warps / gpu.max_warps) * (height - top - bottom);
    let from = 0;
    let path = "";
    for (const [last, warps] of steps) {
      path += `${path ? "L" : "M"}${x(from).toFixed(1)} ${y(warps).toFixed(1)}L${x(last).toFixed(1)} ${y(warps).toFixed(1)}`;
      from = last;
    }
    const grid = [0, 0.25, 0.5, 0.75, 1].map((part) => {
      const at = y(part * gpu.max_warps);
      return draw("g", {}, draw("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }),
        draw("text", { x: left - 5, y: at + 3.5, "text-anchor": "end" }, `${part * 100}%`));
    });
    const axis = ticks(most).map((value) =>
      draw("text", { x: x(value), y: height - 9, "text-anchor": value === 0 ? "start" : value > most * 0.93 ? "end" : "middle" }, say(value)));
    const reading = draw("line", { class: "reading", y1: top, y2: height - bottom, x1: x(own), x2: x(own) });
    const svg = draw("svg", { class: "curve", viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "slider",
      "aria-label": `Occupancy against ${title.toLowerCase()}`, "aria-valuemin": 0, "aria-valuemax": most },
      ...grid, ...axis,
      draw("path", { class: "under", d: `${path}L${x(from).toFixed(1)} ${y(0)}L${x(0)} ${y(0)}Z` }),
      draw("path", { class: "steps", d: path }), reading,
      draw("circle", { class: "own", cx: x(Math.min(own, most)), cy: y(point.warps), r: 5 }));
    const output = make("output", {});
    let here = own;
    const read = (value) => {
      here = Math.max(0, Math.min(most, value));
      const warps = warpsAt(steps, here);
      const what = `${say(here)} ${unit}: ` + (warps === 0 ? "cannot be launched" : `${warps} of ${gpu.max_warps} warps, ${percent(warps / gpu.max_warps)}`);
      reading.setAttribute("x1", x(here));
      reading.setAttribute("x2", x(here));
      output.textContent = here === own ? `${what} (this kernel)` : what;
      svg.setAttribute("aria-valuenow", here);
      svg.setAttribute("aria-valuetext", output.textContent);
    };
    const moves = {
      ArrowRight: () => Math.floor(here / step) * step + step,
      ArrowLeft: () => Math.ceil(here / step) * step - step,
      PageUp: () => (steps.find(([last]) => last >= here)?.[0] ?? most) + 1,
      PageDown: () => steps.reduce((found, [last]) => (last < here ? last : found), 0),
      Home: () => step, End: () => most, Escape: () => own,
    };
    svg.addEventListener("keydown", (event) => {
      if (!(event.key in moves)) return;
      event.preventDefault();
      read(moves[event.key]());
    });
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * width;
      const value = ((at - left) / (width - left - right)) * most;
      read(Math.max(step === 1 ? 1 : 0, Math.round(value / step) * step));
    });
    svg.addEventListener("pointerleave", () => read(own));
    read(own);
    return make("figure", { "data-curve": title }, make("figcaption", {}, title), svg, output);
  }

  function limitBars(point) {
    // No SM holds more blocks than its own limit, however much room the others leave.
    const most = Math.max(new Map(point.limits).get("blocks") ?? 0, point.blocks, 1);
    return make("div", { class: "limits" }, point.limits.map(([name, blocks]) => {
      const binds = point.limiters.includes(name) ? "binds" : "";
      const fill = make("span");
      fill.style.width = `${Math.min(1, blocks / most) * 100}%`;
      return [make("span", { class: binds }, name), make("span", { class: `track ${binds}`, "aria-hidden": "true" }, fill),
        make("span", { class: binds }, count(blocks, "block"), binds && " ← limits")];
    }));
  }

  function why(point) {
    const gpu = gpus[point.gpu];
    const block = `${size(point.block)} threads a block (${SOURCES[point.source] ?? point.source}${point.site ? `, ${point.site}` : ""})`;
    if (point.blocks === 0) return `On ${gpu.name} it cannot be launched with ${block}.`;
    return `On ${gpu.name}, with ${block}, an SM holds ${count(point.blocks, "block")}: ${point.warps} of ${gpu.max_warps} warps, ` +
      `${percent(share(point))} occupancy` + (share(point) < 1 ? `, limited by ${point.limiters.join(" and ")}.` : ".");
  }

  function occupancyPart(kernel) {
    if (kernel.judged.length === 0) {
      const reason = kernel.function ? "A device function is launched by nobody: its registers are its callers'."
        : kernel.ambiguous ? "Lines of parallel jobs are mixed up, so that its figures are not sure enough to compute with."
        : kernel.registers === undefined ? "Its registers are not known, so nothing can be computed." : "Its architecture is not known: name one with --gpu.";
      return [make("h3", {}, "Occupancy"), make("p", { class: "faint" }, reason)];
    }
    const body = make("div");
    const pick = (chosen) => {
      const point = kernel.judged[chosen];
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", at === chosen));
      body.replaceChildren(make("p", { class: "why" }, why(point)), limitBars(point),
        make("div", { class: "curves" }, CURVES.flatMap((kind, at) => (point.curves[at] === null ? [] : [curveFigure(kind, point, curves[point.curves[at]])]))),
        make("p", { class: "faint" }, "The circle is this kernel. Arrow keys read a curve that has the focus, Page Up and Page Down go to its next step."));
    };
    const buttons = kernel.judged.map((point, at) =>
      make("button", { type: "button", onclick: () => pick(at) }, `${gpus[point.gpu].name}, ${size(point.block)}`));
    pick(kernel.judged.indexOf(kernel.lowest));
    return [make("h3", {}, "Occupancy"), buttons.length > 1 && make("div", { class: "tools" }, buttons), body];
  }

  function besideOthers(kernel) {
    const same = kernels.filter((one) => one.name === kernel.name && (one.symbol ?? "") === (kernel.symbol ?? ""));
    if (same.length < 2) return [];
    const row = (title, say) => make("tr", {}, make("th", { scope: "row" }, title), same.map((one) => make("td", { class: "number" }, say(one))));
    const headings = same.map((one) => make("th", { scope: "col", class: "number" },
      one === kernel ? one.arch ?? "unknown" : make("a", { href: `#kernel/${one.at}` }, one.arch ?? "unknown")));
    return [make("h3", {}, "Architectures side by side"), make("div", { class: "wide" }, make("table", { class: "beside" },
      make("thead", {}, make("tr", {}, make("td"), headings)),
      make("tbody", {},
        row("Registers", (one) => shown(one.registers)), row("Spills", (one) => shown(one.spills, bytes)), row("Stack", (one) => shown(one.stack, bytes)),
        row("Shared memory", (one) => shown(one.shared, bytes)), row("Occupancy", (one) => (one.lowest ? percent(share(one.lowest)) : "–")),
        row("Findings", (one) => String(one.told)))))];
  }

  function kernelView(kernel) {
    const figure = (title, value, say = String) => value !== undefined && make("div", {}, make("dt", {}, title), make("dd", {}, say(value)));
    const spills = kernel.spills !== undefined && `${shown(kernel.spill_stores)} / ${shown(kernel.spill_loads)} B`;
    const seen = byNews(kernel.branches);
    return [
      make("p", {}, make("a", { href: "#kernels" }, "← all kernels")),
      make("h2", {}, make("code", {}, kernel.name), " ", kernel.arch && make("span", { class: "chip" }, kernel.arch)),
      kernel.signature && make("p", {}, make("code", {}, kernel.signature)),
      kernel.symbol && make("p", { class: "faint" }, make("code", {}, kernel.symbol)),
      make("p", { class: "faint" }, kernel.declared && `declared at ${kernel.declared}`, kernel.declared && kernel.reported && "; ", kernel.reported && `reported at ${kernel.reported}`),
      kernel.ambiguous && make("p", { class: "notice" }, "Lines of parallel jobs are mixed up here: these figures may be another kernel's, and no rule judges them."),
      make("dl", { class: "figures" }, figure("Registers", kernel.registers), spills && make("div", {}, make("dt", {}, "Spill stores / loads"), make("dd", {}, spills)),
        figure("Stack frame", kernel.stack, bytes), figure("Static shared memory", kernel.shared, bytes), figure("Barriers", kernel.barriers),
        figure("Local memory", kernel.local, bytes), figure("Compile time", kernel.compile_ms, (ms) => `${Math.round(ms)} ms`)),
      occupancyPart(kernel),
      besideOthers(kernel),
      make("h3", {}, "Findings"),
      kernel.findings.length > 0 ? kernel.findings.slice(0, PAGE).map((one) => findingCard(one)) : make("p", { class: "faint" }, "None."),
      kernel.findings.length > PAGE && make("p", { class: "faint" }, `and ${kernel.findings.length - PAGE} more`),
      seen.length > 0 && [make("h3", {}, "Branches"), key(), branchTable(seen.slice(0, PAGE), false),
        seen.length > PAGE && make("p", { class: "faint" }, `and ${seen.length - PAGE} more, on the page of branches`)]];
  }

  // ---- Which part is shown

  const PARTS = [
    ["findings", "Findings", groups.length, findingsView],
    ["kernels", "Kernels", kernels.length, kernelsView],
    ["branches", "Branches", branches.length, branchesView],
  ].filter(([id, , number]) => number > 0 || id === "findings");
  const first = head.errors + head.warnings > 0 || kernels.length === 0 ? "findings" : "kernels";

  function show() {
    const [part, number] = location.hash.slice(1).split("/");
    if (part === "main") return;
    const kernel = part === "kernel" ? kernels[Number(number)] : undefined;
    const id = kernel ? "kernels" : PARTS.some(([one]) => one === part) ? part : first;
    document.getElementById("tabs").replaceChildren(...PARTS.map(([one, title, total]) =>
      make("a", { href: `#${one}`, "aria-current": one === id && "page" }, `${title} `, make("span", { class: "faint" }, String(total)))));
    const view = kernel ? kernelView(kernel) : PARTS.find(([one]) => one === id)[3]();
    main.replaceChildren(...view.flat(Infinity).filter((node) => node));
    document.title = kernel ? `${kernel.name} – warplint report` : "warplint report";
    if (kernel || part) { window.scrollTo(0, 0); main.focus({ preventScroll: true }); }
  }

  document.getElementById("summary").textContent +=
    (head.build_failed ? "; the build failed" : "") +
    (head.inputs.length > 0 ? `, from ${head.inputs.join(", ")}${head.more_inputs > 0 ? ` and ${count(head.more_inputs, "more input")}` : ""}` : "");
  window.addEventListener("hashchange", show);
  show();
})();
