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
  // back goes over them too, also after a reload. Where one came back to was taken by a hand. An entry's key stays, while
  // the index of `activation` is -1 once replaceState has put another in its place.
  const came = window.navigation?.activation
  if (came) {
    const entries = navigation.entries(), here = navigation.currentEntry
    const passed = new Set(JSON.parse(sessionStorage.whitelabPassed ?? "[]"))
    if (["push", "replace"].includes(came.navigationType)) {
      const wentBack = entries[here.index + 1]?.sameDocument  // already
      const begun = here.index + (wentBack ? 1 : 0)
      const opened = entries.findIndex(entry => entry.key === came.entry.key)
      if (opened >= 0) for (const entry of entries.slice(opened, begun)) passed.add(entry.key)
    } else passed.delete(here.key)
    sessionStorage.whitelabPassed = JSON.stringify([...passed])
    const over = () => {
      const entries = navigation.entries(), here = navigation.currentEntry.index
      let to = here
      while (passed.has(entries[to]?.key)) to--
      if (to < here) history.go(to - here)
    }
    addEventListener("popstate", over)
    over()
  }
}
