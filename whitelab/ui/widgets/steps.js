// One act of a hand is one step in the browser's history; once a window, whose pages all bring this. Streamlit takes one
// for each key of the address that a script sets or deletes, another for the page, and again on the way back: nobody got
// past a page that says something of its own in the address. What leads to where the hand was is no step: a knob that
// was turned and is put back.
if (!window.whitelabSteps) {
  window.whitelabSteps = true
  let acted = false, at
  const act = () => ([acted, at] = [true, location.href])
  for (const kind of ["pointerdown", "click", "keydown"]) addEventListener(kind, act, { capture: true })
  addEventListener("popstate", () => (acted = false), { capture: true })
  const push = history.pushState
  history.pushState = function (...step) {
    if (!acted || new URL(step[2] ?? "", location).href === at) return this.replaceState(...step)
    acted = false
    return push.apply(this, step)
  }
  // Streamlit may take its first steps before this runs, where it finds a link in other words than its own: whoever
  // goes back or forward goes over them, also after a reload. An entry's key stays, while the index of `activation` is
  // -1 once replaceState has put another in its place.
  const came = window.navigation?.activation
  if (came?.entry) {
    const entries = navigation.entries(), here = navigation.currentEntry.index
    const passed = new Set()
    try {
      for (const key of JSON.parse(sessionStorage.whitelabPassed ?? "[]")) passed.add(key)
    } catch {}  // a browser may deny it
    const first = ["push", "replace"].includes(came.navigationType)
    const wentBack = first && entries[here + 1]?.sameDocument  // already
    const opened = entries.findIndex(entry => entry.key === came.entry.key)
    if (opened >= 0) for (const entry of entries.slice(opened, here + (wentBack ? 1 : 0))) passed.add(entry.key)
    try {
      sessionStorage.whitelabPassed = JSON.stringify([...passed])
    } catch {}
    const over = step => {
      const entries = navigation.entries(), here = navigation.currentEntry.index
      let to = here
      while (passed.has(entries[to]?.key)) to += step
      if (to !== here) history.go(to - here)
    }
    navigation.addEventListener("currententrychange", ({ navigationType, from }) => {
      if (navigationType === "traverse") over(from.index < navigation.currentEntry.index ? 1 : -1)
    })
    over(first || came.from?.index > here ? -1 : 1)
  }
}
