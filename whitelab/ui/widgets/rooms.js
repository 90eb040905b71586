// What is said of a setting has more lines at one k than at another: it keeps the room that it once took, as long as the
// page and the window's width stay, so that the charts below stand still. Streamlit draws it in a new element after a
// wait, so rooms are kept by key, those of headline numbers by their place. While a page is drawn anew, what is left of
// the run before may stand in another's place, and is no room. Once a window, whose pages all bring this.
if (!window.whitelabRooms) {
  window.whitelabRooms = true
  const SAID = "[class*=st-key-said-], .st-key-explanation, [data-testid=stMetric]"
  const rooms = new Map()
  let place = "", due = false
  const keep = () => {
    due = false
    const said = document.querySelectorAll(SAID), here = `${location.pathname} ${innerWidth}`
    if (here !== place) {
      rooms.clear()
      for (const one of said) one.style.removeProperty("--room")
    }
    place = here
    let numbers = 0
    for (const one of said) {
      const key = one.className.match(/st-key-[\w-]+/)?.[0] ?? numbers++
      if (!one.querySelector("[data-stale=true]"))
        rooms.set(key, Math.max(rooms.get(key) ?? 0, one.getBoundingClientRect().height))
      one.style.setProperty("--room", `${rooms.get(key) ?? 0}px`)
    }
  }
  const soon = () => due || (due = requestAnimationFrame(keep))
  new MutationObserver(soon).observe(document.body, { childList: true, characterData: true, subtree: true })
  addEventListener("resize", soon)
}
