// A curve to draw over a few named places, by mouse, finger and arrow keys; later the measured ones stand beside it.
// `data`: {names, state, low, high, floor, ceiling, fixed, bars, curves: {name: heights}, inks: {name: colour}}.

const MINE_WIDE = "color-mix(in srgb, var(--st-text-color) 45%, var(--st-background-color))" // as .wl-wide
const LEFT = 34, RIGHT = 16, TOP = 10, FOOT = 44, HIGH = 270

class Picture extends Held {
  constructor(parent) {
    super()
    this.svg = parent.querySelector("svg")
    this.legend = parent.querySelector(".wl-key")
    this.watch = new ResizeObserver(() => this.data && this.width !== this.svg.clientWidth && this.build())
    this.watch.observe(this.svg)
  }

  take(data) {
    const before = JSON.stringify([this.data, this.state])
    const busy = this.ahead(data.state)
    this.data = data
    if (!busy || !this.state) this.state = [...data.state]
    if (busy) this.paint()
    else if (before !== JSON.stringify([data, this.state])) this.build()
  }

  x(i) { return LEFT + ((i + 0.5) * (this.width - LEFT - RIGHT)) / this.data.names.length }
  y(height) {
    const { floor, ceiling } = this.data
    return TOP + ((ceiling - height) * (HIGH - TOP - FOOT)) / (ceiling - floor)
  }

  build() {
    const { names, floor, ceiling, fixed, curves, inks, bars } = this.data
    const focused = this.svg.getRootNode().activeElement?.dataset?.place
    this.width = this.svg.clientWidth || 600
    this.svg.replaceChildren()
    const step = ceiling - floor > 60 ? 20 : 10
    for (let height = Math.ceil(floor / step) * step; height <= ceiling; height += step) {
      add(this.svg, "path", { class: "wl-grid", d: `M${LEFT} ${this.y(height)}H${this.width - RIGHT}` })
      add(this.svg, "text", { x: LEFT - 6, y: this.y(height) + 4, "text-anchor": "end" }).textContent = height
    }
    names.forEach((name, i) => {
      const label = name.split(" (")
      label[1] = label[1] ? "(" + label[1] : ""
      label.forEach((part, line) => {
        const text = add(this.svg, "text", { x: this.x(i), y: HIGH - FOOT + 18 + 15 * line, "text-anchor": "middle" })
        text.textContent = this.width < 460 ? part.replace(/\s*=\s*/, "=") : part
      })
    })
    for (const [name, heights] of Object.entries(curves).reverse()) { // the first, which is asked for, on top
      const width = bars ? 26 : 2.5
      add(this.svg, "path", { class: "wl-line", stroke: inks[name], d: this.path(heights, 14), "stroke-width": width })
      if (!bars)
        heights.forEach((height, j) => add(this.svg, "circle", { cx: this.x(j), cy: this.y(height), r: 4, fill: inks[name] }))
    }
    this.mine = add(this.svg, "path", { class: bars ? "wl-mine wl-wide" : "wl-mine" })
    this.handles = bars && fixed ? [] : this.state.map((_, i) => (fixed ? add(this.svg, "circle", { r: 4, fill: "currentColor", cx: this.x(i) }) : this.handle(i)))
    this.legend.replaceChildren()
    this.name(fixed ? "Your prediction" : "Drag the rings up and down, or focus one and use the arrow keys", bars ? MINE_WIDE : "currentColor", bars ? "solid" : "dashed")
    Object.keys(curves).forEach(name => this.name(name, inks[name], "solid"))
    this.paint()
    if (focused !== undefined) this.handles[focused]?.focus?.({ preventScroll: true })
  }

  name(text, ink, dash) {
    const item = document.createElement("span")
    item.textContent = text
    item.style.setProperty("--ink", ink)
    item.style.setProperty("--dash", dash)
    this.legend.append(item)
  }

  handle(i) {
    const { low, high, names } = this.data
    const words = {
      "data-place": i, "aria-label": `Score at ${names[i]}`,
      "aria-valuemin": low, "aria-valuemax": high, "aria-orientation": "vertical",
    }
    const drag = event => {
      const { floor, ceiling } = this.data, box = this.svg.getBoundingClientRect()
      this.set(i, ceiling - ((event.clientY - box.top - TOP) * (ceiling - floor)) / (HIGH - TOP - FOOT))
    }
    return this.ring(this.svg, words, 22, 8, drag, event => {
      const way = {
        ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10, End: Infinity, Home: -Infinity,
      }[event.key]
      if (!way) return
      event.preventDefault()
      this.set(i, this.state[i] + way)
      this.later()
    })
  }

  set(i, height) {
    const { low, high, floor, ceiling } = this.data
    const bounded = Math.min(high, ceiling, Math.max(low, floor, height))
    this.state[i] = Math.round(2 * bounded) / 2
    this.paint()
  }

  // Where a prediction of bars stands when the measured ones stand beside it.
  get aside() { return this.data.bars && this.data.fixed ? -14 : 0 }

  path(heights, aside = 0) {
    if (this.data.bars) return heights.map((height, i) => `M${this.x(i) + aside} ${this.y(this.data.floor)}V${this.y(height)}`).join("")
    return "M" + heights.map((height, i) => `${this.x(i)} ${this.y(height)}`).join("L")
  }

  paint() {
    this.mine.setAttribute("d", this.path(this.state, this.aside))
    this.handles.forEach((handle, i) => {
      if (handle.tagName === "circle") return handle.setAttribute("cy", this.y(this.state[i]))
      handle.setAttribute("transform", `translate(${this.x(i)} ${this.y(this.state[i])})`)
      handle.setAttribute("aria-valuenow", this.state[i])
    })
  }
}
