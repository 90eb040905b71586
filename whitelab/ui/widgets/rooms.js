// What is said of a setting has more lines at one k than at another: it keeps the room that it once took, as long as the
// window is as wide, so that the charts below stand still. Once a window, whose pages all bring this.
if (!window.whitelabRooms) {
  window.whitelabRooms = true
  const SAID = "[class*=st-key-said-], .st-key-explanation"
  let wide = innerWidth, due = false
  const keep = () => {
    due = false
    for (const one of document.querySelectorAll(SAID)) {
      if (innerWidth !== wide) one.style.minHeight = ""
      one.style.minHeight = `${one.getBoundingClientRect().height}px`
    }
    wide = innerWidth
  }
  const soon = () => due || (due = requestAnimationFrame(keep))
  new MutationObserver(soon).observe(document.body, { childList: true, characterData: true, subtree: true })
  addEventListener("resize", soon)
}
