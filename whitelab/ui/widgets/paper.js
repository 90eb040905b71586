// On paper the page is laid out as wide as in the window and then made smaller (look.py), since charts and tables keep
// their width: this says how wide, and whether in the dark theme. Once a window, whose pages all bring this.
if (!window.whitelabPaper) {
  window.whitelabPaper = true
  addEventListener("beforeprint", () => {
    const page = document.querySelector("[data-testid=stMainBlockContainer] > *")
    const dark = getComputedStyle(document.querySelector("[data-testid=stApp]")).colorScheme === "dark"
    document.documentElement.toggleAttribute("data-dark", dark)
    document.documentElement.style.setProperty("--window", `${page?.getBoundingClientRect().width}px`)
  })
}
