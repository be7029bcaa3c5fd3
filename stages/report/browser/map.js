// The map of clusters: a dot per cluster. Arrow keys go from dot to dot, Enter opens a batch of the cluster.
const WIDE = 1000; // of the drawing, inside its margins
const HIGH = 600;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

async function startMap() {
  const [clusters, list] = await Promise.all(["data-clusters", "data-batches"].map(unpack));
  if (!clusters.x.length) return;
  let texts = null; // they may still be unpacked when the map is drawn
  const most = Math.max(...clusters.size);
  const ranked = [...clusters.hardness].sort((one, other) => one - other);
  const dots = clusters.x.map((x, at) => {
    const level = ranked.indexOf(clusters.hardness[at]) / ranked.length;
    const circle = draw("circle", {
      cx: x * WIDE,
      cy: clusters.y[at] * HIGH,
      r: 3 + 9 * Math.sqrt(clusters.size[at] / most),
      style: `--level: ${Math.round(100 * level)}%`,
    });
    const batch = clusters.batches[at][0];
    const label = `Cluster ${clusters.cluster[at]} of ${list.domains[clusters.domain[at]]}, ${about(clusters, at)}`;
    const target = batch === undefined ? {} : { href: `#batch-${list.batch[batch]}` };
    const dot = draw("a", { ...target, tabindex: at ? "-1" : "0", "aria-label": label }, circle);
    explain(dot, () => tellCluster(clusters, list, texts, at));
    dot.addEventListener("keydown", event => step(event, clusters, dots, at));
    return dot;
  });
  document.getElementById("map").replaceChildren(...dots);
  texts = await unpack("data-texts");
}

function about(clusters, at) {
  return `${clusters.size[at].toLocaleString("en")} pairs, hardness ${share(clusters.hardness[at])}`;
}

function tellCluster(clusters, list, texts, at) {
  const name = `Cluster ${clusters.cluster[at]}, ${list.domains[clusters.domain[at]]}: ${about(clusters, at)}.`;
  const examples = texts ? clusters.pairs[at].map(pair => make("li", {}, texts.texts[texts.query[pair]])) : [];
  return [make("strong", {}, name), make("ul", {}, ...examples)];
}

/** Move the focus to the nearest dot in the direction of the arrow key. */
function step(event, clusters, dots, from) {
  const direction = ARROWS[event.key];
  if (!direction) return;
  event.preventDefault();
  let best = -1;
  let least = Infinity;
  dots.forEach((_, to) => {
    const [x, y] = [(clusters.x[to] - clusters.x[from]) * WIDE, (clusters.y[to] - clusters.y[from]) * HIGH];
    const [along, aside] = [x * direction[0] + y * direction[1], x * direction[1] + y * direction[0]];
    const far = along + 2 * Math.abs(aside);
    if (along > 0 && far < least) [best, least] = [to, far];
  });
  if (best < 0) return;
  dots[from].setAttribute("tabindex", "-1");
  dots[best].setAttribute("tabindex", "0");
  dots[best].focus();
}
