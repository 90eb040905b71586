// One act of a hand is one step in the browser's history; once a window, whose pages all bring this. Streamlit takes one
// for each key of the address that a script sets or deletes, another for the page, and again on the way back: nobody got
// past a page that says something of its own in the address.
if (!window.whitelabSteps) {
  window.whitelabSteps = true
  let acted = false
  for (const kind of ["pointerdown", "click", "keydown"]) addEventListener(kind, () => (acted = true), { capture: true })
  addEventListener("popstate", () => (acted = false), { capture: true })
  const push = history.pushState
  history.pushState = function (...step) {
    if (!acted) return this.replaceState(...step)
    acted = false
    return push.apply(this, step)
  }
}
