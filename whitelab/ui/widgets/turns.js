// Who goes on in a lesson by keyboard stands at the heading of the step that comes, who predicts at the answer, and who
// is to predict again at the heading of the question, since what was pressed is gone, and with it the place in the page;
// who leaves stands at the title.
// Once a window, whose pages all bring this.
if (!window.whitelabTurns) {
  window.whitelabTurns = true
  const heading = () => document.querySelector(".st-key-lesson h2")
  const lost = () => document.activeElement === document.body
  const answer = () => lost() && document.querySelector(".st-key-lesson [data-testid=stAlertContainer]")
  let watch
  const stand = (place, before) => {
    watch?.disconnect()
    watch = new MutationObserver(() => {
      const now = place()
      if (!now || now.textContent === before) return
      watch.disconnect()
      now.tabIndex = -1
      now.focus()
    })
    watch.observe(document.body, { childList: true, characterData: true, subtree: true })
  }
  addEventListener("keydown", event => {
    if (event.key === "Enter" && event.target.closest?.(".st-key-lesson")) stand(answer)
  })
  addEventListener("click", event => {
    if (event.target.closest?.(".st-key-lesson-back, .st-key-lesson-next, .st-key-lesson-following"))
      stand(heading, heading()?.textContent)
    else if (event.target.closest?.(".st-key-lesson-leave, .st-key-present-leave")) {
      document.querySelector("[data-testid=stMain]").scrollTo(0, 0)  // the page begins where the lesson was
      stand(() => lost() && document.querySelector("h1"))
    } else if (event.detail !== 0) return  // by the mouse, which needs no place
    else if (event.target.closest?.(".st-key-lesson-again")) stand(() => lost() && heading())
    else if (event.target.closest?.(".st-key-lesson :is([data-testid=stFormSubmitButton], [class*=-predict])"))
      stand(answer)
  })
}
