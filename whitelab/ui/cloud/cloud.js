// A cloud of points in the plane. While a hand drags, the picture is drawn here; on release the server hears the state
// and measures it. `data`: {kind, points, state, names, limits, ghosts, inks, still}. Kinds do what `lessons/clouds.py` says.

const RING = 4.2 // where the handle that turns runs
const BINS = 20

const PLACE = {
  mean: ([x, y], [right, up]) => [x + right, y + up],
  axes: ([x, y], [wide, high]) => [x * wide, y * high],
  turn: ([x, y], [angle, across, up]) => {
    const c = Math.cos((angle * Math.PI) / 180), s = Math.sin((angle * Math.PI) / 180)
    return [(x * c - y * s) * across, (x * s + y * c) * up]
  },
}

// Every handle: the parts of the state it moves, where it stands, what a place of the hand makes of them, its mark.
const across = part => ({ parts: [part], at: s => [s[part], 0], from: (s, [x]) => [Math.abs(x)], mark: "M-.18 0H.18" })
const upwards = part => ({ parts: [part], at: s => [0, s[part]], from: (s, [, y]) => [Math.abs(y)], mark: "M0-.18V.18" })
const HANDLES = {
  mean: [{ parts: [0, 1], at: s => s, from: (s, place) => place, mark: "M-.16 0H.16M0-.16V.16", label: "Middle of the cloud" }],
  axes: [{ ...across(0), label: "Width of the cloud" }, { ...upwards(1), label: "Height of the cloud" }],
  turn: [
    {
      parts: [0],
      at: s => [RING * Math.cos((s[0] * Math.PI) / 180), RING * Math.sin((s[0] * Math.PI) / 180)],
      from: (s, [x, y]) => [(Math.atan2(y, x) * 180) / Math.PI],
      mark: "M-.14-.1A.17.17 0 1 1-.1.14", label: "Turn",
    },
    { ...across(1), label: "Stretch across" },
    { ...upwards(2), label: "Stretch upwards" },
  ],
}
const HINTS = {
  mean: "Drag the ring, or focus it and use the arrow keys.",
  axes: "Drag a ring along its axis, or focus it and use the arrow keys.",
  turn: "The outer ring turns the cloud, the two inner ones stretch it. Arrow keys work too.",
}

class Picture extends Held {
  constructor(parent) {
    super()
    this.plane = parent.querySelector(".wl-plane")
    this.bars = parent.querySelector(".wl-bars")
    this.hint = parent.querySelector(".wl-hint")
  }

  take(data) {
    const first = !this.data || this.data.kind !== data.kind || this.data.still !== data.still
    this.data = data
    if (!this.ahead(data.state)) this.state = [...data.state]
    if (first) this.build()
    this.paint()
  }

  build() {
    const { kind } = this.data
    this.plane.replaceChildren()
    this.world = add(this.plane, "g", { transform: "scale(1 -1)" })
    add(this.world, "path", { class: "wl-axis", d: "M-5 0H5M0-5V5" })
    this.rest = add(this.world, "g", {})
    this.handles = this.data.still ? [] : HANDLES[kind].map(handle => this.handle(handle))
    this.hint.textContent = this.data.still ? "" : HINTS[kind]
  }

  handle(spec) {
    const [low, high] = this.data.limits[spec.parts[0]]
    const words = { "aria-label": spec.label, "aria-valuemin": low, "aria-valuemax": high }
    const drag = event => this.move(spec, spec.from(this.state, this.place(event)))
    const group = this.ring(this.world, words, 0.6, 0.3, drag, event => this.key(event, spec))
    add(group, "path", { d: spec.mark })
    return { group, spec }
  }

