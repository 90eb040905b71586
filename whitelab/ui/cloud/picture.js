// What every picture does under a hand: its script follows this one and defines `Picture`, which extends `Held`.

const VIEWS = new WeakMap()

export default function ({ parentElement, data, setStateValue }) {
  let view = VIEWS.get(parentElement)
  if (!view) {
    view = new Picture(parentElement)
    VIEWS.set(parentElement, view)
  }
  view.send = state => setStateValue("state", state)
  view.take(data)
  return () => { view.watch?.disconnect(); VIEWS.delete(parentElement) }
}

const SVG = "http://www.w3.org/2000/svg"
const PAUSE = 200 // milliseconds after the last key until the server hears of it

class Held {
  // Whether the hand has done more since than what comes back, which must not undo it.
  ahead(state) {
    if (this.sent === JSON.stringify(state)) this.sent = undefined
    return Boolean(this.moving || this.waits || this.sent !== undefined)
  }

  // A ring to take hold of: `drag` hears where a pointer takes it, `key` what is pressed on it.
  ring(parent, attributes, reach, radius, drag, key) {
    const group = add(parent, "g", { class: "wl-handle", tabindex: 0, role: "slider", ...attributes })
    add(group, "circle", { class: "wl-reach", r: reach })
    add(group, "circle", { r: radius })
    group.addEventListener("touchstart", event => event.preventDefault(), { passive: false }) // no scrolling from here
    group.addEventListener("pointerdown", event => {
      this.moving = true
      group.classList.add("wl-dragged")
      group.setPointerCapture(event.pointerId)
      group.focus({ preventScroll: true })
      event.preventDefault()
    })
    group.addEventListener("pointermove", event => {
      if (this.moving && group.hasPointerCapture(event.pointerId)) drag(event)
    })
    for (const end of ["pointerup", "pointercancel"])
      group.addEventListener(end, () => {
        if (!this.moving) return
        this.moving = false
        group.classList.remove("wl-dragged")
        this.release()
      })
    group.addEventListener("keydown", key)
    group.addEventListener("blur", () => this.waits && this.release())
    return group
  }

  later() {
    clearTimeout(this.waits)
    this.waits = setTimeout(() => this.release(), PAUSE)
  }

  release() {
    clearTimeout(this.waits)
    this.waits = undefined
    this.sent = JSON.stringify(this.state)
    this.send([...this.state])
  }
}

function add(parent, tag, attributes) {
  const element = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  parent.append(element)
  return element
}
