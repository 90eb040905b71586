// Where a hand stands once the bar has opened or closed; once a window, whose pages all bring this.
if (!window.whitelabBar) {
  window.whitelabBar = true
  const OPENS = "stExpandSidebarButton", PRESSED = `[data-testid=${OPENS}], [data-testid=stSidebarCollapseButton]`
  const find = name => document.querySelector(`[data-testid=${name}]`)

  // Where the bar covers the page, the page chosen in it is what one wants to see.
  addEventListener("click", event => {
    if (event.target.closest?.("[data-testid=stSidebarNavLink]") && matchMedia("(max-width: 768px)").matches)
      find("stSidebarCollapseButton")?.querySelector("button")?.click()
  })

  // Who opens it by keyboard stands at its beginning, who closes it at what opens it: Streamlit takes away the button
  // that was pressed, and with it the place in the page.
  const stand = (name, tries = 60) => {
    const at = document.activeElement, now = find(name)
    if (at === now || at !== document.body && !at?.closest(`${PRESSED}, [data-testid=stSidebarNavLink]`)) return
    if (now) {
      if (!now.matches("button")) now.tabIndex = -1
      now.focus()
    }
    if (tries) requestAnimationFrame(() => stand(name, tries - 1))
  }
  addEventListener("click", event => {
    if (event.detail !== 0) return  // by the mouse, which needs no place
    const pressed = event.target.closest?.(PRESSED)?.dataset.testid
    if (pressed) requestAnimationFrame(() => stand(pressed === OPENS ? "stSidebarContent" : OPENS))
  })
}