  place(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.plane.getScreenCTM().inverse())
    return [at.x, -at.y]
  }

  key(event, { parts }) {
    const [x, y] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0]
    if (!x && !y) return
    event.preventDefault()
    const turning = this.data.kind === "turn" && parts[0] === 0
    const step = (turning ? 2 : 0.05) * (event.shiftKey ? 5 : 1)
    const now = parts.map(part => this.state[part])
    this.later()
    this.move({ parts }, parts.length === 2 ? [now[0] + x * step, now[1] + y * step] : [now[0] + (x || y) * step])
  }

  move({ parts }, values) {
    parts.forEach((part, i) => {
      const [low, high] = this.data.limits[part]
      this.state[part] = Math.round(1000 * Math.min(high, Math.max(low, values[i]))) / 1000
    })
    this.paint()
  }

  paint() {
    const { kind, points, ghosts, names } = this.data
    const put = points.map(point => PLACE[kind](point, this.state))
    const [mean, ellipse] = shape(put)
    const parts = []
    if (kind === "turn" || kind === "axes") parts.push(["circle", { class: "wl-goal", r: 2 }])
    if (kind === "mean") put.forEach(([x, y]) => parts.push(["path", { class: "wl-arrow", d: `M0 0L${x} ${y}` }]))
    for (const [name, ghost] of Object.entries(ghosts ?? {}))
      ghost.forEach(([cx, cy]) => parts.push(["circle", { class: "wl-ghost", cx, cy, r: 0.075, fill: this.data.inks[name] }]))
    parts.push(["ellipse", {
      class: "wl-shape", cx: mean[0], cy: mean[1], rx: 2 * ellipse[0], ry: 2 * ellipse[1],
      transform: `rotate(${ellipse[2]} ${mean[0]} ${mean[1]})`,
    }])
    const mine = ghosts && Object.keys(ghosts).length ? { class: "wl-point wl-open", r: 0.12 } : { class: "wl-point", r: 0.085 }
    put.forEach(([cx, cy]) => parts.push(["circle", { ...mine, cx, cy }])) // open, so that a ghost it covers is seen
    this.rest.replaceChildren()
    parts.forEach(([tag, attributes]) => add(this.rest, tag, attributes))
    for (const { group, spec } of this.handles) {
      const [x, y] = spec.at(this.state)
      group.setAttribute("transform", `translate(${x} ${y})`)
      group.setAttribute("aria-valuenow", this.state[spec.parts[0]])
      group.setAttribute("aria-valuetext", spec.parts.map(part => `${names[part]} ${this.state[part].toFixed(2)}`).join(", "))
    }
    this.histogram(put)
  }

  histogram(put) {
    const counts = new Array(BINS).fill(0)
    for (let i = 0; i < put.length; i++)
      for (let j = 0; j < i; j++) {
        const [a, b] = [put[i], put[j]]
        const cosine = (a[0] * b[0] + a[1] * b[1]) / (Math.hypot(...a) * Math.hypot(...b) || 1)
        counts[Math.min(BINS - 1, Math.max(0, Math.floor(((cosine + 1) / 2) * BINS)))] += 1
      }
    const most = Math.max(...counts), wide = 220 / BINS
    this.bars.replaceChildren()
    counts.forEach((count, i) => {
      const height = (50 * count) / most
      add(this.bars, "rect", { class: "wl-bar", x: 10 + i * wide, y: 54 - height, width: wide - 1, height })
    })
    add(this.bars, "path", { class: "wl-foot", d: "M10 54.3H230" })
    const title = "how many pairs of points have which cosine"
    for (const [x, y, text, anchor] of [[10, 65, "-1", "start"], [120, 65, "0", "middle"], [230, 65, "1", "end"],
      [120, 77, title, "middle"]])
      add(this.bars, "text", { class: "wl-tick", x, y, "text-anchor": anchor }).textContent = text
  }
}

// Mean, and the half axes and angle in degrees of the ellipse one deviation from it.
function shape(points) {
  const n = points.length
  const mean = [0, 1].map(i => points.reduce((sum, point) => sum + point[i], 0) / n)
  let a = 0, b = 0, c = 0
  for (const [x, y] of points) {
    const [u, v] = [x - mean[0], y - mean[1]]
    a += (u * u) / (n - 1); b += (u * v) / (n - 1); c += (v * v) / (n - 1)
  }
  const middle = (a + c) / 2, reach = Math.hypot((a - c) / 2, b)
  const angle = (Math.atan2(2 * b, a - c) * 90) / Math.PI
  return [mean, [Math.sqrt(middle + reach), Math.sqrt(Math.max(0, middle - reach)), angle]]
}
