// Uses the page as a person does, and leaves what it saw as JSON in its title.
(async () => {
  const seen = {};
  const settle = () => new Promise((done) => setTimeout(done, 30));
  const all = (what) => [...document.querySelectorAll(what)];
  const go = async (hash) => { location.hash = hash; await settle(); };
  const rows = () => all("table.kernels tbody tr").map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
  const type = async (text) => {
    const field = document.querySelector("input[name=text]");
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await settle();
  };
  try {
    seen.summary = document.getElementById("summary").textContent;
    seen.tabs = all("#tabs a").map((tab) => tab.textContent);
    await go("#findings");
    seen.causes = all("article.finding").length;
    await go("#kernels");
    seen.rows = rows().length;
    const heading = (key) => document.querySelector(`button[data-key=${key}]`);
    let start = performance.now();
    heading("registers").click();
    seen.sort_ms = performance.now() - start;
    seen.falling = rows().map((row) => row[3]);
    seen.sorted = heading("registers").closest("th").getAttribute("aria-sort");
    start = performance.now();
    heading("registers").click();
    seen.sort_again_ms = performance.now() - start;
    seen.rising = rows().map((row) => row[3]);
    start = performance.now();
    await type("{{search}}");
    seen.filter_ms = performance.now() - start;
    seen.filtered = rows().map((row) => row[0]);
    document.querySelector("table.kernels tbody a").click();
    await settle();
    seen.kernel = document.querySelector("h2 code").textContent;
    seen.why = document.querySelector(".why")?.textContent;
    seen.limits = document.querySelector(".limits")?.textContent;
    const curve = (title) => document.querySelector(`figure[data-curve="${title}"]`);
    seen.own = all("figure output").map((output) => output.textContent);
    const press = (title, key) => curve(title).querySelector("svg").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    press("Registers", "End");
    seen.most_registers = curve("Registers").querySelector("output").textContent;
    press("Block size", "Home");
    seen.one_warp = curve("Block size").querySelector("output").textContent;
    press("Block size", "ArrowRight");
    seen.two_warps = curve("Block size").querySelector("output").textContent;
    press("Block size", "PageUp");
    press("Block size", "Escape");
    seen.back = curve("Block size").querySelector("output").textContent;
    seen.findings = all("article.finding").map((one) => one.textContent);
    seen.lanes = all("table.branches .lanes").map((one) => one.getAttribute("aria-label"));
    if (document.querySelector('#tabs a[href="#branches"]')) {
      await go("#branches");
      seen.branches = all("table.branches tbody tr").length;
      seen.branch_lanes = all("table.branches .lanes").map((one) => one.getAttribute("aria-label"));
    }
    await go("#nonsense/%");
    seen.survives = document.querySelector("main").children.length > 0;
    seen.scripts = document.scripts.length;
  } catch (error) {
    window.complaints.push(`driver: ${error.stack}`);
  }
  seen.requests = performance.getEntriesByType("resource").map((one) => one.name);
  seen.complaints = window.complaints;
  document.title = JSON.stringify(seen);
})();
