// One tip for the whole page: it tells more about what the pointer or the keyboard's focus is on.
const tip = make("div", { id: "tip", role: "tooltip", hidden: "" });
document.body.append(tip);

const tells = new WeakMap();
let subject = null; // the element that the tip is about

/** Show what `tell` returns, a list of nodes and strings, while `element` is hovered or focused. */
function explain(element, tell) {
  element.setAttribute("aria-describedby", "tip");
  tells.set(element, tell);
}

function showTip(event) {
  subject = event.target.closest?.("[aria-describedby=tip]");
  tip.hidden = !subject;
  if (!subject) return;
  tip.replaceChildren(...tells.get(subject)());
  placeTip();
}

/** Put the tip above its element, or below if there is no room. */
function placeTip() {
  if (tip.hidden) return;
  const target = subject.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const most = document.documentElement.clientWidth - own.width - 8;
  const above = target.top - own.height - 8;
  tip.style.left = `${Math.max(Math.min(target.left, most), 8)}px`;
  tip.style.top = `${above > 0 ? above : target.bottom + 8}px`;
}

function hideTip() {
  tip.hidden = true;
}

addEventListener("pointerover", showTip);
addEventListener("focusin", showTip);
addEventListener("focusout", hideTip);
addEventListener("keydown", event => event.key === "Escape" && hideTip());
addEventListener("scroll", placeTip, { passive: true, capture: true });
