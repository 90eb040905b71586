// Where a hand stands once the bar has opened or closed; once a window, whose pages all bring this.
if (!window.whitelabBar) {
  window.whitelabBar = true
  const find = name => document.querySelector(`[data-testid=${name}]`)

  // Where the bar covers the page, the page chosen in it is what one wants to see.
  addEventListener("click", event => {
    if (event.target.closest?.("[data-testid=stSidebarNavLink]") && matchMedia("(max-width: 768px)").matches)
      find("stSidebarCollapseButton")?.querySelector("button")?.click()
  })

  // Who opens it by keyboard stands at its beginning, who closes it at what opens it: Streamlit takes away the button
  // that was pressed, and with it the place in the page.
  const stand = (place, tries = 60) => {
    if (document.activeElement !== document.body) return
    const now = place()
    if (now) {
      if (!now.matches("button")) now.tabIndex = -1
      now.focus()
    }
    if (document.activeElement === document.body && tries) requestAnimationFrame(() => stand(place, tries - 1))
  }
  addEventListener("click", event => {
    if (event.detail !== 0) return  // by the mouse, which needs no place
    const opens = event.target.closest?.("[data-testid=stExpandSidebarButton]")
    if (!opens && !event.target.closest?.("[data-testid=stSidebarCollapseButton]")) return
    requestAnimationFrame(() => stand(() => find(opens ? "stSidebarContent" : "stExpandSidebarButton")))
  })
}
