// Unpacks the chart library, then draws the charts in the page's colours, and again when they change.
(async () => {
  const root = document.documentElement;
  const touch = matchMedia("(pointer: coarse)").matches;
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const charts = [...document.querySelectorAll(".chart")].map((place) => ({
    place,
    figure: place.nextElementSibling.textContent,
  }));

  // The element has the library's script, packed by gzip, in base64.
  async function load() {
    const bytes = Uint8Array.from(atob(document.getElementById("plotly").textContent), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const library = document.createElement("script");
    library.textContent = await new Response(unpacked).text();
    document.head.append(library);
  }

  function inColours(text) {
    const figure = JSON.parse(text);
    const [ink, quiet, grid, paper] = ["--ink", "--quiet", "--grid", "--paper"].map(colour);
    for (const trace of figure.data) {
      const hue = colour(`--hue-${trace.meta % 8}`);
      if (trace.line) trace.line.color = hue;
      if (trace.error_y) trace.error_y.color = trace.type === "bar" ? ink : hue;
      trace.marker = { ...trace.marker, color: hue };
    }
    Object.assign(figure.layout, {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: colour("--font"), size: 13, color: ink },
      hoverlabel: { bgcolor: paper, bordercolor: quiet, font: { color: ink } },
      // A finger that drags wants to scroll the page; a mouse that drags wants to zoom.
      dragmode: touch ? false : "zoom",
    });
    for (const axis of [figure.layout.xaxis, figure.layout.yaxis]) {
      Object.assign(axis, { gridcolor: grid, linecolor: quiet, tickfont: { color: quiet } });
      Object.assign(axis, { spikecolor: quiet, spikethickness: 1 });
    }
    return figure;
  }

  let isLoaded = false;

  function draw() {
    if (!isLoaded) return;
    for (const { place, figure } of charts) {
      const { data, layout, config } = inColours(figure);
      Plotly.react(place, data, layout, config);
    }
  }

  // A chart follows the size of its place, whatever changed that: the window, a turned phone, a scroll bar.
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => Plotly.Plots.resize(target)));

  const button = document.getElementById("theme");
  function show() {
    theme.show();
    button.textContent = theme.name === "dark" ? "Light" : "Dark";
    draw();
  }
  button.addEventListener("click", () => {
    theme.chosen = theme.name === "dark" ? "light" : "dark";
    show();
  });
  theme.system.addEventListener("change", show);
  show();
  try {
    await load();
  } catch (error) {
    charts.forEach(({ place }) => place.append(`This browser cannot unpack the charts (${error}). The tables have their figures.`));
    return;
  }
  isLoaded = true;
  draw();
  charts.forEach(({ place }) => sizes.observe(place));
})();
