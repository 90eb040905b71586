// A curve to draw over a few named places, by mouse, finger and arrow keys; later the measured ones stand beside it.
// `data`: {names, heights, low, high, floor, ceiling, fixed, bars, curves: {name: heights}, inks: {name: colour}}.

const VIEWS = new WeakMap()

export default function ({ parentElement, data, setStateValue }) {
  let view = VIEWS.get(parentElement)
  if (!view) {
    view = new Sketch(parentElement)
    VIEWS.set(parentElement, view)
  }
  view.send = heights => setStateValue("heights", heights)
  view.take(data)
  return () => { view.watch.disconnect(); VIEWS.delete(parentElement) }
}

const SVG = "http://www.w3.org/2000/svg"
const PAUSE = 200 // milliseconds after the last key until the server hears of it
const MINE_WIDE = "color-mix(in srgb, var(--st-text-color) 45%, var(--st-background-color))" // as .wl-wide
const LEFT = 34, RIGHT = 16, TOP = 10, FOOT = 44, HIGH = 270

class Sketch {
  constructor(parent) {
    this.svg = parent.querySelector("svg")
    this.legend = parent.querySelector(".wl-key")
    this.watch = new ResizeObserver(() => this.data && this.width !== this.svg.clientWidth && this.build())
    this.watch.observe(this.svg)
  }

  take(data) {
    // What comes back of an earlier curve must not undo what the hand has done since.
    if (this.sent === JSON.stringify(data.heights)) this.sent = undefined
    const before = JSON.stringify([this.data, this.heights])
    const busy = this.moving !== undefined || this.waits || this.sent !== undefined
    this.data = data
    if (!busy || !this.heights) this.heights = [...data.heights]
    if (busy) this.paint()
    else if (before !== JSON.stringify([data, this.heights])) this.build()
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
    this.handles = bars && fixed ? [] : this.heights.map((_, i) => (fixed ? add(this.svg, "circle", { r: 4, fill: "currentColor", cx: this.x(i) }) : this.handle(i)))
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
    const group = add(this.svg, "g", {
      class: "wl-handle", tabindex: 0, role: "slider", "data-place": i, "aria-label": `Score at ${names[i]}`,
      "aria-valuemin": low, "aria-valuemax": high, "aria-orientation": "vertical",
    })
    add(group, "circle", { class: "wl-reach", r: 22 })
    add(group, "circle", { r: 8 })
    group.addEventListener("touchstart", event => event.preventDefault(), { passive: false }) // no scrolling from here
    group.addEventListener("pointerdown", event => {
      this.moving = i
      group.setPointerCapture(event.pointerId)
      group.focus({ preventScroll: true })
      event.preventDefault()
    })
    group.addEventListener("pointermove", event => {
      if (this.moving !== i) return
      const { floor, ceiling } = this.data, box = this.svg.getBoundingClientRect()
      this.set(i, ceiling - ((event.clientY - box.top - TOP) * (ceiling - floor)) / (HIGH - TOP - FOOT))
    })
    for (const end of ["pointerup", "pointercancel"])
      group.addEventListener(end, () => { if (this.moving === i) { this.moving = undefined; this.release() } })
    group.addEventListener("keydown", event => {
      const way = {
        ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10, End: Infinity, Home: -Infinity,
      }[event.key]
      if (!way) return
      event.preventDefault()
      this.set(i, this.heights[i] + way)
      clearTimeout(this.waits)
      this.waits = setTimeout(() => this.release(), PAUSE)
    })
    group.addEventListener("blur", () => this.waits && this.release())
    return group
  }

  set(i, height) {
    const { low, high, floor, ceiling } = this.data
    const bounded = Math.min(high, ceiling, Math.max(low, floor, height))
    this.heights[i] = Math.round(2 * bounded) / 2
    this.paint()
  }

  release() {
    clearTimeout(this.waits)
    this.waits = undefined
    this.sent = JSON.stringify(this.heights)
    this.send([...this.heights])
  }

  // Where a prediction of bars stands when the measured ones stand beside it.
  get aside() { return this.data.bars && this.data.fixed ? -14 : 0 }

  path(heights, aside = 0) {
    if (this.data.bars) return heights.map((height, i) => `M${this.x(i) + aside} ${this.y(this.data.floor)}V${this.y(height)}`).join("")
    return "M" + heights.map((height, i) => `${this.x(i)} ${this.y(height)}`).join("L")
  }

  paint() {
    this.mine.setAttribute("d", this.path(this.heights, this.aside))
    this.handles.forEach((handle, i) => {
      if (handle.tagName === "circle") return handle.setAttribute("cy", this.y(this.heights[i]))
      handle.setAttribute("transform", `translate(${this.x(i)} ${this.y(this.heights[i])})`)
      handle.setAttribute("aria-valuenow", this.heights[i])
    })
  }
}

function add(parent, tag, attributes) {
  const element = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  parent.append(element)
  return element
}
