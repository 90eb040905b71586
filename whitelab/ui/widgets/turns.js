// Who goes on in a lesson by keyboard stands at the heading of the step that comes, since the button that was pressed is
// gone, and with it the place in the page. Once a window, whose pages all bring this.
if (!window.whitelabTurns) {
  window.whitelabTurns = true
  const heading = () => document.querySelector(".st-key-lesson h2")
  addEventListener("click", event => {
    if (!event.target.closest?.(".st-key-lesson-back, .st-key-lesson-next, .st-key-lesson-following")) return
    const before = heading()?.textContent
    new MutationObserver((_, watch) => {
      const now = heading()
      if (!now || now.textContent === before) return
      watch.disconnect()
      now.tabIndex = -1
      now.focus()
    }).observe(document.body, { childList: true, characterData: true, subtree: true })
  })
}
