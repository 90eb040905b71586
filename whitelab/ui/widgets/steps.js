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
  // Streamlit may take its first steps before this runs, where it finds a link in other words than its own: who goes
  // back goes over them too. Steps that are there after a reload, or where one came back to, were taken by a hand. The
  // entry's key stays, while its index is -1 once replaceState has put another in its place.
  const came = window.navigation?.activation
  const first = ["push", "replace"].includes(came?.navigationType) ? came.entry.key : null
  const opened = first ? navigation.entries().findIndex(entry => entry.key === first) : -1
  const now = opened < 0 ? opened : navigation.currentEntry.index
  const begun = opened >= 0 && navigation.entries()[now + 1]?.sameDocument ? now + 1 : now  // someone went back already
  const over = () => {
    const here = navigation.currentEntry.index
    if (opened <= here && here < begun) history.go(opened - 1 - here)
  }
  if (opened < begun) {
    addEventListener("popstate", over)
    over()
  }
}
